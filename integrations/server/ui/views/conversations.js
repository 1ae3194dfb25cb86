// Conversations: a list, the thread of one, and a box to write in. A thread is made of the timelines of its runs.
import { tags, redraw } from '../lib/dom.js';
import { get, newKey, request } from '../lib/api.js';
import { at, caller, commandOf, go, main, may, query, ui } from '../lib/page.js';
import { icon, status } from '../lib/icons.js';
import { causeOf, quoted, standing, whyOf } from '../lib/cause.js';
import { date, line, moment, money, number, plural, shortId, titleWord } from '../lib/format.js';
import { command, empty, hasEnded, loading, resource } from '../parts/common.js';
import { json } from '../parts/json.js';
import { RunModel } from '../parts/model.js';
import { settle } from '../lib/settle.js';
import { costOfRuns, turnsOf } from '../parts/thread.js';

const { a, aside, b, button, code, dd, div, dl, dt, form, h1, h2, input, kbd, label, nav, option, p, section, select, small, span, textarea } = tags;

/** How many runs of a thread are read at once, the last ones first. */
const STEP = 8;
/** What a person has typed, by conversation, for as long as the page is open. */
const drafts = new Map();
const draftOf = (id) => {
  if (!drafts.has(id)) drafts.set(id, { text: '', busy: false, problem: null, key: null });
  return drafts.get(id);
};

/** What the runs of a conversation have cost, as far as known. */
const spentOn = (costs, partly) => (costs.length ? ` · ${partly ? 'at least ' : ''}${costs.map(({ amount, currency }) => money(amount, currency)).join(' + ')}` : partly ? ' · cost unknown' : '');

export default function conversationsView(route, frame) {
  let [one, timer, shows, words] = [null, 0, 'All', ''];
  const list = resource((old) => get('/conversations', { limit: Math.max(50, old?.items.length ?? 0) }));
  const brains = resource(() => get('/brains'));
  const open = ({ rest: [id], query: given }) => {
    if (one?.id === id && (id || !one)) return;
    one?.close();
    one = id === 'new' ? begin(given) : id ? threadOf(id, frame) : null;
  };
  const more = async () => {
    const { value } = list;
    const page = await get('/conversations', { limit: 50, cursor: value.next }).catch(() => null);
    if (page) list.value = { ...page, items: [...value.items, ...page.items] };
  };
  const VIEWS = { All: () => true, 'Waits for a person': ({ last }) => last.pending > 0 };
  /** Whether a conversation has each of the words that a person has typed. */
  const fits = ({ id, user, message, last: { brain, result } }) => words.toLowerCase().split(/\s+/).every((word) => [id, user, message, brain, result].some((text) => text?.toLowerCase().includes(word)));
  const listed = () => list.value?.items.filter(VIEWS[shows]).filter(fits) ?? [];
  const step = (by) => () => {
    const items = listed();
    const next = items[items.findIndex(({ id }) => id === one?.id) + by];
    if (next) go(at('conversations', next.id));
  };
  const entry = ({ id, user, runs, message, last, costs, partly_priced: partly }) => {
    const name = standing(last);
    const why = last.status === 'completed' ? '' : causeOf(whyOf(last)).brief;
    return a({ key: id, href: ui(at('conversations', id)), 'aria-current': id === one?.id && 'true' }, b({ dir: 'auto' }, line(message ?? why, 90) || shortId(id)), small({ title: date(last.updated) }, moment(last.updated)),
      small.cut({ dir: 'auto', class: last.pending ? 'wait' : last.status === 'failed' ? 'bad' : '' }, last.pending ? [icon('clock'), ' ', quoted(causeOf(last.why ?? 'Waits for a person').brief)] : name !== 'completed' ? [status(name), ' ', quoted(why)] : last.result),
      small.cut(`${last.brain}${user ? ` · ${user}` : ''} · ${plural(runs, 'turn')}${spentOn(costs, partly)} · ${shortId(id)}`));
  };
  /** Narrows those that are read already: few are looked for by hand. */
  const filter = ({ items, next }) => items.length > 5 && label.find(icon('search'), input({ type: 'search', value: words, 'aria-label': 'Filter conversations', placeholder: next ? `Filter the ${items.length} that are shown` : 'Filter by words, user or brain', autocomplete: 'off', oninput: ({ target }) => { words = target.value; } }));
  const entries = ({ items, next, capped }) => [filter({ items, next }), listed().length ? nav({ 'aria-label': 'Conversations' }, listed().map(entry)) : p.soft.hint(words ? 'None of them has these words.' : shows === 'All' ? 'No conversations yet.' : 'No conversation waits for a person.'),
    capped && p.soft.hint('The search has stopped at its maximum.'), next && p.more(button.small({ onclick: more }, 'Show more'))];
  open(route);
  return {
    title: () => (one && one.id !== 'new' ? `Conversation ${shortId(one.id)}` : 'Conversations'),
    update(to) {
      open(to);
      return true;
    },
    keys: () => ({ j: ['Next conversation', step(1)], k: ['Conversation before', step(-1)], n: ['New conversation', () => go('/conversations/new')],
      '/': ['Filter', () => [...document.querySelectorAll('.talks input')].find((field) => field.checkVisibility())?.focus()],
      ...(one && { r: ['Write', () => document.getElementById('write')?.focus()], Escape: ['All conversations', () => go('/conversations')] }) }),
    change(run) {
      one?.change?.(run);
      clearTimeout(timer);
      timer = setTimeout(list.load, 300);
    },
    hide: () => one?.stop?.(),
    head: () => div.bar(one ? [a.quiet({ href: ui('/conversations') }, 'Conversations'), span.quiet('/'), h1.cut(one.id === 'new' ? 'New conversation' : one.name())] : h1('Conversations'),
      nav.views.grow.wide({ 'aria-label': 'Which' }, Object.entries(VIEWS).map(([name, test]) => button({ key: name, 'aria-pressed': String(name === shows), onclick: () => { shows = name; } }, name,
        list.value && span.count(list.value.items.filter(test).length + (list.value.next ? '+' : ''))))), span.grow(),
      may('run') && one?.id !== 'new' && a.button({ class: one ? '' : 'primary', href: ui('/conversations/new') }, icon('plus'), span.wide('New conversation'))),
    queue: () => list.value?.items.length > 0 && aside.queue.talks({ key: 'queue', 'aria-label': 'Conversations' }, entries(list.value)),
    render: () => {
      if (one?.id === 'new') return brains.show((all) => newForm(one, all));
      if (one) return one.render();
      return list.show((all) => (all.items.length ? [div.queue.inMain.talks.narrow({ key: 'list' }, entries(all)), div.wide(empty('Choose a conversation', 'Its messages and answers appear here.'))]
        : empty('No conversations yet', 'A conversation is a chain of runs: each message begins or continues one.', may('run') && a.button.primary({ href: ui('/conversations/new') }, 'Begin one'))));
    },
    beside: () => one?.model() && aside.beside.contextOf({ key: 'context', 'aria-label': 'About the conversation' }, one.about()),
    close() {
      clearTimeout(timer);
      one?.close();
    },
  };
}

/** The form of a new conversation. */
const begin = (given) => ({ id: 'new', brain: given.get('brain') ?? '', name: '', user: '', model: () => null, close() {} });
function newForm(one, { items }) {
  const startable = items.filter(({ start }) => start.allowed);
  one.brain ||= startable[0]?.title ?? '';
  const draft = draftOf('new');
  const send = () => {
    const id = one.name.trim() || newKey().slice(0, 8);
    return sendTo(id, draft, { brain: one.brain, ...(one.user.trim() && { user: one.user.trim() }) }, () => go(at('conversations', id)));
  };
  if (!startable.length) return empty('No brain can be started here', 'This server has no brains, or you may start none.');
  return div.newTalk({ key: 'new' }, label.field(span('Brain'), select({ value: one.brain, onchange: ({ target }) => { one.brain = target.value; } }, startable.map(({ title }) => option({ key: title, value: title }, title))),
    small(startable.find(({ title }) => title === one.brain)?.description)),
  div.pair(label.field(span('Name ', span.quiet('(optional)')), input({ value: one.name, autocomplete: 'off', maxlength: 100, oninput: ({ target }) => { one.name = target.value; } }), small('A known name continues that conversation.')),
    caller.session?.user == null && label.field(span('User ', span.quiet('(optional)')), input({ value: one.user, autocomplete: 'off', oninput: ({ target }) => { one.user = target.value; } }), small('For whom it is kept.'))),
  writeBox(draft, send, { hint: 'Begins the conversation', to: one.brain }));
}

/** Sends a message. One without an answer may have arrived, so that its repetition has the same key. */
async function sendTo(id, draft, more, done) {
  if (draft.busy || !draft.text.trim()) return;
  Object.assign(draft, { busy: true, key: draft.problem?.status === 0 ? draft.key : newKey(), problem: null });
  redraw();
  try {
    await request('POST', `/conversations${at(id)}/messages`, { body: { text: draft.text, ...more }, headers: { 'Idempotency-Key': draft.key } });
    draft.text = '';
    await done();
  } catch (problem) {
    draft.problem = problem;
  }
  draft.busy = false;
  redraw();
}

/** The box to write in: Enter sends, with Shift it begins a line. */
function writeBox(draft, send, { hint, to }) {
  const submit = (event) => {
    event.preventDefault();
    send();
  };
  const onkeydown = (event) => { if (event.key === 'Enter' && !event.shiftKey && !event.isComposing && !event.repeat) submit(event); };
  const { problem } = draft;
  return form.write({ key: 'write', onsubmit: submit },
    textarea({ id: 'write', 'aria-label': `Message to ${to}`, placeholder: `Write to ${to}`, rows: Math.min(8, 1 + draft.text.split('\n').length), dir: 'auto', value: draft.text, oninput: ({ target }) => { draft.text = target.value; }, onkeydown }),
    problem && div.note.failed({ role: 'alert' }, icon('cross'), div(quoted(problem.message), problem.slug === 'options-invalid' && p('It needs options: ', a({ href: ui(at('brains', to)) }, `start ${to} by its form`), '.'))),
    div.line(span.soft(hint), span.grow(), kbd.wide('↵'), button.primary({ disabled: draft.busy || !draft.text.trim() }, icon('send'), draft.busy ? 'Sending…' : 'Send')));
}

/** A conversation: its runs, of which the last ones are read. */
function threadOf(id, frame) {
  let [models, first, timer, isClosed, isNew] = [[], 0, 0, false, true];
  const draft = draftOf(id);
  const open = new Map();
  let memory = null;
  const data = resource(async () => {
    const { runs, user } = await get(`/conversations${at(id)}`);
    const known = new Map(models.map((model) => [model.id, model]));
    if (isNew) first = Math.max(0, runs.length - STEP);
    isNew = false;
    const shown = runs.slice(first);
    for (const model of models) if (!shown.some((run) => run.id === model.id)) model.close();
    models = shown.map((run) => known.get(run.id) ?? new RunModel(run.id, () => {}, () => {}));
    await Promise.all(models.map((model) => (model.run ? model.refresh() : model.load())));
    const last = models.at(-1);
    // What is known of it stays while it is read again.
    if (last && !isClosed) {
      if (memory) memory.load();
      else memory = resource(() => get(`${models.at(-1).path}/state`, { at: models.at(-1).head }));
    }
    return { runs, user };
  });
  const last = () => models.at(-1);
  const isAtEnd = () => main().scrollHeight - main().scrollTop - main().clientHeight < 120;
  let [wasAtEnd, shape] = [true, ''];
  /** Follows the end, unless the reader has scrolled up. Cards that move must not be hit by a click. */
  const drawn = () => {
    const now = `${models.map((model) => `${model.head} ${model.nodes?.length}`).join()} ${main().scrollHeight}`;
    if (now === shape) return;
    shape = now;
    if (!wasAtEnd) return;
    main().scrollTop = main().scrollHeight;
    settle();
  };
  const send = () => sendTo(id, draft, { brain: data.value.runs.at(-1).brain }, () => {
    wasAtEnd = true;
    return data.load();
  });
  const earlier = async () => {
    first = Math.max(0, first - STEP);
    wasAtEnd = false;
    await data.load();
  };
  return {
    id, model: last,
    name: () => data.value?.runs[0]?.brain ?? shortId(id),
    stop: () => models.forEach((model) => model.stop?.()),
    change(run) {
      // A stream follows the last run itself; another one belongs to a new message.
      if (run?.conversation && run.conversation !== id) return;
      clearTimeout(timer);
      timer = setTimeout(() => {
        data.load();
        last()?.run && last().follow();
      }, 200);
    },
    render: () => data.show(({ runs }) => {
      wasAtEnd = shape === '' || isAtEnd();
      const model = last();
      const waits = model?.run?.pending?.length > 0;
      const hint = !model?.run ? '' : waits ? 'Answers as soon as what waits is decided' : hasEnded(model.run) ? 'Begins the next turn' : 'Is read with the next step of the run';
      return div.thread({ key: id, drawn },
        first > 0 && p.more(button.small({ onclick: earlier }, `Show ${plural(Math.min(STEP, first), 'earlier turn')} of ${number(first)}`)),
        models.map((one) => (one.trouble ? p.problem({ key: one.id }, one.trouble.message) : one.run ? section.turns({ key: one.id, 'aria-label': `Run ${shortId(one.id)}` }, turnsOf(one, frame)) : loading())),
        may('run') ? writeBox(draft, send, { hint, to: runs.at(-1)?.brain ?? 'it' }) : p.soft('To write, you need the scope ', code('run'), '.'));
    }),
    about() {
      const { runs, user } = data.value ?? { runs: [] };
      const used = runs.reduce((sum, { usage }) => sum + (usage?.input ?? 0) + (usage?.output ?? 0), 0);
      const brain = runs.at(-1)?.brain;
      const rows = { Brain: brain && a({ href: ui(at('brains', brain)) }, brain), User: user, Turns: a({ href: ui(`/runs${query({ conversation: id })}`) }, plural(runs.length, 'run')), Tokens: used && number(used), Cost: costOfRuns(runs) ?? (used ? 'unknown' : null) };
      const state = memory?.value?.state;
      return [section({ key: 'facts' }, h2('Conversation ', code(shortId(id))), dl.fields(Object.entries(rows).filter(([, value]) => value).map(([name, value]) => div({ key: name }, dt(name), dd(value))))),
        state != null && JSON.stringify(state) !== '{}' && section({ key: 'state' }, h2('State after the last turn'), div.well(json(state, { open, label: 'State', depth: 2 }))),
        brain && caller.session.program && section({ key: 'else' }, h2('Continue in a terminal'), command(commandOf('chat', titleWord(brain), '--conversation', id)))];
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
      models.forEach((model) => model.close());
    },
  };
}
