// The event log: one row an event, loaded page by page around the view; the selected event opens beside it.
import { tags, redraw } from '../lib/dom.js';
import { List } from '../lib/windowed_list.js';
import { get } from '../lib/api.js';
import { apiUrl, at, go, later, query } from '../lib/page.js';
import { brief, clock, date, line, micros, number, plural, who } from '../lib/format.js';
import { copyButton, facts, loading } from '../parts/common.js';
import { json } from '../parts/json.js';
import { searchBar } from './search.js';

const { a, aside, button, code, div, h2, header, input, label, p, span } = tags;
const minimap = later('minimap');

const PAGE = 100;
/** How many pages are kept. The oldest leave; their rows are read again when they come into view. */
const KEPT = 30;
/** When a page that could not be read is read again, in milliseconds. */
const RETRY = 500;
const ENVELOPE = ['seq', 'at', 'epoch', 'clock', 'with_next', 'path', 'type', 'v'];
const TECHNICAL = [...ENVELOPE, 'fingerprint', 'stages', 'tools', 'signal', 'projection', 'arguments_hash'];
const without = (event, names) => Object.fromEntries(Object.entries(event).filter(([name, value]) => !names.includes(name) && value !== null));

/** Events in one line; others are their fields. */
const WORDS = {
  LOOP_TOOL_CALL: ({ tool, arguments: given }) => `${tool} ${brief(given)}`,
  LOOP_MODEL_RESULT: ({ parts = [] }) => {
    const calls = parts.filter(({ type }) => type === 'call').length;
    return [...parts.map((part) => part.text), calls && plural(calls, 'call')].filter(Boolean).join(' · ');
  },
  LOOP_TOOL_RESULT: ({ result: { type, output, message, reason } }) => `${type} ${brief(output ?? message ?? reason)}`,
  LOOP_APPROVAL_DECIDED: ({ decision, actor, reason }) => `${decision} by ${who(actor)} ${reason ?? ''}`,
  LOOP_WAIT: ({ waits }) => waits.map((wait) => wait.prompt ?? `${wait.webhook} ${wait.identifier}`).join(' or '),
  STAGE_WAIT: ({ waits, due }) => waits.map((wait) => wait.prompt ?? `${wait.webhook} ${wait.identifier}`).join(' or ') || `until ${date(due)}`,
  STEP_COMPLETE: ({ change: { state, patch = [] } = {}, duration }) => [state !== undefined ? brief(state) : patch.map(({ path, value }) => `${path.slice(1).replaceAll('/', ' › ')}: ${brief(value ?? null, 60)}`).join(' · '), micros(duration)].filter(Boolean).join(' · '),
  GROUP_START: ({ options }) => plural(options.length, 'brain'),
  UNDO_START: ({ steps }) => plural(steps.length, 'stage'),
  GUARD_CHECKED: ({ passed, reason }) => (passed ? 'passed' : `did not pass${reason == null ? '' : `: ${brief(reason)}`}`),
};
function summary(event) {
  const rest = without(event, TECHNICAL);
  return brief(WORDS[event.type]?.(event) ?? rest.message ?? rest.text ?? rest.input ?? rest.title ?? rest.system?.body ?? rest, 200);
}
const FAMILIES = { bad: /ERROR|RETRY|FAILED|REFUSED|STOPPED|NOT_CLAIMED/, wait: /APPROVAL|BUDGET|WAIT|RESUME|PAUSED/, model: /MODEL/, tool: /TOOL|OUTPUT/ };
const family = (type) => Object.keys(FAMILIES).find((name) => FAMILIES[name].test(type));

export default function eventsTab(run) {
  const { model, view: { route: { query: given, rest } } } = run;
  const path = `${model.path}/events`;
  const filter = { type: given.get('type') ?? '', path: given.get('path') ?? '' };
  let [found, selected, jump] = [null, rest[0] && Number(rest[0]), rest[0] != null];
  const [open, pages] = [new Map(), new Map()];
  const count = () => found?.items.length ?? model.head + 1;
  const event = (index) => (found ? found.items[index] : pages.get(Math.floor(index / PAGE))?.[index % PAGE]);
  const index = () => (found ? found.items.findIndex(({ seq }) => seq === selected) : selected ?? -1);
  const select = (seq) => {
    const opens = selected == null;
    selected = seq;
    run.open(opens, seq);
  };
  const show = (seq) => {
    select(seq);
    list.show(index());
  };
  const list = new List({ name: 'events', height: 28, count, row, onwindow: (first, last) => {
    for (let page = Math.floor(first / PAGE); !found && page * PAGE < last; page++) read(page);
  } });
  const search = searchBar(model, show);

  async function read(page) {
    // The last page grows.
    const known = pages.get(page);
    const from = page * PAGE;
    if (pages.has(page) && (!known || known.length === Math.min(PAGE, model.head + 1 - from))) return;
    pages.set(page, known && null);
    const answer = await get(path, { after: from ? from - 1 : null, before: from + PAGE, limit: PAGE }).catch(() => null);
    if (answer) pages.set(page, answer.items);
    else setTimeout(() => { pages.delete(page); redraw(); }, RETRY);
    for (const old of pages.keys()) if (pages.size > KEPT && old !== page) pages.delete(old);
  }
  /** Reads what the filter lets through, or more of it. */
  async function load(more) {
    const asked = { ...filter };
    const before = more ? found.items : [];
    if (!query(asked)) { found = null; return; }
    const { items, next } = await get(path, { ...asked, limit: 500, after: before.at(-1)?.seq }).catch(() => ({ items: [] }));
    if (query(asked) === query(filter)) found = { items: [...before, ...items], next };
  }
  const filterBy = (name, text, placeholder) => label(text, input({ type: 'text', value: filter[name], placeholder, onchange: ({ target }) => {
    filter[name] = target.value.trim();
    go(at('runs', model.id, 'events') + query(filter), true);
    load();
  } }));
  load();
  const keys = list.keys('event', index, (to) => select(found ? found.items[to]?.seq : to));
  return {
    keys: () => ({ ...search.keys, ...keys, ...(selected != null && { Escape: ['Close the event', () => select(null)] }) }),
    route: (seq) => { selected = seq; },
    deselect: () => { selected = null; },
    reveal: ({ seq }) => show(seq),
    render: () => [search.render(),
      div.filters(filterBy('type', 'Type', 'LOOP_TOOL_CALL, …'), filterBy('path', 'Path', 'Chat/3.0'),
        span.soft({ role: 'status' }, plural(count(), 'event'), found?.next && ', there are more'), found?.next && button.small({ onclick: () => load(true) }, 'Show more')),
      div.split({ class: selected != null && 'open', drawn },
        div.mapped({ key: 'log' }, list.view({ role: 'grid', 'aria-label': 'Events' }, selected != null && `event-${selected}`), !found && minimap(run)),
        selected != null && detail(found?.items[index()] ?? pages.get(Math.floor(selected / PAGE))?.[selected % PAGE]))],
    close: () => list.close(),
  };
  function drawn() {
    if (jump && !found) list.show(selected, 'center');
    jump = false;
  }
  function row(place) {
    const item = event(place);
    const seq = item?.seq ?? place;
    const isSelected = seq === selected;
    const cell = (name, value, props) => span[name]({ role: 'gridcell', ...props }, value);
    return div.eventRow({ key: seq, id: `event-${seq}`, role: 'row', 'aria-rowindex': place + 1, 'aria-selected': String(isSelected),
      memo: [item, isSelected], class: isSelected && 'selected', onclick: () => select(seq) },
    () => [cell('seq', number(seq)), item ? [cell('time', clock(item.at)), cell('type', item.type, { class: family(item.type) }),
      cell('path', item.path), cell('text', line(summary(item)), { dir: 'auto' })] : cell('type', '')]);
  }
  function detail(item) {
    if (!item) {
      const exists = selected >= 0 && selected <= model.head;
      if (exists) read(Math.floor(selected / PAGE));
      return aside.detail({ key: 'detail' }, exists ? loading() : p.soft(`The run has no event ${selected}.`));
    }
    const [{ seq, path: place, type }, fields] = [item, without(item, ENVELOPE)];
    const link = (tab, text) => a({ href: run.url(tab, seq) }, text);
    return aside.detail({ key: 'detail', 'aria-label': `Event ${seq}` },
      header(h2(`Event ${seq}`), span.grow(), button.plain({ onclick: () => select(null) }, 'Close')),
      facts({ type: code(type), path: place && code(place), time: clock(item.at), epoch: item.epoch }),
      p.tools(link('transcript', 'Transcript'), link('state', 'State here'), type.startsWith('LOOP_MODEL') && link('requests', 'Request'),
        button.plain.small({ onclick: () => run.dialog('fork', seq) }, 'Fork here'), copyButton(JSON.stringify(item, null, 2), 'Copy JSON'),
        copyButton(`curl '${location.origin}${apiUrl(path).replaceAll("'", '%27')}?after=${seq - 1}&limit=1'`, 'Copy as curl'), place && copyButton(place, 'Copy path')),
      Object.keys(fields).length > 0 ? json(fields, { open, label: 'Fields', depth: 3 }) : p.soft('It has no further fields.'));
  }
}
