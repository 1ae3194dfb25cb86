// The event log: one row an event, loaded page by page around the view; the selected event opens beside it.
import { tags } from '../lib/dom.js';
import { FixedList } from '../lib/list.js';
import { get, at, ui, apiUrl } from '../lib/api.js';
import { brief, clock, line, number, plural, who } from '../lib/format.js';
import { copyButton, facts } from '../parts/common.js';
import { json } from '../parts/json.js';
import { searchBar } from './search.js';

const { a, aside, button, code, div, h2, header, input, label, p, span } = tags;

const PAGE = 100;
const KEPT = 30;
const ENVELOPE = ['seq', 'at', 'epoch', 'clock', 'path', 'type', 'v'];

/** An event in one line. */
export function summary(event) {
  const { type } = event;
  if (type === 'LOOP_TOOL_CALL') return `${event.tool} ${brief(event.arguments)}`;
  if (type === 'LOOP_MODEL_RESULT') return brief(event.parts?.map((part) => part.text ?? part.type).join(' '));
  if (type === 'LOOP_TOOL_RESULT') return `${event.result.type} ${brief(event.result.output ?? event.result.message ?? event.result.reason)}`;
  if (type === 'LOOP_APPROVAL_DECIDED' || type === 'BUDGET_DECIDED') return `${event.decision} by ${who(event.actor)} ${event.reason ?? ''}`;
  if (type === 'LOOP_WAIT') return event.waits.map((wait) => wait.prompt ?? `${wait.webhook} ${wait.identifier}`).join(' or ');
  const rest = Object.fromEntries(Object.entries(event).filter(([name, value]) => !ENVELOPE.includes(name) && !['fingerprint', 'stages', 'tools', 'signal', 'projection', 'arguments_hash'].includes(name) && value !== null));
  return brief(rest.message ?? rest.text ?? rest.input ?? rest.title ?? rest.system?.body ?? rest);
}

export function eventsTab(tools) {
  const { model, view, context } = tools;
  let list = null;
  let filter = { type: view.route.query.get('type') ?? '', path: view.route.query.get('path') ?? '' };
  let found = null;
  let [selected, jumped] = [view.route.rest[0] == null ? null : Number(view.route.rest[0]), false];
  const tree = new Map();
  const pages = new Map();
  const filtered = () => filter.type || filter.path;
  const select = (seq) => { selected = seq; context.go(`/runs/${model.id}/events/${seq}${location.search}`, { replace: true }); };
  const search = searchBar(tools, (seq) => { select(seq); list?.show(seq); });
  async function page(number) {
    if (pages.has(number)) return;
    pages.set(number, null);
    const from = number * PAGE;
    const answer = await get(`/runs${at(model.id, 'events')}`, { after: from ? from - 1 : null, before: from + PAGE, limit: PAGE }).catch(() => null);
    if (!answer) return pages.delete(number);
    pages.set(number, answer.items);
    // The oldest pages leave; their rows are read again when they come into view.
    for (const old of pages.keys()) if (pages.size > KEPT && old !== number) pages.delete(old);
    context.redraw();
  }
  async function load(more) {
    if (!filtered()) { found = null; return context.redraw(); }
    const asked = filter;
    const answer = await get(`/runs${at(model.id, 'events')}`, { type: filter.type, path: filter.path, limit: 500, after: more ? found.items.at(-1).seq : null }).catch((error) => ({ items: [], error }));
    if (asked !== filter) return;
    found = { items: [...(more ? found.items : []), ...answer.items], next: answer.next, error: answer.error };
    context.redraw();
  }
  load();
  const event = (index) => (found ? found.items[index] : pages.get(Math.floor(index / PAGE))?.[index % PAGE]);
  const change = (name) => (input) => {
    filter = { ...filter, [name]: input.target.value.trim() };
    const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value));
    context.go(`/runs/${model.id}/events${query.size ? `?${query}` : ''}`, { replace: true });
    load();
  };
  const step = (by) => {
    const seqs = found ? found.items.map((item) => item.seq) : null;
    const index = seqs ? seqs.indexOf(selected) : selected ?? -1;
    const next = Math.max(0, Math.min((seqs?.length ?? model.head + 1) - 1, index + by));
    select(seqs ? seqs[next] : next);
    list?.show(next);
  };
  return {
    keys: () => ({ ...search.keys(), j: ['Next event', () => step(1)], k: ['Event before', () => step(-1)], ArrowDown: [null, () => step(1)], ArrowUp: [null, () => step(-1)], End: ['Last event', () => { select(model.head); list.show(model.head); }], Home: ['First event', () => { select(0); list.show(0); }] }),
    changed() { pages.delete(Math.floor(model.head / PAGE)); for (const [number, items] of pages) if (items && items.length < PAGE) pages.delete(number); if (found && !found.next) load(); },
    route(to) { if (to.rest[0] != null) selected = Number(to.rest[0]); },
    reveal: (node) => { selected = node.seq; list?.show(node.seq); },
    render: () => [search.render(),
      div.filters(
        label('Type', input({ type: 'text', value: filter.type, placeholder: 'LOOP_TOOL_CALL, …', onchange: change('type') })),
        label('Path', input({ type: 'text', value: filter.path, placeholder: 'Chat/3.0', onchange: change('path') })),
        span.soft({ role: 'status' }, found ? `${plural(found.items.length, 'event')}${found.next ? ', there are more' : ''}` : `${plural(model.head + 1, 'event')}`), found?.next && button.small({ onclick: () => load(true) }, 'Show more')),
      div.split({ class: selected == null ? '' : 'open' },
        div.events({ key: 'log', role: 'grid', 'aria-label': 'Events', 'aria-rowcount': found ? found.items.length : model.head + 1, tabindex: '0', 'aria-activedescendant': selected == null ? null : `event-${selected}`, opaque: true, ref: attach }),
        selected == null ? null : detail(selected))],
    drawn() {
      if (!list?.host.isConnected) return;
      list.setCount(found ? found.items.length : model.head + 1);
      if (!jumped && selected != null && !found) { jumped = true; list.show(selected); }
    },
    close: () => { list?.close(); search.close(); },
  };
  function attach(host) {
    list?.close();
    list = new FixedList({
      scroller: context.main, host, height: 28,
      row: (index) => {
        const item = event(index);
        const seq = item?.seq ?? index;
        return div.eventRow({ key: seq, id: `event-${seq}`, role: 'row', 'aria-rowindex': index + 1, 'aria-selected': String(seq === selected), memo: [item, seq === selected], class: seq === selected ? 'selected' : '', onclick: () => select(seq) },
          () => [span.seq({ role: 'gridcell' }, number(seq)), span.time({ role: 'gridcell' }, item ? clock(item.at, true) : ''), span.type({ role: 'gridcell', class: family(item?.type) }, item?.type ?? ''), span.path({ role: 'gridcell' }, item?.path ?? ''), span.text({ role: 'gridcell', dir: 'auto' }, item ? line(summary(item), 200) : '')]);
      },
      onwindow: (first, last) => { if (!found) for (let i = Math.floor(first / PAGE); i * PAGE < last; i++) page(i); },
    });
  }
  function detail(seq) {
    const item = found?.items.find((one) => one.seq === seq) ?? pages.get(Math.floor(seq / PAGE))?.[seq % PAGE];
    if (!item) { page(Math.floor(seq / PAGE)); return aside.detail({ key: 'detail' }, p.loading('Loading…')); }
    const fields = Object.fromEntries(Object.entries(item).filter(([name]) => !ENVELOPE.includes(name)));
    return aside.detail({ key: 'detail', 'aria-label': `Event ${seq}` },
      header(h2(`Event ${seq}`), span.grow(), button.plain({ onclick: () => { selected = null; context.go(`/runs/${model.id}/events`, { replace: true }); }, 'aria-label': 'Close' }, 'Close')),
      facts([['type', code(item.type)], ['path', item.path && code(item.path)], ['time', clock(item.at, true)], ['epoch', item.epoch]]),
      p.tools(a({ href: ui(`/runs/${model.id}/transcript/${seq}`) }, 'Transcript'), a({ href: ui(`/runs/${model.id}/state/${seq}`) }, 'State here'), item.type.startsWith('LOOP_MODEL') && a({ href: ui(`/runs/${model.id}/requests/${seq}`) }, 'Request'), button.plain.small({ onclick: () => tools.fork(seq) }, 'Fork here'),
        copyButton(JSON.stringify(item, null, 2), 'Copy JSON'), copyButton(`curl '${location.origin}${apiUrl(`/runs${at(model.id, 'events')}?after=${seq - 1}&limit=1`)}'`, 'Copy as curl'), item.path && copyButton(item.path, 'Copy path')),
      json(fields, { state: tree, redraw: context.redraw, label: 'Fields', depth: 3 }));
  }
}

const family = (type = '') => (/ERROR|RETRY|FAILED|REFUSED|STOPPED|NOT_CLAIMED/.test(type) ? 'bad' : /APPROVAL|BUDGET|WAIT|RESUME|PAUSED/.test(type) ? 'wait' : /MODEL/.test(type) ? 'model' : /TOOL|OUTPUT/.test(type) ? 'tool' : '');
