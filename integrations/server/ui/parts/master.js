// A page with a list of entries and, beside it, the chosen one, which the address names.
import { tags } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { at, go, ui } from '../lib/page.js';
import { ask } from './request.js';
import { empty, pageHead, resource } from './common.js';

const { a, button, div, li, p, span, ul } = tags;

/** `row` draws an entry of the list, `detail` the chosen one, which `read` gets; `add` is the request for a new one. */
export function masterView(route, { title, path, none, hint, id = (item) => item.id, add, row, read, detail }) {
  const list = resource(async () => {
    const found = await get(path);
    // Where there is room for an entry beside the list, the first one is shown.
    if (chosen === undefined && found.items.length && matchMedia('(min-width: 1100px)').matches) show(id(found.items[0]));
    return found;
  });
  let [chosen, one] = [];
  const show = (next) => {
    if (next === chosen) return;
    chosen = next;
    one = chosen && resource(() => read(chosen));
  };
  const change = () => {
    list.load();
    one?.load();
  };
  /** Reads all again, and shows another entry if one is named; `null` is none. */
  const reload = (next = chosen) => {
    go(path + at(next), next === chosen);
    change();
  };
  const adding = () => add && button.primary({ onclick: () => ask(add(reload)) }, add(reload).title);
  show(route.rest[0]);
  return {
    title: () => chosen ?? title,
    update(to) {
      show(to.rest[0]);
      if (chosen === undefined) list.load();
      return true;
    },
    change,
    render: () => [pageHead(title, span.grow(), list.value?.items.length > 0 && adding()), list.show(({ items, next }) => (items.length === 0
      ? empty(...none, adding())
      : div.master(ul.cards({ 'aria-label': title }, items.map((item) => li({ key: id(item) },
        a({ href: ui(path + at(id(item))), 'aria-current': id(item) === chosen && 'true' }, row(item)))), next && li(p.soft.more(`Showing the first ${items.length}.`))),
      one ? div.panel({ key: chosen }, one.show((value) => detail(value, reload))) : p.soft.hint(hint))))],
  };
}
