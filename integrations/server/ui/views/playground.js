// The playground: a request of a log with edits, sent once outside of the run, and its answers beside the recorded one.
import { tags, redraw } from '../lib/dom.js';
import { get, post, stream } from '../lib/api.js';
import { at, may, runUrl, say, ui } from '../lib/page.js';
import { icon } from '../lib/icons.js';
import { placeWords } from '../lib/cause.js';
import { moment, money, number, plural, runCost, runCostTitle, shortId } from '../lib/format.js';
import { empty, idText, resource } from '../parts/common.js';
import { linesDiff } from '../parts/change.js';
import { messageRows } from '../parts/messages.js';
import { nameOf } from '../parts/next_model.js';
import { recorded, trialOf } from '../parts/trial.js';

const { a, b, button, code, datalist, div, form, h1, input, kbd, label, nav, option, p, section, select, small, span, textarea } = tags;

/** After how many milliseconds without an edit the cost is estimated again. */
const PAUSE = 350;
/** Edits and answers by request, for as long as the page is open. */
const kept = new Map();

export default function playgroundView(route) {
  let [work, recent] = [null, null];
  const open = ({ rest: [run, seq] }) => {
    work = run && seq ? trialsOf(run, seq) : null;
    if (!work) recent ??= resource(() => get('/runs', { limit: 24 }));
  };
  open(route);
  return {
    title: () => 'Playground',
    update(to) {
      open(to);
      return true;
    },
    keys: () => (work ? { n: ['Edit the system prompt', () => document.getElementById('try-system')?.focus()] } : {}),
    head: () => div.bar(work ? [a.quiet({ href: runUrl(work.run) }, work.asked.value?.run.brain ?? 'Run', ' ', span.mono(shortId(work.run))), span.quiet('/'),
      h1.cut(work.asked.value ? titleOf(work.asked.value) : 'Playground'), span.grow(), nav.views({ 'aria-label': 'What to do with it' },
        a({ href: ui(at('fork', work.run, work.seq)) }, 'Fork the run'), a({ href: ui(at('playground', work.run, work.seq)), 'aria-current': 'true' }, 'Try the answer once'))]
      : [h1('Playground'), span.soft.cut('A request of a run with edits, sent once. Nothing is written into the run.')]),
    render: () => (work ? work.asked.show(() => draw(work)) : recent.show(chooser)),
  };
}

const titleOf = ({ path }) => `Answer of ${placeWords(path) || 'the run'}`;

/** What stands without an address: the runs whose requests can be tried. */
const chooser = ({ items }) => {
  const asked = items.filter(({ usage }) => usage?.input || usage?.output);
  return asked.length ? section.chooser(p.soft('Choose a request of a run. In a run, “Try again with edits” and the key ', kbd('P'), ' lead here, too.'),
    tags.ul.lastRuns(asked.map((run) => tags.li({ key: run.id }, a({ href: runUrl(run.id, 'requests') },
      span.cut(run.brain), span.mono({ title: run.id }, idText(run.id)), span.cut.quiet({ dir: 'auto' }, run.input || run.status), span.quiet(moment(run.started)), span.wide.cost({ title: runCostTitle(run.cost) }, runCost(run.cost)))))), a({ href: ui('/runs') }, 'All runs'))
    : empty('No model was asked yet', 'Requests of runs appear here.', a.button({ href: ui('/brains') }, 'Start a run'));
};

/** The request of an address with its edits and answers. */
function trialsOf(run, seq) {
  const key = `${run} ${seq}`;
  if (!kept.has(key)) {
    const work = { run, seq, edits: {}, trials: [], estimate: null, timer: 0, turn: 0, open: new Set(), marks: true };
    work.path = `/runs${at(run, 'requests', seq)}`;
    work.asked = resource(async () => {
      const [row, request, { items }] = await Promise.all([get(`/runs${at(run)}`), get(work.path), get(`/runs${at(run, 'requests')}`)]);
      return { run: row, ...request, path: items.find((item) => String(item.seq) === seq)?.path };
    });
    work.edit = (fields) => {
      Object.assign(work.edits, fields);
      for (const name in work.edits) if (work.edits[name] === undefined) delete work.edits[name];
      clearTimeout(work.timer);
      work.estimate = null;
      work.timer = setTimeout(() => estimate(work), PAUSE);
    };
    kept.set(key, work);
    if (may('playground')) estimate(work);
  }
  return kept.get(key);
}

async function estimate(work) {
  const turn = ++work.turn;
  const answer = await post(`${work.path}/estimate`, work.edits).catch((error) => ({ error }));
  if (turn === work.turn) work.estimate = answer;
  redraw();
}

async function send(work) {
  if (work.estimate?.error || !may('playground')) return;
  const trial = { n: work.trials.length + 1, edits: { ...work.edits }, began: performance.now(), text: '', stop: new AbortController(), model: work.estimate?.model ?? work.asked.value.model };
  work.trials.push(trial);
  redraw();
  // In a narrow window the answers stand above the form.
  requestAnimationFrame(() => document.querySelector('.trial:last-of-type')?.scrollIntoView({ block: 'nearest' }));
  await stream(`${work.path}/send`, work.edits, {
    delta: ({ kind, text }) => { if (kind === 'text') trial.text += text; },
    restart: () => { trial.text = ''; },
    answer: (item) => { trial.item = item; },
    problem: (body) => { trial.failed = body.detail ?? body.title; },
  }, trial.stop.signal).catch((error) => { trial.failed = trial.stop.signal.aborted ? 'Stopped. The provider may bill what it has sent.' : error.message; });
  if (!trial.item) trial.failed ??= 'The answer broke off. The provider may bill what it has sent.';
  say(trial.item?.answer ? `Answer ${trial.n} is there.` : 'The model gave no answer.', true);
  redraw();
}

/** The expected cost in words, with what it follows from. */
function costOf({ estimate: known }) {
  if (!known) return 'Estimating the cost…';
  if (known.error) return span.bad(known.error.message);
  const { cost, max_cost: most, input_tokens: sent, output_tokens: answered, from_record: isRecorded, model, as_of: day } = known;
  const amount = (of) => money(of.amount, of.currency);
  const price = !cost ? `To ${model}, which has no price` : `To ${model} for ${answered == null ? `${amount(cost)} and more` : `about ${amount(cost)}`}`;
  return span({ title: `${isRecorded ? 'Tokens by the recorded answer and the lengths of the requests' : 'Tokens by the length of the request'}, without the provider's cache${day ? `; prices of ${day}` : ''}` },
    `${price}: ${number(sent)} tokens in${answered == null ? '' : `, ${number(answered)} out`}`, most && span.quiet(`, at most ${amount(most)}`));
}

/** Says which model answers, if it is another one than the recorded or if it does not read what is asked. */
function otherAnswers({ asked: { value: { model } }, edits, estimate: known }) {
  if (!known?.model) return null;
  const isCassette = known.model.startsWith('cassette/');
  const isOther = known.model !== model && edits.model === undefined;
  return (isCassette || isOther) && div.note({ key: 'other-model', class: isOther ? 'lost' : '', role: 'status' }, icon('warn'), div({ dir: 'auto' }, isOther && [b(`${model} has answered so far, and this server asks ${known.model}.`), ' '],
    isCassette && 'A cassette gives its own answers in their order, whatever is asked.'));
}

function draw(work) {
  const { asked: { value: asked }, edits, trials, estimate: known } = work;
  const { request, model } = asked;
  const { settings = {}, tools = [] } = request;
  const system = typeof request.system === 'string' ? request.system : request.system?.body ?? '';
  const busy = trials.some(({ item, failed }) => !item && !failed);
  const allowed = may('playground');
  const numeric = (field, more, hint) => label.field(span(`${field[0].toUpperCase()}${field.slice(1)}`.replaceAll('_', ' ')), input({ type: 'number', ...more, value: edits[field] == null ? '' : String(edits[field]), placeholder: settings[field] ?? hint,
    oninput: ({ target }) => work.edit({ [field]: target.value === '' || !target.validity.valid ? undefined : Number(target.value) }) }), settings[field] != null && small('as recorded, unless changed'));
  const submit = (event) => {
    event.preventDefault();
    if (event.target.checkValidity?.() !== false) send(work);
  };
  return div.try({ key: `${work.run} ${work.seq}` },
    form.tryForm({ 'aria-label': 'The request', onsubmit: submit, onkeydown: (event) => { if (event.key === 'Enter' && (event.metaKey || event.ctrlKey) && !event.repeat) submit(Object.assign(event, {})); } },
      div.field(label({ for: 'try-system' }, 'System prompt ', span.quiet(edits.system === undefined ? 'as recorded' : 'changed')),
        textarea({ id: 'try-system', class: 'code', rows: Math.min(18, 3 + system.split('\n').length), spellcheck: 'false', dir: 'auto', value: edits.system ?? system, oninput: ({ target }) => work.edit({ system: target.value === system ? undefined : target.value }) }),
        edits.system !== undefined && linesDiff(system, edits.system)),
      div.pair(label.field(span('Model'), input({ list: 'try-models', value: edits.model ?? '', placeholder: settings.model ?? nameOf(known?.model ?? model), autocomplete: 'off', spellcheck: 'false', oninput: ({ target }) => work.edit({ model: target.value.trim() || undefined }) }),
        datalist({ id: 'try-models' }, known?.models?.map((one) => option({ key: one, value: one }))), small('of the same provider')),
      tools.length > 0 && label.field(span('Tools'), select({ value: edits.tool_choice ?? '', onchange: ({ target }) => work.edit({ tool_choice: target.value || undefined }) },
        option({ value: '' }, `As recorded: ${CHOICES[settings.tool_choice ?? 'auto']}`), Object.entries(CHOICES).map(([value, text]) => option({ key: value, value }, text))), small(`${plural(tools.length, 'tool')} offered; none is run`))),
      div.pair(numeric('temperature', { min: 0, max: 2, step: 'any' }, 'default of the model'), numeric('max_output_tokens', { min: 1, max: 4294967295, step: 1 }, 'no limit set')),
      messageRows(request.messages ?? [], edits.messages, work.open, (messages) => work.edit({ messages })),
      otherAnswers(work),
      known?.redacted && div.note(icon('warn'), div('This server hides values. The model gets the marks ', code('[redacted]'), ' in their place, as you see them.')),
      !tools.length && p.soft.small('No tools are offered.'),
      allowed ? div.sendLine(button.primary.large({ disabled: Boolean(known?.error) }, icon('send'), trials.length ? 'Send again' : 'Send'), span.soft.grow({ role: 'status' }, costOf(work)),
        Object.keys(edits).length > 0 && button.plain.small({ type: 'button', onclick: () => { work.edits = {}; work.edit({}); } }, 'Undo all edits'), kbd.wide('Ctrl ↵'))
        : p.note(icon('warn'), 'Sending needs the scope ', code('playground'), '.'),
      ),
    section.trials({ 'aria-label': 'Answers', tabindex: '0' },
      trials.length > 0 && div.line(span.grow(), button.small({ type: 'button', 'aria-pressed': String(work.marks), onclick: () => { work.marks = !work.marks; } }, work.marks ? 'Differences are marked' : 'Mark differences')),
      div.cardsOf(recorded(asked), trials.map((trial) => trialOf(trial, asked, work.marks))),
      trials.length > 0 && p.soft.small(busy ? '' : spent(trials), ' Kept while this page is open; no log has them.')));
}
const CHOICES = { auto: 'the model decides', required: 'it must call one', none: 'it must not call any' };

/** What the answers have cost together. */
function spent(trials) {
  const costs = trials.map(({ item }) => item?.answer?.cost).filter(Boolean);
  const unknown = trials.length - costs.length;
  if (!costs.length) return 'The cost is unknown.';
  return `${plural(trials.length, 'request')} for ${money(String(costs.reduce((sum, { amount }) => sum + Number(amount), 0)), costs[0].currency)}${unknown ? `, the cost of ${number(unknown)} is unknown` : ''}.`;
}
