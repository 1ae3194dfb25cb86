// Dialogs that make a new run from one: a fork at an event, a rerun from a stage. The first says what will run again.
import { tags } from '../lib/dom.js';
import { get, post, at } from '../lib/api.js';
import { openDialog } from '../lib/keys.js';
import { plural } from '../lib/format.js';
import { schemaForm } from '../parts/form.js';

const { b, button, details, div, footer, h2, h3, input, label, li, p, section, span, summary, ul } = tags;

export async function forkDialog(model, seq, context) {
  const run = `/runs${at(model.id)}`;
  let [plan, problem, brain, value, other] = [null, null, null, model.nodes[0]?.kind.options, ''];
  const draw = openDialog('Fork the run', (close, again) => [
    h2(`Fork at event ${seq}`),
    p.soft('The new run shares the log up to this event. The old run stays as it is.'),
    plan && section(h3(plan.rerun.length ? `${plural(plan.rerun.length, 'effect')} will run again` : 'No effect will run again'),
      plan.rerun.length ? ul.effects(plan.rerun.slice(0, 40).map((effect, i) => li({ key: i }, b.mono(effect.name ?? effect.kind), ' ', span.soft(`${effect.path}, event ${effect.seq}`), effect.may_repeat === false && span.tag.warn('has an effect')))) : null,
      plan.rerun.length > 40 && p.soft(`Showing 40 of ${plan.rerun.length}.`), p.soft(`${plural(plan.reused, 'recorded effect')} are reused.`)),
    brain?.options_schema && details(summary('Change the options'), schemaForm(brain.options_schema, { value, onchange: (next) => { value = next; again(); }, errors: problem?.body?.errors ?? [], id: 'fork' })),
    div.field(label({ for: 'fork-model' }, 'Another model', span.soft(' (optional)')), input({ id: 'fork-model', placeholder: 'provider/name', value: other, oninput: (event) => { other = event.target.value; } })),
    problem && p.problem({ role: 'alert' }, problem.message),
    footer(button.primary({ disabled: !plan, onclick: () => send(`${run}/fork`, { at: seq, ...(value === model.nodes[0]?.kind.options ? {} : { options: value }), ...(other ? { model: other } : {}) }, close, (error) => { problem = error; again(); }, context) }, 'Fork'),
      button.plain({ onclick: close }, 'Close'))]);
  try {
    plan = await get(`${run}/fork`, { at: seq });
    draw();
    brain = await get(`/brains${at(model.run.brain)}`);
  } catch (error) { if (!plan) problem = error; }
  draw();
}

export function rerunDialog(model, context) {
  const stages = model.of(0).filter((node) => node.kind.type === 'stage' && node.status !== 'not_started');
  let problem = null;
  openDialog('Rerun from a stage', (close, again) => [h2('Rerun from a stage'), p.soft('A new run keeps what comes before the stage and runs everything from there again.'),
    ul.choices(stages.map((node) => li({ key: node.id }, button({ onclick: () => send(`/runs${at(model.id)}/rerun`, { from: node.path }, close, (error) => { problem = error; again(); }, context) }, node.kind.name)))),
    problem && p.problem({ role: 'alert' }, problem.message), footer(button.plain({ onclick: close }, 'Close'))]);
}

async function send(path, body, close, fail, context) {
  try {
    const run = await post(path, body);
    close();
    context.go(`/runs/${run.id ?? run.run}`);
  } catch (error) { fail(error); }
}
