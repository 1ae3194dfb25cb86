// A fork: what becomes different, what happens again, and what both runs share. The address names the run and the last common event.
import { tags, redraw } from '../lib/dom.js';
import { get, newKey, request } from '../lib/api.js';
import { MOD } from '../lib/keys.js';
import { at, go, may, runUrl, ui } from '../lib/page.js';
import { icon } from '../lib/icons.js';
import { placeWords, plain } from '../lib/cause.js';
import { brief, costText, line, plural, shortId } from '../lib/format.js';
import { empty, resource } from '../parts/common.js';
import { linesDiff, valueDiff } from '../parts/change.js';
import { effects, effectsInShort } from '../parts/effects.js';
import schemaForm from '../parts/schema_form.js';
import { json } from '../parts/json.js';
import { addUp, answerOf, costOf, isLastAttempt, RunModel } from '../parts/model.js';
import { nameOf, noModel, otherModel } from '../parts/next_model.js';

const { a, button, code, datalist, dd, details, div, dl, dt, form, h1, h2, input, kbd, label, li, nav, ol, option, p, section, small, span, summary, textarea } = tags;

/** Edits by place, for as long as the page is open. */
const kept = new Map();

export default function forkView(route) {
  let work = null;
  const open = ({ rest: [run, seq] }) => {
    work?.model.close();
    work = run && /^\d+$/.test(seq ?? '') ? forkOf(run, Number(seq)) : null;
  };
  open(route);
  return {
    title: () => 'Fork',
    update(to) {
      open(to);
      return true;
    },
    head: () => div.bar(work?.data.value ? [a.quiet({ href: runUrl(work.run) }, work.model.run.brain, ' ', span.mono(shortId(work.run))), span.quiet('/'), h1.cut(`Fork ${work.data.value.place ? `from ${work.data.value.place}` : `after event ${planOf(work).at}`}`), span.grow(),
      work.data.value.asked && nav.views({ 'aria-label': 'What to do with it' },
        a({ href: ui(at('fork', work.run, work.seq)), 'aria-current': 'true' }, 'Fork the run'), may('playground') && a({ href: ui(at('playground', work.run, work.data.value.asked.seq)) }, 'Try the answer once'))] : h1('Fork')),
    render: () => (work ? work.data.show(() => draw(work)) : empty('Choose where to fork', 'Select an event of a run, and press F.', a.button({ href: ui('/runs') }, 'Runs'))),
    close: () => work?.model.close(),
  };
}

function forkOf(run, seq) {
  const key = `${run} ${seq}`;
  const edits = kept.get(key) ?? kept.set(key, {}).get(key);
  const work = { run, seq, edits, busy: false, problem: null, key: null, open: new Map(), plans: new Map(), model: new RunModel(run, () => {}, () => {}) };
  const { model } = work;
  work.data = resource(async () => {
    await model.load();
    model.stop?.();
    if (model.trouble) throw model.trouble;
    const [plan, { items }, brain] = await Promise.all([get(`${model.path}/fork`, { at: seq }), get(`${model.path}/requests`), get(`/brains${at(model.run.brain)}`).catch(() => null)]);
    // The system prompt of the last request before the fork, so that a change begins with what was sent.
    const last = items.findLast((item) => item.seq <= Math.max(seq, plan.at));
    const [asked, state] = await Promise.all([last && get(`${model.path}/requests${at(last.seq)}`), get(`${model.path}/state`, { at: Math.min(plan.at, model.head) })]);
    work.plans.set(seq, plan);
    // Where the recorded model cannot answer, another may before its first answer.
    const first = model.nodes.find((node) => node?.kind.type === 'iteration')?.seq;
    const begin = plan.model.missing && first > 0 && first - 1 < seq ? await get(`${model.path}/fork`, { at: first - 1 }).catch(() => null) : null;
    return { plan, begin: begin?.model.answers.length ? begin : null, asked, brain, state: state.state, place: placeWords(last?.path) };
  });
  return work;
}

/** The last event that the fork shares. The request of an iteration is fixed when the iteration begins, so that another prompt or model holds for
 *  one without an answer only if it begins anew. */
function pointOf({ seq, edits, model, data: { value: { asked } } }) {
  if (edits.system === undefined && edits.model === undefined) return seq;
  const iteration = model.nodes.findLast((node) => node?.kind.type === 'iteration' && node.seq <= seq);
  const isAnswered = asked && iteration && asked.seq > iteration.seq && asked.answer_seq != null && asked.answer_seq <= seq;
  return iteration && !isAnswered && iteration.seq > 0 ? iteration.seq - 1 : seq;
}

/** What a fork at the present point repeats. Until that is read, what one without edits does. */
function planOf(work) {
  const { plans, model, data: { value: { plan } } } = work;
  const point = pointOf(work);
  if (!plans.has(point)) {
    plans.set(point, null);
    get(`${model.path}/fork`, { at: point }).then((read) => plans.set(point, read), () => plans.delete(point)).finally(redraw);
  }
  return plans.get(point) ?? plan;
}

async function send(work) {
  if (work.busy) return;
  const { edits, model } = work;
  Object.assign(work, { busy: true, key: work.problem?.status === 0 ? work.key : newKey(), problem: null });
  redraw();
  try {
    const { id } = await request('POST', `${model.path}/fork`, { body: { at: pointOf(work), ...edits }, headers: { 'Idempotency-Key': work.key } });
    kept.delete(`${work.run} ${work.seq}`);
    go(at('runs', id));
  } catch (problem) {
    work.problem = problem;
  }
  work.busy = false;
  redraw();
}

function draw(work) {
  const { edits, model, data: { value: { asked, begin, brain, state } }, problem } = work;
  const plan = planOf(work);
  const { answers, models } = plan.model;
  const set = (name, value) => {
    if (value === undefined) delete edits[name];
    else edits[name] = value;
  };
  const system = asked ? (typeof asked.request.system === 'string' ? asked.request.system : asked.request.system?.body ?? '') : null;
  const { options } = model.nodes[0]?.kind ?? {};
  const { allowed = true, reason } = model.run.actions?.fork ?? {};
  const submit = (event) => {
    event.preventDefault();
    send(work);
  };
  return div.try({ key: `${work.run} ${work.seq}` },
    form.tryForm({ 'aria-label': 'The fork', onsubmit: submit, onkeydown: (event) => { if (event.key === 'Enter' && (event.metaKey || event.ctrlKey) && !event.repeat) submit(event); } },
      p.soft('The new run shares the log up to ', a({ href: runUrl(work.run, 'events', plan.at) }, `event ${plan.at}`), '. The old run stays as it is.'),
      system !== null && div.field(label({ for: 'fork-system' }, 'System prompt ', span.quiet(edits.system === undefined ? 'as it was sent last' : 'changed')),
        textarea({ id: 'fork-system', class: 'code', rows: Math.min(18, 3 + system.split('\n').length), spellcheck: 'false', dir: 'auto', maxlength: 100_000, value: edits.system ?? system, oninput: ({ target }) => set('system', target.value === system ? undefined : target.value) }),
        edits.system === undefined ? small('Unchanged, each loop keeps its own. A changed one holds for all loops from here on.') : [linesDiff(system, edits.system), small('Holds for all loops from here on.')]),
      label.field(span('Model'),
        input({ list: 'fork-models', value: edits.model ?? '', placeholder: asked?.request.settings?.model ?? nameOf(answers.includes(asked?.model) ? asked.model : answers[0] ?? asked?.model) ?? 'as recorded', autocomplete: 'off', spellcheck: 'false',
          oninput: ({ target }) => set('model', target.value.trim() || undefined) }), datalist({ id: 'fork-models' }, models.map((name) => option({ key: name, value: name }))), small('of the same provider; for all loops from here on')),
      otherModel(plan.model, asked?.model),
      options != null && details.optionsOf(summary('Options ', span.quiet(edits.options === undefined ? 'as recorded' : 'changed')),
        schemaForm(brain?.options_schema ?? {}, { value: edits.options ?? options, id: 'fork-options', errors: (problem?.body?.errors ?? []).map((error) => ({ ...error, pointer: error.pointer.replace(/^\/options/, '') })), onchange: (edit) => {
          const next = edit(edits.options ?? options);
          set('options', JSON.stringify(next) === JSON.stringify(options) ? undefined : next);
        } }), edits.options !== undefined && div.edits(valueDiff(options, edits.options))),
      div.panel.again(effects(plan)),
      noModel(plan.model, begin && [a({ href: ui(at('fork', work.run, begin.at)) }, `Fork after event ${begin.at}`), `, before the first answer: there ${begin.model.answers.join(' or ')} of this server answers.`]),
      problem && p.problem({ role: 'alert' }, problem.message, problem.body?.differences && valueDiff({}, problem.body.differences)),
      allowed ? div.sendLine(button.primary.large({ disabled: work.busy }, icon('fork'), work.busy ? 'Sending…' : plan.model.missing ? 'Fork, and wait for a model' : 'Fork and run'), span.grow.soft({ key: 'in-short' }, effectsInShort(plan)), kbd.wide(`${MOD} ↵`)) : p.note(icon('warn'), reason)),
    section.trials.after({ 'aria-label': 'What both runs share', tabindex: '0' }, shared(work, plan), costs(work, plan),
      state != null && JSON.stringify(state) !== '{}' && section({ key: 'state' }, h2('State at this point'), div.well(json(state, { open: work.open, label: 'State', depth: 2 })))));
}

const callsOf = (node, model) => (model.children.get(node.parent) ?? []).map((id) => model.nodes[id]).filter(({ kind }) => kind.type === 'call');

/** The beginning of an answer in a line: its first paragraph, or its fields. */
function begins(text) {
  try {
    return brief(JSON.parse(text), 80);
  } catch {
    return line(plain(text.trim().split(/\n\s*\n/)[0]), 80);
  }
}

/** Whether a fork shares an answer: one that the model has not given at its event is asked for anew. */
function isShared(node, { asked }, { at: last }) {
  const isOpen = asked && !(asked.answer_seq <= last);
  return node.seq <= last && !(isOpen && node.seq === asked.seq);
}

/** The answers of the run, which the fork shares or leaves behind. */
function shared({ model, data: { value } }, plan) {
  const answers = model.select((node) => node.kind.type === 'answer' && isLastAttempt(node, model));
  if (!answers.length) return null;
  const first = answers.find((node) => !isShared(node, value, plan));
  return section({ key: 'shared' }, h2('What the fork shares'), ol.sharedRows({ tabindex: '0', 'aria-label': 'Answers of the run' }, answers.map((node) => {
    const iteration = model.nodes[node.parent]?.kind;
    const said = answerOf(node.kind)?.parts?.find(({ type, text }) => type === 'text' && text.trim())?.text;
    const calls = callsOf(node, model);
    const stands = isShared(node, value, plan) ? 'shared' : node === first ? 'new from here' : 'not shared';
    return li({ key: node.id, class: stands.replaceAll(' ', '-') }, span.n(iteration?.type === 'iteration' ? iteration.number + 1 : ''),
      span.cut(said ? span({ dir: 'auto' }, begins(said)) : !calls.length && span.quiet('No answer'), calls.length > 0 && [' ', code([...new Set(calls.map(({ kind }) => kind.tool))].join(', ')), calls.length === 1 && span.quiet(' ', brief(calls[0].kind.arguments, 40))]),
      a({ href: runUrl(model.id, 'transcript', node.seq) }, stands));
  })));
}

/** What is not paid again, and what the rest of the run has cost. */
function costs({ model, data: { value } }, plan) {
  const of = (test) => model.nodes.filter((node) => node?.kind.type === 'answer' && test(node)).map((node) => costOf(answerOf(node.kind), model));
  const [before, after] = [of((node) => isShared(node, value, plan)), of((node) => !isShared(node, value, plan))].map((list) => costText(addUp(list)));
  if (!before && !after) return null;
  return section({ key: 'cost' }, h2('Cost'), dl.fields(div(dt('shared, not paid again'), dd(before || '–')), div(dt('rest of the run'), dd(after ? `about ${after}, as recorded` : '–'))));
}
