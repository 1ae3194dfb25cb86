// Keys, the help about them, and the command palette. Keys do nothing in fields, and can be switched off.
import { tags, render } from './dom.js';
import { pref, setPref } from './prefs.js';

const { button, dd, div, dl, dt, h2, h3, input, kbd, label, li, p, section, small, span, ul } = tags;

const FIELDS = 'input, textarea, select, [contenteditable]';
const IN_FIELDS = ['mod+Enter', 'mod+k', 'Escape'];
const PRETTY = { Enter: '↵', Escape: 'esc', ArrowLeft: '←', ArrowRight: '→', ArrowUp: '↑', ArrowDown: '↓' };
const MOD = navigator.platform?.startsWith('Mac') ? '⌘' : 'Ctrl ';

const maps = new Map();
let prefix = '';
let forget = 0;

/** Sets the keys of one part of the page: `{ 'g r': ['Runs', action] }`; `null` removes them. */
export function bind(part, keys) {
  if (keys) maps.set(part, keys);
  else maps.delete(part);
}

const find = (name) => [...maps.values()].reverse().find((keys) => keys[name])?.[name];

addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  const mod = event.metaKey || event.ctrlKey;
  const name = mod ? `mod+${event.key.length === 1 ? event.key.toLowerCase() : event.key}` : event.key;
  // A closed dialog keeps the focus until the next frame.
  const target = event.target.closest?.('dialog:not([open])') ? document.body : event.target;
  if (target.closest?.(FIELDS) && !IN_FIELDS.includes(name)) return;
  if ((pref('keys') === 'off' && name.length === 1) || document.querySelector('dialog[open]')) return;
  // A control keeps its own keys.
  if (['Enter', ' '].includes(name) && target.closest('a, button, summary')) return;
  const entry = (prefix && find(`${prefix} ${name}`)) || find(name);
  clearTimeout(forget);
  const begins = !prefix && [...maps.values()].some((keys) => Object.keys(keys).some((key) => key.startsWith(`${name} `)));
  prefix = !entry && begins ? name : '';
  if (prefix) forget = setTimeout(() => { prefix = ''; }, 1500);
  if (!entry) return;
  event.preventDefault();
  entry[1](event);
});

/** Opens a dialog whose content is drawn by `view(close, draw)`. The focus returns to where it was. */
export function openDialog(text, view, name = 'sheet') {
  const before = document.activeElement;
  const node = document.createElement('dialog');
  node.className = name;
  node.setAttribute('aria-label', text);
  const close = () => node.close();
  node.onclose = () => {
    node.remove();
    before?.focus?.({ preventScroll: true });
  };
  node.addEventListener('click', (event) => event.target === node && close());
  const draw = () => render(node, view(close, draw));
  document.body.append(node);
  draw();
  node.showModal();
  return draw;
}

const pretty = (name) => name.replace('mod+', MOD).split(' ').map((key) => kbd(PRETTY[key] ?? key));

export const help = () => openDialog('Keys', (close) => [
  div.sheetHead(h2('Keys'), button.plain({ onclick: close }, 'Close')),
  label.check(input({ type: 'checkbox', checked: pref('keys') !== 'off',
    onchange: (event) => setPref('keys', event.target.checked ? 'on' : 'off') }), 'Single keys act'),
  [...maps].map(([part, keys]) => section({ key: part }, h3(part),
    dl.keys(Object.entries(keys).filter(([, [text]]) => text).map(([name, [text]]) => div(dt(pretty(name)), dd(text)))))),
]);

/** Opens the palette over commands `{ text, hint, act }`; `more(query)` may add found ones. */
export function palette(commands, more) {
  let [query, at, found] = ['', 0, []];
  const matches = ({ text }) => query.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));
  openDialog('Commands', (close, draw) => {
    const hits = [...commands.filter(matches), ...found].slice(0, 12);
    at = Math.max(0, Math.min(at, hits.length - 1));
    const act = (hit) => {
      close();
      hit?.act();
    };
    const ask = async (event) => {
      [query, at] = [event.target.value, 0];
      draw();
      const asked = query;
      const answer = asked.length > 1 ? await more(asked).catch(() => []) : [];
      if (asked !== query) return;
      found = answer;
      draw();
    };
    const onkeydown = (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step && event.key !== 'Enter') return;
      event.preventDefault();
      if (!step) return act(hits[at]);
      at += step;
      draw();
    };
    return [
      input({ type: 'text', placeholder: 'Go to, or find a run…', 'aria-label': 'Find a command or a run', role: 'combobox',
        'aria-expanded': 'true', 'aria-controls': 'hits', 'aria-activedescendant': hits.length ? `hit-${at}` : null,
        value: query, autocomplete: 'off', oninput: ask, onkeydown }),
      ul({ id: 'hits', role: 'listbox', 'aria-label': 'Commands' }, hits.map((hit, i) =>
        li({ id: `hit-${i}`, role: 'option', 'aria-selected': String(i === at), onclick: () => act(hit) },
          span(hit.text), hit.hint && small(hit.hint)))),
      !hits.length && p.soft('Nothing found.'),
    ];
  }, 'palette');
}
