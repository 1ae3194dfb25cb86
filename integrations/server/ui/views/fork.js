// Dialogs that make a new run from one: a fork at an event, a rerun from a stage. The first says what will run again.
import { tags } from '../lib/dom.js';
import { get, at } from '../lib/api.js';
import { ask } from '../parts/request.js';
import { valueDiff } from '../parts/change.js';
import { plural } from '../lib/format.js';

const { b, h3, li, p, section, span, ul } = tags;

const SHOWN = 40;
const WORDS = {
  'code-differs': 'This server has other code than the run: a worker could not continue the fork.',
  'beyond-head': 'The run has no such event.',
  'options-invalid': 'The options do not fit the brain.',
};

/** A problem of a fork in words, with what differs. */
const explain = ({ slug, message, body }) => [WORDS[slug], ' ', message, body?.differences && valueDiff({}, body.differences)];

const effects = ({ rerun, reused }) => section(
  h3(rerun.length ? `${plural(rerun.length, 'effect')} will run again` : 'No effect will run again'),
  ul.results({ tabindex: '0', 'aria-label': 'Effects' }, rerun.slice(0, SHOWN).map((effect, i) => li({ key: i },
    b.mono(effect.name ?? effect.kind), ' ', span.soft(`${effect.path}, event ${effect.seq}`),
    effect.may_repeat === false && span.tag.warn('changes something again')))),
  rerun.length > SHOWN && p.soft(`Showing ${SHOWN} of ${rerun.length}.`),
  p.soft(`${plural(reused, 'recorded effect')} ${reused === 1 ? 'is' : 'are'} reused.`));

export function forkDialog(model, seq, context) {
  const params = { run: model.id };
  const options = model.nodes[0]?.kind.options;
  let plan = null;
  ask(context, {
    title: `Fork at event ${seq}`, verb: 'Fork', route: 'POST /runs/{run}/fork', params, hide: ['at', 'results'], first: ['model'],
    note: 'The new run shares the log up to this event. The old run stays as it is.',
    value: { at: seq, options }, explain, done: (run) => context.go(`/runs/${run.id}`),
    above: () => plan && effects(plan),
    ready: async (form) => {
      plan = await get(`/runs${at(model.id)}/fork`, { at: seq });
      const brain = await get(`/brains${at(model.run.brain)}`).catch(() => null);
      if (brain) form.use('options', brain.options_schema);
    },
  });
}

export function rerunDialog(model, context) {
  const stages = model.of(0).filter((node) => node.kind.type === 'stage' && node.status !== 'not_started').map((node) => node.path);
  let plan = null;
  const read = async (form) => {
    const { from } = form.value;
    const answer = await get(`/runs${at(model.id)}/fork`, { from }).catch(() => null);
    if (from === form.value.from) plan = answer;
    form.redraw();
  };
  ask(context, {
    title: 'Rerun from a stage', verb: 'Rerun', route: 'POST /runs/{run}/rerun', params: { run: model.id }, first: ['from'],
    hide: ['results', 'options'], schemas: { from: { enum: stages, title: 'stage' } }, value: { from: stages[0] }, explain,
    note: 'A new run keeps what comes before the stage and runs everything from there again.',
    above: () => plan && effects(plan), changed: read, ready: read, done: (run) => context.go(`/runs/${run.id}`),
  });
}
