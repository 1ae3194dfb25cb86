// Dialogs of a run: a message, its end, a fork at an event, and a rerun from a stage. The last two list what will run again.
import { tags } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { at, go } from '../lib/page.js';
import { ask } from '../parts/request.js';
import { valueDiff } from '../parts/change.js';
import { placeWords } from '../lib/cause.js';
import { line, number, plural } from '../lib/format.js';
import { CANCELS, loading } from '../parts/common.js';

const { b, details, h3, li, p, section, span, summary, ul } = tags;

const SHOWN = 40;
const effect = ({ name, kind, path, may_repeat: isSafe, asks_again: asks }, i) => li({ key: i }, b.mono(name ?? kind), ' ', span.soft(placeWords(path)), ' ', isSafe === false && span.tag.warn('repeats a side effect'), asks && span.tag('asks a person again'));
/** What happens again: what reaches the world or a person in full, the rest as a sum that unfolds. */
function effects({ rerun, reused }) {
  const [far, near] = [rerun.filter(({ may_repeat: isSafe, asks_again: asks }) => isSafe === false || asks), rerun.filter(({ may_repeat: isSafe, asks_again: asks }) => isSafe !== false && !asks)];
  const names = [...new Set(near.map(({ name, kind }) => name ?? kind))];
  return section.effects(
  h3(rerun.length ? `${plural(rerun.length, 'effect')} will run again` : 'No effect will run again', far.length > 0 && [' ', span.tag.warn(`${far.length} reach the world or a person`)]),
  far.length > 0 && ul.results({ tabindex: '0', 'aria-label': 'Effects that reach the world or a person' }, far.slice(0, SHOWN).map(effect)),
  far.length > SHOWN && p.soft(`Showing ${SHOWN} of ${far.length}.`),
  near.length > 0 && details(summary(`${far.length ? `${number(near.length)} more` : number(near.length)}, read-only or repeatable: ${line(names.join(', '), 90)}`), ul.results({ tabindex: '0', 'aria-label': 'Other effects' }, near.slice(0, SHOWN).map(effect)), near.length > SHOWN && p.soft(`Showing ${SHOWN} of ${near.length}.`)),
  p.soft(`${plural(reused, 'recorded effect')} ${reused === 1 ? 'is' : 'are'} reused.`));
}

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

export function fork(model, seq) {
  let prompt;
  dialog(model, ({ at }) => ({ at }), (read) => ({
    title: 'Fork', verb: 'Fork', route: 'POST /runs/{run}/fork', hide: ['results'], first: ['system', 'model', 'at'],
    note: 'The new run shares the log up to this event. The old run stays as it is.', sends: ({ system, ...rest }) => (system === undefined || system === prompt ? rest : { system, ...rest }), value: { at: seq, options: model.nodes[0]?.kind.options },
    ready: async (form) => {
      await read(form);
      // The system prompt of the last request before the fork, so that a change begins with what was sent.
      const { items = [] } = await get(`${model.path}/requests`).catch(() => ({}));
      const last = items.findLast((item) => item.seq <= seq);
      const asked = last && await get(`${model.path}/requests${at(last.seq)}`).catch(() => null);
      const system = asked?.request.system?.body ?? asked?.request.system;
      if (typeof system === 'string') {
        prompt = system;
        form.use('system', { type: 'string', title: 'system prompt', maxLength: 100_000, description: 'As it was sent last. A changed one holds for all loops from here on; unchanged, each loop keeps its own.' }, prompt);
      }
      const brain = await get(`/brains${at(model.run.brain)}`).catch(() => null);
      if (brain) form.use('options', brain.options_schema);
    },
  }));
}

export function rerun(model) {
  const stages = model.stages().filter(({ status }) => status !== 'not_started').map(({ path }) => path);
  dialog(model, ({ from }) => ({ from }), () => ({
    title: 'Rerun from a stage', verb: 'Rerun', route: 'POST /runs/{run}/rerun', first: ['from'], hide: ['results', 'options'],
    schemas: { from: { enum: stages, title: 'stage' } }, value: { from: stages[0] },
    note: 'A new run keeps what comes before the stage and runs everything from there again.',
  }));
}
