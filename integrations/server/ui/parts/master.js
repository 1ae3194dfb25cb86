// A page with a list of entries and, beside it, the chosen one, which the address names.
import { tags } from '../lib/dom.js';
import { get, at, ui } from '../lib/api.js';
import { ask } from './request.js';
import { empty, pageHead, resource } from './common.js';

const { a, button, div, li, p, span, ul } = tags;

/** `row` draws an entry of the list, `detail` the chosen one, which `read` gets; `add` is the request for a new one. */
export function masterView(context, route, { title, path, none, hint, id = (item) => item.id, add, row, read, detail }) {
  const list = resource(context, () => get(path));
  let [chosen, one] = [null, null];
  const show = (next) => {
    if (next === chosen) return;
    chosen = next;
    one = chosen == null ? null : resource(context, () => read(chosen));
  };
  const page = {
    /** Reads all again, and shows another entry if one is named; `null` is none. */
    reload: (next) => {
      list.load();
      if (next === undefined) one?.load();
      else context.go(path + (next == null ? '' : at(next)));
    },
  };
  const adding = () => add && button.primary({ onclick: () => ask(context, add(page)) }, add(page).title);
  show(route.rest[0]);
  return {
    title: () => chosen ?? title,
    update: (to) => { show(to.rest[0]); return true; },
    onchange: () => { list.load(); one?.load(); },
    render: () => [pageHead(title, span.grow(), list.value?.items.length > 0 && adding()), list.show(({ items, next }) => (items.length === 0
      ? empty(...none, adding())
      : div.master(ul.cards({ 'aria-label': title }, items.map((item) => li({ key: id(item) },
        a({ href: ui(path + at(id(item))), 'aria-current': id(item) === chosen ? 'true' : null }, row(item)))),
      next && li(p.soft.more(`Showing the first ${items.length}.`))),
      one ? div.panel({ key: chosen }, one.show((value) => detail(value, page))) : p.soft.hint(hint))))],
  };
}

/** Buttons that open a request each: `[text, spec]`. A button without a form, `{ now }`, sends it at once. */
export const requests = (context, list) => div.buttons(list.filter(Boolean).map(([text, spec]) =>
  button.small({ key: text, class: spec.danger && 'warn', onclick: () => ask(context, spec) }, text)));
