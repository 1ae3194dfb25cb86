// Dialogs of a run: a message, its end, a fork at an event, and a rerun from a stage. The last two list what will run again.
import { tags } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { at, go } from '../lib/page.js';
import { ask } from '../parts/request.js';
import { valueDiff } from '../parts/change.js';
import { plural } from '../lib/format.js';
import { CANCELS, loading } from '../parts/common.js';

const { b, h3, li, p, section, span, ul } = tags;

const SHOWN = 40;
const effects = ({ rerun, reused }) => section(
  h3(rerun.length ? `${plural(rerun.length, 'effect')} will run again` : 'No effect will run again'),
  ul.results({ tabindex: '0', 'aria-label': 'Effects' }, rerun.slice(0, SHOWN).map(({ name, kind, path, seq, may_repeat: isSafe, asks_again: asks }, i) =>
    li({ key: i }, b.mono(name ?? kind), ' ', span.soft(`${path}, event ${seq}`), isSafe === false && span.tag.warn('repeats a side effect'), asks && span.tag('asks a person again')))),
  rerun.length > SHOWN && p.soft(`Showing ${SHOWN} of ${rerun.length}.`),
  p.soft(`${plural(reused, 'recorded effect')} ${reused === 1 ? 'is' : 'are'} reused.`));

const signal = (model, type, spec) => ask({ ...spec, route: 'POST /runs/{run}/signals', params: { run: model.id }, value: { type }, hide: ['type', 'files', 'to'] });
export const message = (model) => signal(model, 'message', { title: 'Send a message', verb: 'Send', schemas: { text: { type: 'string', maxLength: 4000 } } });
export const cancel = (model) => signal(model, 'cancel', { title: 'Cancel the run', verb: 'Cancel the run', danger: true,
  note: CANCELS });

/** Opens the dialog of a new run; `place(value)` is the query of the plan, which `read` reads for the present value. */
function dialog(model, place, spec) {
  let [plan, turn] = [null, 0];
  const read = async ({ value }) => {
    const own = ++turn;
    plan = null;
    const answer = await get(`${model.path}/fork`, place(value)).catch((error) => ({ error }));
    if (own === turn) plan = answer;
  };
  ask({ params: { run: model.id }, ready: read, changed: read, isReady: () => Boolean(plan?.rerun),
    above: () => (plan?.error ? p.problem(plan.error.message) : plan ? effects(plan) : loading()), done: ({ id }) => go(at('runs', id)),
    explain: ({ message, body }) => [message, body?.differences && valueDiff({}, body.differences)], ...spec(read) });
}

export const fork = (model, seq) => dialog(model, ({ at }) => ({ at }), (read) => ({
  title: 'Fork', verb: 'Fork', route: 'POST /runs/{run}/fork', hide: ['results'], first: ['at', 'model'],
  note: 'The new run shares the log up to this event. The old run stays as it is.', value: { at: seq, options: model.nodes[0]?.kind.options },
  ready: async (form) => {
    await read(form);
    const brain = await get(`/brains${at(model.run.brain)}`).catch(() => null);
    if (brain) form.use('options', brain.options_schema);
  },
}));

export function rerun(model) {
  const stages = model.stages().filter(({ status }) => status !== 'not_started').map(({ path }) => path);
  dialog(model, ({ from }) => ({ from }), () => ({
    title: 'Rerun from a stage', verb: 'Rerun', route: 'POST /runs/{run}/rerun', first: ['from'], hide: ['results', 'options'],
    schemas: { from: { enum: stages, title: 'stage' } }, value: { from: stages[0] },
    note: 'A new run keeps what comes before the stage and runs everything from there again.',
  }));
}
