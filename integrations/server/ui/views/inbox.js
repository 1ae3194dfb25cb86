// The inbox: what waits for a person in all runs, those that expire first on top. An item leaves when the log says so.
import { tags } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { decide, decisions } from '../parts/decide.js';
import { empty, failure, loading } from '../parts/common.js';

const { div, h1, p } = tags;

export function inboxView(context) {
  let [items, next, error, selected, place, timer] = [null, null, null, null, 0, 0];
  async function load() {
    try {
      const answer = await get('/pending', { limit: 100, context: 3 });
      const order = (item) => [item.expires ?? '9', item.since].join();
      const first = !items;
      [items, next, error] = [answer.items.sort((a, b) => (order(a) < order(b) ? -1 : 1)), answer.next, null];
      if (first) selected = items[0]?.id;
    } catch (problem) { error = problem; }
    context.redraw();
  }
  load();
  // By id, not by place: a new item must not get the key that was meant for another one. If the item leaves, no item is
  // selected until the reader moves.
  const current = () => items?.find((item) => item.id === selected);
  const move = (by) => {
    if (!items?.length) return;
    const at = items.indexOf(current());
    place = Math.max(0, Math.min(items.length - 1, at < 0 ? place : at + by));
    selected = items[place].id;
    context.redraw();
    setTimeout(() => document.querySelector('.decide.selected')?.scrollIntoView({ block: 'nearest' }), 20);
  };
  const act = (name) => () => current() && decisions(current(), context)[name]();
  return {
    title: () => 'Inbox',
    update: () => true,
    keys: () => ({ j: ['Next item', () => move(1)], k: ['Item before', () => move(-1)], a: ['Approve, grant or answer', act('approve')], r: ['Reject…', act('askReason')], e: ['Edit the arguments', act('edit')], 'mod+Enter': ['Send, in a field', act('approve')], Enter: ['Open the run', () => current() && context.go(`/runs/${current().run}/transcript/${current().seq}`)] }),
    onchange() { clearTimeout(timer); timer = setTimeout(load, 60); },
    render: () => [div.pageHead(h1('Inbox'), p.soft(items?.length ? `${items.length}${next ? ' or more' : ''} waiting for a person` : '')),
      error && !items ? failure(error, load) : !items ? loading() : !items.length ? empty('Nothing waits for a person', 'Approvals, requests for more budget and questions of all runs appear here.') : div.inbox(items.map((item) => decide(item, context, { withRun: true, selected: item === current() }))), next && p.soft.more(`Showing the first ${items.length}.`)],
    tick: () => context.redraw(),
    close: () => clearTimeout(timer),
  };
}
