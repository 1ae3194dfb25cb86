// Dialogs that make a new run from one: a fork at an event, a rerun from a stage. The first says what will run again.
import { h } from '../lib/dom.js';
import { get, post, at } from '../lib/api.js';
import { openDialog } from '../lib/keys.js';
import { plural } from '../lib/format.js';
import { schemaForm } from '../parts/form.js';

export async function forkDialog(model, seq, context) {
  const run = `/runs${at(model.id)}`;
  let [plan, problem, brain, value, other] = [null, null, null, model.nodes[0]?.kind.options, ''];
  const draw = openDialog('Fork the run', (close, again) => [
    h('h2', null, `Fork at event ${seq}`),
    h('p.soft', null, 'The new run shares the log up to this event. The old run stays as it is.'),
    plan && h('section', null, h('h3', null, plan.rerun.length ? `${plural(plan.rerun.length, 'effect')} will run again` : 'No effect will run again'),
      plan.rerun.length ? h('ul.effects', null, plan.rerun.slice(0, 40).map((effect, i) => h('li', { key: i }, h('b.mono', null, effect.name ?? effect.kind), ' ', h('span.soft', null, `${effect.path}, event ${effect.seq}`), effect.may_repeat === false && h('span.tag.warn', null, 'has an effect')))) : null,
      plan.rerun.length > 40 && h('p.soft', null, `Showing 40 of ${plan.rerun.length}.`), h('p.soft', null, `${plural(plan.reused, 'recorded effect')} are reused.`)),
    brain?.options_schema && h('details', null, h('summary', null, 'Change the options'), schemaForm(brain.options_schema, { value, onchange: (next) => { value = next; again(); }, errors: problem?.body?.errors ?? [], id: 'fork' })),
    h('div.field', null, h('label', { for: 'fork-model' }, 'Another model', h('span.soft', null, ' (optional)')), h('input', { id: 'fork-model', placeholder: 'provider/name', value: other, oninput: (event) => { other = event.target.value; } })),
    problem && h('p.problem', { role: 'alert' }, problem.message),
    h('footer', null, h('button.primary', { disabled: !plan, onclick: () => send(`${run}/fork`, { at: seq, ...(value === model.nodes[0]?.kind.options ? {} : { options: value }), ...(other ? { model: other } : {}) }, close, (error) => { problem = error; again(); }, context) }, 'Fork'),
      h('button.plain', { onclick: close }, 'Close'))]);
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
  openDialog('Rerun from a stage', (close, again) => [h('h2', null, 'Rerun from a stage'), h('p.soft', null, 'A new run keeps what comes before the stage and runs everything from there again.'),
    h('ul.choices', null, stages.map((node) => h('li', { key: node.id }, h('button', { onclick: () => send(`/runs${at(model.id)}/rerun`, { from: node.path }, close, (error) => { problem = error; again(); }, context) }, node.kind.name)))),
    problem && h('p.problem', { role: 'alert' }, problem.message), h('footer', null, h('button.plain', { onclick: close }, 'Close'))]);
}

async function send(path, body, close, fail, context) {
  try {
    const run = await post(path, body);
    close();
    context.go(`/runs/${run.id ?? run.run}`);
  } catch (error) { fail(error); }
}
