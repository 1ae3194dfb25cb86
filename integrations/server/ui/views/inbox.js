// The inbox: what waits for a person in all runs, those that expire first on top. An item leaves when the log says so.
import { tags } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { plural } from '../lib/format.js';
import { approve, decide, isOpen, reject, toggle } from '../parts/decide.js';
import { empty, pageHead, resource } from '../parts/common.js';

const { button, div, input, p, span } = tags;

const order = (item) => [item.expires ?? '9', item.since].join();

export function inboxView(context) {
  let [selected, place, timer, picked] = [null, 0, 0, new Set()];
  const data = resource(context, async () => {
    const { items, next } = await get('/pending', { limit: 100, context: 3 });
    items.sort((a, b) => (order(a) < order(b) ? -1 : 1));
    if (!data.value) selected = items[0]?.id;
    return { items, next };
  });
  const items = () => data.value?.items ?? [];
  // By id, not by place: a new item must not get the key that was meant for another one. If the item leaves, no item is
  // selected until the reader moves.
  const current = () => items().find((item) => item.id === selected);
  const chosen = () => items().filter((item) => picked.has(item.id) && isOpen(item));
  const move = (by) => () => {
    const at = items().indexOf(current());
    place = Math.max(0, Math.min(items().length - 1, at < 0 ? place : at + by));
    selected = items()[place]?.id;
    context.redraw();
    setTimeout(() => document.querySelector('.decide.selected')?.scrollIntoView({ block: 'nearest' }), 20);
  };
  const act = (does, ...more) => () => current() && does(current(), ...more);
  const yes = act((item) => approve([item], context));
  const pick = (item) => {
    picked.has(item.id) ? picked.delete(item.id) : picked.add(item.id);
    context.redraw();
  };
  /** Several approvals are decided at once only if they are of one tool. */
  const canPick = (item) => item.kind === 'approval' && isOpen(item) && chosen().every(({ tool }) => tool === item.tool)
    && items().some((other) => other !== item && other.kind === 'approval' && other.tool === item.tool);
  const picker = (item) => canPick(item)
    && input({ type: 'checkbox', checked: picked.has(item.id), 'aria-label': `Choose ${item.tool}`, onchange: () => pick(item) });
  const bar = (list) => list.length > 0 && div.bulk({ role: 'region', 'aria-label': 'Chosen items' },
    span(`${plural(list.length, 'call')} of ${list[0].tool} chosen`), span.grow(),
    button.primary({ onclick: () => approve(list, context) }, `Approve ${list.length}`),
    button({ onclick: () => reject(list, context) }, `Reject ${list.length}`),
    button.plain({ onclick: () => { picked = new Set(); context.redraw(); } }, 'Clear'));
  return {
    title: () => 'Inbox',
    update: () => true,
    keys: () => ({
      j: ['Next item', move(1)], k: ['Item before', move(-1)],
      a: ['Approve, grant or answer', yes], r: ['Reject…', act((item) => toggle(item, 'reject', context))],
      e: ['Edit the arguments', act((item) => item.editable && toggle(item, 'edit', context))],
      x: ['Choose several of one tool', act((item) => canPick(item) && pick(item))], 'mod+Enter': ['Send, in a field', yes],
      Enter: ['Open the run', act((item) => context.go(`/runs/${item.run}/transcript/${item.seq}`))],
    }),
    onchange() { clearTimeout(timer); timer = setTimeout(data.load, 60); },
    render: () => [pageHead('Inbox', items().length > 0 && p.soft(`${items().length}${data.value.next ? ' or more' : ''} waiting for a person`)),
      data.show(({ items: list, next }) => [
        list.length ? div.inbox(list.map((item) => decide(item, context, { withRun: true, selected: item === current(), pick: picker(item) })))
          : empty('Nothing waits for a person', 'Approvals, requests for more budget and questions of all runs appear here.'),
        next && p.soft.more(`Showing the first ${list.length}.`)]),
      bar(chosen())],
    tick: () => context.redraw(),
    close: () => clearTimeout(timer),
  };
}
