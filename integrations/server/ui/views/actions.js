// Dialogs of a run: a message, its end, and a rerun from a stage, which lists what will run again.
import { tags } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { at, go } from '../lib/page.js';
import { ask } from '../parts/request.js';
import { valueDiff } from '../parts/change.js';
import { effects } from '../parts/effects.js';
import { CANCELS, loading } from '../parts/common.js';

const { p } = tags;

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

export function rerun(model) {
  const stages = model.stages().filter(({ status }) => status !== 'not_started').map(({ path }) => path);
  dialog(model, ({ from }) => ({ from }), () => ({
    title: 'Rerun from a stage', verb: 'Rerun', route: 'POST /runs/{run}/rerun', first: ['from'], hide: ['results', 'options'],
    schemas: { from: { enum: stages, title: 'stage' } }, value: { from: stages[0] },
    note: 'A new run keeps what comes before the stage and runs everything from there again.',
  }));
}
