// The command palette: pages, actions and runs by their names.
import { tags } from '../lib/dom.js';
import { openDialog } from '../lib/keys.js';

const { input, li, p, small, span, ul } = tags;

/** Opens the palette over commands `{ text, hint, act }`; `more(query)` adds found ones. */
export default function palette(commands, more) {
  let [query, at, found] = ['', 0, []];
  const matches = ({ text }) => query.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));
  const listed = () => [...commands.filter(matches), ...found].slice(0, 12);
  openDialog('Commands', (close) => {
    const hits = listed();
    at = Math.max(0, Math.min(at, hits.length - 1));
    const act = (hit) => {
      close();
      hit?.act();
    };
    const oninput = async ({ target }) => {
      const asked = target.value;
      [query, at, found] = [asked, 0, []];
      const answer = asked.length > 1 ? await more(asked).catch(() => []) : [];
      if (asked === query) found = answer;
    };
    const onkeydown = (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1, Enter: 0 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      if (step) at += step;
      // The last letter may not be drawn yet.
      else act(listed()[at]);
    };
    return [
      input({ type: 'text', placeholder: 'Go to, or find a run…', 'aria-label': 'Find a command or a run', role: 'combobox', 'aria-expanded': 'true',
        'aria-controls': 'hits', 'aria-activedescendant': hits.length ? `hit-${at}` : null, value: query, autocomplete: 'off', oninput, onkeydown }),
      ul({ id: 'hits', role: 'listbox', 'aria-label': 'Commands' }, hits.map((hit, i) =>
        li({ id: `hit-${i}`, role: 'option', 'aria-selected': String(i === at), onclick: () => act(hit) }, span(hit.text), hit.about && small.cut.grow({ dir: 'auto' }, hit.about), hit.hint && small(hit.hint)))),
      !hits.length && p.soft('Nothing found.'),
    ];
  }, 'palette');
}
