// Search in a run: the server searches the whole log, since the page holds only what is in view.
import { tags } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { icon } from '../lib/icons.js';
import { plural } from '../lib/format.js';

const { button, div, input, span } = tags;

export function searchBar(model, jump) {
  let [open, query, hits, more, index, timer] = [false, '', [], false, -1, 0];
  const go = (by) => {
    index = (index + by + hits.length) % hits.length;
    if (hits.length) jump(hits[index]);
  };
  const ask = async (asked) => {
    const { items, next } = await get(`${model.path}/events`, { q: asked, limit: 500 }).catch(() => ({ items: [] }));
    if (asked !== query) return;
    [hits, more, index] = [items.map(({ seq }) => seq), next, -1];
    go(1);
  };
  const oninput = ({ target }) => {
    [query, hits] = [target.value, []];
    clearTimeout(timer);
    if (query) timer = setTimeout(ask, 200, query);
  };
  const show = () => { open = true; };
  const hide = () => { [open, hits, query] = [false, [], '']; };
  const onkeydown = (event) => {
    const act = { Enter: () => go(event.shiftKey ? -1 : 1), Escape: hide }[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  };
  return {
    keys: { '/': ['Search this run', show], 'mod+f': [null, show], n: ['Next match', () => go(1)], N: ['Match before', () => go(-1)] },
    render: () => open && div.search({ key: 'search', role: 'search' }, icon('search'),
      input({ type: 'search', 'aria-label': 'Search this run', placeholder: 'Search the whole log', value: query, ref: (node) => node.focus(), oninput, onkeydown }),
      span.soft({ role: 'status' }, hits.length ? `${index + 1} of ${more ? 'more than ' : ''}${plural(hits.length, 'event')}` : query && 'No event matches'),
      button.plain({ onclick: () => go(-1), disabled: !hits.length }, 'Back'), button.plain({ onclick: () => go(1), disabled: !hits.length }, 'Next'),
      button.plain({ onclick: hide }, 'Close')),
  };
}
