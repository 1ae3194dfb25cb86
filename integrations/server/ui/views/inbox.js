// The inbox: what waits for a person in all runs, those that expire first on top. An item leaves when the log says so.
import { tags, redraw } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { at, go, main, note, pref, query, runUrl, say, setPref } from '../lib/page.js';
import { ago, date, shortId, who } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { placeWords, quoted } from '../lib/cause.js';
import { MOD } from '../lib/keys.js';
import { settle } from '../lib/settle.js';
import { asks, approveShown, edges, isEndShown, isInView, toggle } from '../parts/decide.js';
import { decidedList } from '../parts/decided_today.js';
import { draftOf, follow, isOver, withDrafts } from '../parts/drafts.js';
import batch, { reasonsOf } from '../parts/batch.js';
import { batches, toolsOf } from '../parts/batches.js';
import { empty, resource, when } from '../parts/common.js';
import { picks } from '../parts/picks.js';

const { a, aside, b, button, code, dd, div, dl, dt, h1, h2, kbd, nav, p, section, small, span } = tags;

/** The kinds of items, as views of the inbox. */
const VIEWS = { All: () => true, Approvals: ({ kind }) => kind === 'approval', Questions: ({ kind }) => kind === 'answer', Limits: ({ kind }) => kind === 'budget' };
/** What was decided today is a view of its own, in which nothing can be decided. */
const DECIDED = 'Decided today';
const midnight = () => new Date(new Date().setHours(0, 0, 0, 0)).toISOString();
const SHAPES = { approval: 'clock', answer: 'message', budget: 'warn' };

/** The place of an item, the same in every list: an item that moves loses the focus. */
const order = ({ expires, since, run, seq }) => `${expires ?? '9'} ${since} ${run} ${String(seq).padStart(12, '0')}`;
/** How many items are asked for at once. */
const AT_ONCE = 6;
/** What the log says about the items of the list: what happened before, the schema of the arguments, and whether the code still fits. */
const details = new Map();
/** Adds to listed items what the list does not have, which is asked again when a run has changed. */
async function detailed(items) {
  const ids = new Set(items.map(({ id }) => id));
  for (const id of details.keys()) if (!ids.has(id)) details.delete(id);
  const asked = items.filter(({ id }) => !details.has(id));
  const ask = async () => {
    for (let item; (item = asked.shift());) {
      // An item that has just been decided leaves the list by itself.
      const found = await get(`/runs${at(item.run)}/calls${at(item.id)}`, { context: 6 }).catch(() => null);
      if (found) details.set(item.id, { input: found.input, context: found.context, arguments_schema: found.arguments_schema, allowed: found.allowed });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, ask));
  const whole = items.map((item) => ({ ...item, ...details.get(item.id) }));
  // A server with other code may allow it, and a person other rights.
  for (const { id, allowed } of whole) if (!allowed.allowed) details.delete(id);
  return whole;
}
/** The calls of one answer stand together. */
const sorted = (items) => batches(items.toSorted((a, b) => (order(a) < order(b) ? -1 : 1))).flatMap(({ list }) => list);

/** The view with a name in lower case, as an address has it. */
const viewOf = (name) => [...Object.keys(VIEWS), DECIDED].find((view) => view.toLowerCase() === name) ?? 'All';

export default function inboxView(route) {
  let [selected, place, timer, moved, shows, gone] = [route.query.get('item'), 0, 0, Boolean(route.query.get('item')), viewOf(route.query.get('kind')), null];
  const data = resource(async (old) => {
    const { items: listed, next } = await get('/pending', { person: true, limit: 100 });
    const items = await detailed(listed);
    follow(items);
    if (!old && !items.some(({ id }) => id === selected)) selected = sorted(items).filter(VIEWS[shows] ?? (() => false))[0]?.id;
    const left = old?.items.find(({ id }) => id === selected);
    if (left && !items.some(({ id }) => id === left.id)) sayGone(left);
    return { items, next };
  });
  /** Says what became of the selected item that has left the list without a decision of this window. */
  async function sayGone(item) {
    if (draftOf(item).sent) return;
    const { problem } = await get(`/runs${at(item.run)}/calls${at(item.id)}/decision`).catch((refused) => ({ problem: refused }));
    const made = problem?.decision;
    gone = { item, said: made ? `${who(made)} ${made.verdict} this at ${date(made.at)}.` : problem?.detail ?? problem?.message ?? 'It does not wait any more.' };
    say(gone.said);
    redraw();
  }
  const history = resource(() => get('/decisions', { since: midnight(), limit: 100 }));
  const all = () => sorted(withDrafts(data.value?.items ?? []));
  /** Whether nobody has decided an item yet, as far as this window knows. */
  const waits = (item) => !isOver(draftOf(item));
  /** The address has the view and the item, so that it can be sent and survives a reload. */
  const keep = () => note(`/inbox${query({ kind: shows === 'All' ? null : shows.toLowerCase(), item: selected })}`);
  const items = () => (shows === DECIDED ? [] : all().filter(VIEWS[shows]));
  // By id, not by place: a new item must not get the key that was meant for another one. If the item leaves, no item is
  // selected until the reader moves.
  const current = () => items().find((item) => item.id === selected);
  const several = picks(items);
  const move = (by) => () => {
    const index = items().indexOf(current());
    place = Math.max(0, Math.min(items().length - 1, index < 0 ? place : index + by));
    selected = items()[place]?.id;
    keep();
    moved = true;
    // Enter and Space are not for a button of the item before.
    document.activeElement?.closest('.decide button')?.blur();
  };
  const drawn = (node) => {
    const [item, { scrollTop }, [top, bottom]] = [moved && node.querySelector('.selected'), main(), edges(node)];
    if (item) {
      // A reader begins with the top of an item that is longer than what is in view.
      const isLong = item.offsetHeight > bottom - top;
      item.scrollIntoView({ block: isLong ? 'start' : 'nearest' });
      if (!isLong) main().scrollBy(0, Math.max(0, item.getBoundingClientRect().bottom - bottom));
    }
    if (scrollTop !== main().scrollTop) settle();
    moved = false;
  };
  const select = ({ target }) => {
    const id = target.closest('.decide')?.id.slice('item-'.length);
    if (id && id !== selected) {
      selected = id;
      keep();
    }
    redraw();
  };
  /** A key acts on the selected item, if the reader sees it; otherwise it brings the item into view. */
  const act = (does) => ({ repeat } = {}) => {
    const item = current();
    if (!item || repeat) return;
    if (isInView(item)) does(item);
    else moved = true;
  };
  const drawnAs = (item) => ({ selected: item === current(), pick: several.picker(item) });
  const answer = ({ id }) => document.getElementById(`item-${id}`)?.querySelector('input, textarea, select, .primary')?.focus();
  /** Other items come to the places of those that were there. */
  const show = (name) => {
    shows = name;
    several.clear();
    selected = items()[0]?.id;
    keep();
    settle();
  };
  return {
    title: () => 'Inbox',
    update({ query: given }) {
      if (viewOf(given.get('kind')) !== shows) show(viewOf(given.get('kind')));
      const wanted = given.get('item');
      if (wanted && wanted !== selected) [selected, moved] = [wanted, true];
      return true;
    },
    keys: () => ({
      j: ['Next item', move(1)], k: ['Item before', move(-1)], a: ['Approve, grant or answer', act((item) => (item.kind === 'answer' ? answer : approveShown)(item))],
      r: ['Reject…', act((item) => item.kind !== 'answer' && toggle(item, 'reject'))], e: ['Edit the arguments', act((item) => item.editable && toggle(item, 'edit'))],
      x: ['Choose several of one tool', act((item) => several.canPick(item) && isEndShown(item) && several.pick(item))],
      'mod+Enter': ['Decide as the form shows', act((item) => (item.kind === 'answer' && draftOf(item).value === undefined ? answer : approveShown)(item))],
      Enter: ['Open the run', act(({ run, seq }) => go(at('runs', run, 'transcript', seq)))],
    }),
    /** What runs have recorded since is part of the context of their items. */
    change() {
      details.clear();
      clearTimeout(timer);
      timer = setTimeout(() => {
        data.load();
        history.load();
      }, 60);
    },
    head: () => [div.bar(h1('Inbox'), nav.views.grow({ 'aria-label': 'Kinds' }, Object.entries(VIEWS).map(([name, test]) => button({ key: name, 'aria-pressed': String(name === shows), onclick: () => show(name) }, name,
      data.value && span.count(all().filter(waits).filter(test).length + (data.value.next ? '+' : '')))),
      button({ key: DECIDED, 'aria-pressed': String(shows === DECIDED), onclick: () => show(DECIDED) }, DECIDED, history.value && span.count(history.value.items.length + (history.value.capped ? '+' : '')))),
    'Notification' in globalThis && Notification.permission !== 'denied' && button.wide({ 'aria-pressed': String(pref('notify') === 'on'), onclick: notify }, icon('bell'), pref('notify') === 'on' ? 'Notifications on' : 'Notify me'),
    span.keyHints.wide(Object.entries({ j: '', k: 'move', e: 'edit', a: 'approve', r: 'reject', [`${MOD} ↵`]: 'send from a field' }).map(([key, does]) => [kbd(key.length > 1 ? key : key.toUpperCase()), ' ', does, ' '])))],
    queue: () => data.value && shows !== DECIDED && aside.queue({ key: 'queue', 'aria-label': 'Queue' }, h2(span('Waiting, what expires first on top'), span(items().filter(waits).length)), batches(items()).map(({ key, list, list: [item], isBatch }) => button({ key, 'aria-current': list.some(({ id }) => id === selected) && 'true', onclick: () => {
      if (!list.some(({ id }) => id === selected)) selected = item.id;
      keep();
      moved = true;
    } }, icon(SHAPES[item.kind] ?? 'clock'), b({ class: list.every((one) => isOver(draftOf(one))) && 'gone', dir: 'auto' }, isBatch ? `${toolsOf(list).map(([tool, n]) => (n > 1 ? `${tool} ×${n}` : tool)).join(', ')}: ${reasonsOf(list)}` : [item.kind === 'approval' && `${item.tool}: `, asks(item)]), small({ title: date(item.since) }, ago(item.since).replace(/ ago$/, '')),
    small(item.brain, ' ', shortId(item.run), item.user && ` · for ${item.user}`))),
      history.value?.items.length > 0 && [h2(span('Decided today'), span(history.value.items.length + (history.value.capped ? '+' : ''))), decidedList(history.value)]),
    render: () => [
      shows === DECIDED ? div.inbox({ key: 'decided' }, history.show(decidedList)) : data.show(({ next }, list = items()) => [
        list.length ? div.inbox({ key: 'list', drawn, onclick: select, ref: (node) => node.addEventListener('focusin', select) }, batches(list).map((group) => batch(group, { inbox: true, draw: drawnAs })))
          : shows === 'All' ? empty('Nothing waits for a person', 'Approvals, requests for more budget and questions of all runs appear here.') : empty(`No ${shows.toLowerCase()}`, 'Nothing of this kind waits.', button({ onclick: () => show('All') }, 'Show all')),
        next && p.soft.more(`Showing the first ${data.value.items.length}.`)]),
      several.bar()],
    // The pane stays when the selected item has left, so that no card moves under the pointer.
    beside: () => items().length > 0 && aside.beside.contextOf({ key: 'context', 'aria-label': 'About the selected item' }, current() ? about(current())
      : [gone && gone.item.id === selected && section({ key: 'gone' }, h2('Decided elsewhere'), p({ dir: 'auto' }, gone.item.kind === 'approval' && [code(gone.item.tool), ': '], gone.said)), section({ key: 'none' }, h2('Nothing selected'), p.soft('Click an item, or press ', kbd('J'), ' for the next one.'))]),
    close: () => clearTimeout(timer),
  };
}

/** What belongs to an item and is no part of the decision itself. */
function about(item) {
  const { brain, run, tool, call, user, since, expires, reason, actor, allowed } = item;
  const rows = { Brain: a({ href: runUrl(run) }, brain, ' ', shortId(run)), Place: placeWords(call), For: user, Asked: when(since), Expires: expires && when(expires), From: actor && who(actor) };
  return [section({ key: 'why' }, h2('Why it asks'), p({ dir: 'auto' }, quoted(reason ?? asks(item))), tool && p.soft('Tool ', code(tool))),
    section({ key: 'where' }, h2('Where it stands'), dl.fields(Object.entries(rows).filter(([, value]) => value).map(([name, value]) => div({ key: name }, dt(name), dd(value)))), p(a({ href: runUrl(run, 'transcript', item.seq) }, 'Open the run there'))),
    section({ key: 'who' }, h2('Who may decide'), p.soft(isOver(draftOf(item)) ? 'It is decided, or closed.' : allowed.allowed ? 'You may. Others with the scope `decide` may, too; the first decision counts.'.split('`').map((part, i) => (i % 2 ? code(part) : part)) : allowed.reason))];
}

/** Turns notifications of new items on or off, after the browser has asked the person. */
async function notify() {
  if (pref('notify') === 'on') return setPref('notify', 'off');
  const answer = await Notification.requestPermission();
  setPref('notify', answer === 'granted' ? 'on' : 'off');
  return answer === 'granted' || say('The browser does not allow notifications of this page.', true);
}
