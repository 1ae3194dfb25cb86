// Search in a run: the server searches the whole log, since the page holds only what is in view.
import { tags } from '../lib/dom.js';
import { get, at } from '../lib/api.js';
import { icon } from '../lib/icons.js';
import { plural } from '../lib/format.js';

const { button, div, span } = tags;

export function searchBar({ model, context }, jump) {
  let [open, query, hits, more, index, timer, input] = [false, '', null, false, -1, 0, null];
  const ask = async () => {
    const asked = query;
    if (!asked) { hits = null; return context.redraw(); }
    const { items, next } = await get(`/runs${at(model.id, 'events')}`, { q: asked, limit: 500 }).catch(() => ({ items: [] }));
    if (asked !== query) return;
    [hits, more, index] = [items.map((event) => event.seq), Boolean(next), -1];
    go(1);
  };
  const go = (by) => {
    if (hits?.length) { index = (index + by + hits.length) % hits.length; jump(hits[index]); }
    context.redraw();
  };
  const show = () => { open = true; context.redraw(); setTimeout(() => input?.focus(), 30); };
  const hide = () => { [open, hits, query] = [false, null, '']; context.redraw(); };
  return {
    keys: () => ({ '/': ['Search this run', show], 'mod+f': [null, show], n: hits ? ['Next match', () => go(1)] : [null, () => {}], N: hits ? ['Match before', () => go(-1)] : [null, () => {}] }),
    render: () => (open ? div.search({ key: 'search', role: 'search' }, icon('search'), tags.input({ type: 'search', 'aria-label': 'Search this run', placeholder: 'Search the whole log', value: query, ref: (node) => { input = node; },
      oninput: (event) => { query = event.target.value; clearTimeout(timer); timer = setTimeout(ask, 200); },
      onkeydown: (event) => { if (event.key === 'Enter') go(event.shiftKey ? -1 : 1); else if (event.key === 'Escape') hide(); else return; event.preventDefault(); event.stopPropagation(); } }),
    span.soft({ role: 'status' }, !hits ? '' : hits.length ? `${index + 1} of ${more ? 'more than ' : ''}${plural(hits.length, 'event')}` : 'No event matches'),
    button.plain({ onclick: () => go(-1), disabled: !hits?.length }, 'Back'), button.plain({ onclick: () => go(1), disabled: !hits?.length }, 'Next'), button.plain({ onclick: hide }, 'Close')) : null),
    close: () => clearTimeout(timer),
  };
}
