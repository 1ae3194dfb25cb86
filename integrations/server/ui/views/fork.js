// Dialogs that make a new run from one: a fork at an event, a rerun from a stage. The first says what will run again.
import { tags } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { at, go } from '../lib/page.js';
import { ask } from '../parts/request.js';
import { valueDiff } from '../parts/change.js';
import { plural } from '../lib/format.js';

const { b, h3, li, p, section, span, ul } = tags;

const SHOWN = 40;
const effects = ({ rerun, reused }) => section(
  h3(rerun.length ? `${plural(rerun.length, 'effect')} will run again` : 'No effect will run again'),
  ul.results({ tabindex: '0', 'aria-label': 'Effects' }, rerun.slice(0, SHOWN).map(({ name, kind, path, seq, may_repeat: isSafe }, i) =>
    li({ key: i }, b.mono(name ?? kind), ' ', span.soft(`${path}, event ${seq}`), isSafe === false && span.tag.warn('repeats a side effect')))),
  rerun.length > SHOWN && p.soft(`Showing ${SHOWN} of ${rerun.length}.`),
  p.soft(`${plural(reused, 'recorded effect')} ${reused === 1 ? 'is' : 'are'} reused.`));

/** Opens the dialog; `place(value)` is the query of the plan, which `read` reads for the present value. */
function dialog(model, place, spec) {
  let plan = null;
  const read = async ({ value }) => { plan = await get(`${model.path}/fork`, place(value)).catch(() => plan); };
  ask({ params: { run: model.id }, ready: read, changed: read, above: () => plan && effects(plan), done: ({ id }) => go(at('runs', id)),
    explain: ({ message, body }) => [message, body?.differences && valueDiff({}, body.differences)], ...spec(read) });
}

export const forkDialog = (model, seq) => dialog(model, () => ({ at: seq }), (read) => ({
  title: `Fork at event ${seq}`, verb: 'Fork', route: 'POST /runs/{run}/fork', hide: ['at', 'results'], first: ['model'],
  note: 'The new run shares the log up to this event. The old run stays as it is.', value: { at: seq, options: model.nodes[0]?.kind.options },
  ready: async (form) => {
    await read(form);
    const brain = await get(`/brains${at(model.run.brain)}`).catch(() => null);
    if (brain) form.use('options', brain.options_schema);
  },
}));

export function rerunDialog(model) {
  const stages = model.stages().filter(({ status }) => status !== 'not_started').map(({ path }) => path);
  dialog(model, ({ from }) => ({ from }), () => ({
    title: 'Rerun from a stage', verb: 'Rerun', route: 'POST /runs/{run}/rerun', first: ['from'], hide: ['results', 'options'],
    schemas: { from: { enum: stages, title: 'stage' } }, value: { from: stages[0] },
    note: 'A new run keeps what comes before the stage and runs everything from there again.',
  }));
}
