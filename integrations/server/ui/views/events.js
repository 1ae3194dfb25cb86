// The event log: one row an event, loaded page by page around the view; the selected event opens beside it.
import { tags } from '../lib/dom.js';
import { List } from '../lib/list.js';
import { get, at, ui, apiUrl } from '../lib/api.js';
import { brief, clock, line, number, plural, who } from '../lib/format.js';
import { copyButton, facts } from '../parts/common.js';
import { json } from '../parts/json.js';
import { minimap } from '../parts/minimap.js';
import { searchBar } from './search.js';

const { a, aside, button, code, div, h2, header, input, label, p, span } = tags;

const PAGE = 100;
const KEPT = 30;
const ENVELOPE = ['seq', 'at', 'epoch', 'clock', 'path', 'type', 'v'];
const TECHNICAL = [...ENVELOPE, 'fingerprint', 'stages', 'tools', 'signal', 'projection', 'arguments_hash'];
const without = (event, names) => Object.fromEntries(Object.entries(event).filter(([name, value]) => !names.includes(name) && value !== null));

const decision = ({ decision: made, actor, reason }) => `${made} by ${who(actor)} ${reason ?? ''}`;
/** Events in one line; others are their fields. */
const WORDS = {
  LOOP_TOOL_CALL: ({ tool, arguments: given }) => `${tool} ${brief(given)}`,
  LOOP_MODEL_RESULT: ({ parts = [] }) => parts.map((part) => part.text ?? part.type).join(' '),
  LOOP_TOOL_RESULT: ({ result: { type, output, message, reason } }) => `${type} ${brief(output ?? message ?? reason)}`,
  LOOP_APPROVAL_DECIDED: decision,
  BUDGET_DECIDED: decision,
  LOOP_WAIT: ({ waits }) => waits.map((wait) => wait.prompt ?? `${wait.webhook} ${wait.identifier}`).join(' or '),
};
function summary(event) {
  const rest = without(event, TECHNICAL);
  return brief(WORDS[event.type]?.(event) ?? rest.message ?? rest.text ?? rest.input ?? rest.title ?? rest.system?.body ?? rest, 200);
}

const FAMILIES = { bad: /ERROR|RETRY|FAILED|REFUSED|STOPPED|NOT_CLAIMED/, wait: /APPROVAL|BUDGET|WAIT|RESUME|PAUSED/, model: /MODEL/, tool: /TOOL|OUTPUT/ };
const family = (type) => Object.keys(FAMILIES).find((name) => FAMILIES[name].test(type));

export function eventsTab(tools) {
  const { model, view, context } = tools;
  const { query, rest } = view.route;
  const base = `/runs${at(model.id, 'events')}`;
  let filter = { type: query.get('type') ?? '', path: query.get('path') ?? '' };
  let [found, selected, jump] = [null, rest[0] == null ? null : Number(rest[0]), rest[0] != null];
  const [tree, pages] = [new Map(), new Map()];
  const count = () => found?.items.length ?? model.head + 1;
  const event = (index) => (found ? found.items[index] : pages.get(Math.floor(index / PAGE))?.[index % PAGE]);
  const index = () => (found ? found.items.findIndex(({ seq }) => seq === selected) : selected ?? -1);
  const select = (seq) => {
    selected = seq;
    context.go(`/runs/${model.id}/events${seq == null ? '' : `/${seq}`}${location.search}`, { replace: true });
  };
  const show = (seq) => {
    select(seq);
    list.show(index());
  };
  const list = new List({ scroller: context.main, height: 28, row, onwindow: (first, last) => {
    for (let from = Math.floor(first / PAGE); !found && from * PAGE < last; from++) read(from);
  } });
  const search = searchBar(tools, show);

  /** Reads a page of the log. The oldest pages leave; their rows are read again when they come into view. */
  async function read(page) {
    if (pages.has(page)) return;
    pages.set(page, null);
    const from = page * PAGE;
    const answer = await get(base, { after: from ? from - 1 : null, before: from + PAGE, limit: PAGE }).catch(() => null);
    if (!answer) return pages.delete(page);
    pages.set(page, answer.items);
    for (const old of pages.keys()) if (pages.size > KEPT && old !== page) pages.delete(old);
    context.redraw();
  }
  /** Reads what the filter lets through, or more of it. */
  async function load(more) {
    const asked = filter;
    const before = more ? found.items : [];
    const isFiltered = filter.type || filter.path;
    const answer = isFiltered && await get(base, { ...filter, limit: 500, after: before.at(-1)?.seq }).catch(() => ({ items: [] }));
    if (asked !== filter) return;
    found = answer ? { items: [...before, ...answer.items], next: answer.next } : null;
    context.redraw();
  }
  const filterBy = (name, text, placeholder) => label(text, input({ type: 'text', value: filter[name], placeholder, onchange: ({ target }) => {
    filter = { ...filter, [name]: target.value.trim() };
    const set = new URLSearchParams(Object.entries(filter).filter(([, value]) => value));
    context.go(`/runs/${model.id}/events${set.size ? `?${set}` : ''}`, { replace: true });
    load();
  } }));
  const step = (by) => () => {
    const next = Math.max(0, Math.min(count() - 1, index() + by));
    show(found ? found.items[next]?.seq : next);
  };
  load();
  return {
    keys: () => ({ ...search.keys(), j: ['Next event', step(1)], k: ['Event before', step(-1)], ArrowDown: [null, step(1)],
      ArrowUp: [null, step(-1)], End: ['Last event', step(Infinity)], Home: ['First event', step(-Infinity)] }),
    changed() {
      for (const [page, items] of pages) if (items && items.length < PAGE) pages.delete(page);
      if (found && !found.next) load();
    },
    route(to) { if (to.rest[0] != null) selected = Number(to.rest[0]); },
    reveal: ({ seq }) => show(seq),
    render: () => [
      search.render(),
      div.filters(filterBy('type', 'Type', 'LOOP_TOOL_CALL, …'), filterBy('path', 'Path', 'Chat/3.0'),
        span.soft({ role: 'status' }, plural(count(), 'event'), found?.next && ', there are more'),
        found?.next && button.small({ onclick: () => load(true) }, 'Show more')),
      div.split({ class: selected != null && 'open' },
        div.mapped({ key: 'log' },
          div.events({ key: 'rows', role: 'grid', 'aria-label': 'Events', 'aria-rowcount': count(), tabindex: '0', opaque: true,
            'aria-activedescendant': selected == null ? null : `event-${selected}`, ref: list.attach }),
          !found && minimap(model, tools.reveal)),
        selected != null && detail(found?.items[index()] ?? pages.get(Math.floor(selected / PAGE))?.[selected % PAGE])),
    ],
    drawn() {
      list.setCount(count());
      if (jump && !found) list.show(selected, 'center');
      jump = false;
    },
    close() {
      list.close();
      search.close();
    },
  };
  function row(place) {
    const item = event(place);
    const seq = item?.seq ?? place;
    const isSelected = seq === selected;
    const cell = (name, value, props) => span[name]({ role: 'gridcell', ...props }, value);
    return div.eventRow({ key: seq, id: `event-${seq}`, role: 'row', 'aria-rowindex': place + 1, 'aria-selected': String(isSelected),
      memo: [item, isSelected], class: isSelected && 'selected', onclick: () => select(seq) },
    () => [cell('seq', number(seq)), item ? [cell('time', clock(item.at, true)), cell('type', item.type, { class: family(item.type) }),
      cell('path', item.path), cell('text', line(summary(item)), { dir: 'auto' })] : cell('type', '')]);
  }
  function detail(item) {
    if (!item) {
      read(Math.floor(selected / PAGE));
      return aside.detail({ key: 'detail' }, p.loading('Loading…'));
    }
    const { seq, path, type } = item;
    const link = (tab, text) => a({ href: ui(`/runs/${model.id}/${tab}/${seq}`) }, text);
    const curl = `curl '${location.origin}${apiUrl(base)}?after=${seq - 1}&limit=1'`;
    return aside.detail({ key: 'detail', 'aria-label': `Event ${seq}` },
      header(h2(`Event ${seq}`), span.grow(), button.plain({ onclick: () => select(null) }, 'Close')),
      facts([['type', code(type)], ['path', path && code(path)], ['time', clock(item.at, true)], ['epoch', item.epoch]]),
      p.tools(link('transcript', 'Transcript'), link('state', 'State here'), type.startsWith('LOOP_MODEL') && link('requests', 'Request'),
        button.plain.small({ onclick: () => tools.fork(seq) }, 'Fork here'), copyButton(JSON.stringify(item, null, 2), 'Copy JSON'),
        copyButton(curl, 'Copy as curl'), path && copyButton(path, 'Copy path')),
      json(without(item, ENVELOPE), { state: tree, redraw: context.redraw, label: 'Fields', depth: 3 }));
  }
}
