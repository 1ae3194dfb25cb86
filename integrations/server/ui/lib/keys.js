// Keys, the help about them, and the command palette. Keys do nothing in fields, and can be switched off.
import { tags, render } from './dom.js';
import { pref, setPref } from './prefs.js';

const { button, dd, div, dl, dt, h2, h3, input, kbd, label, li, p, section, small, span, ul } = tags;

const maps = new Map();
let prefix = '';
let prefixTimer = 0;

/** Sets the keys of one part of the page: `{ 'g r': ['Runs', action] }`; `null` removes them. */
export function bind(part, keys) {
  if (keys) maps.set(part, keys);
  else maps.delete(part);
}

const inField = (target) => target.closest?.('input, textarea, select, [contenteditable]');
const find = (name) => [...maps.values()].reverse().find((keys) => keys[name])?.[name];

function keyName(event) {
  const mod = event.metaKey || event.ctrlKey ? 'mod+' : '';
  return mod + (event.key.length === 1 && mod ? event.key.toLowerCase() : event.key);
}

addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  const name = keyName(event);
  const field = inField(event.target);
  if (field && !name.startsWith('mod+Enter') && name !== 'mod+k' && name !== 'Escape') return;
  if (pref('keys') === 'off' && name.length === 1) return;
  const dialog = document.querySelector('dialog[open]');
  if (dialog) return;
  // A control keeps its own keys.
  if (['Enter', ' '].includes(name) && event.target.closest('a, button, summary')) return;
  const entry = (prefix && find(`${prefix} ${name}`)) || find(name);
  clearTimeout(prefixTimer);
  if (!entry && name.length === 1 && !prefix && [...maps.values()].some((keys) => Object.keys(keys).some((key) => key.startsWith(`${name} `)))) {
    prefix = name;
    prefixTimer = setTimeout(() => { prefix = ''; }, 1500);
    return;
  }
  prefix = '';
  if (!entry) return;
  event.preventDefault();
  entry[1](event);
});

function dialog(name, label) {
  const node = document.createElement('dialog');
  node.className = name;
  node.setAttribute('aria-label', label);
  node.addEventListener('close', () => node.remove());
  node.addEventListener('click', (event) => event.target === node && node.close());
  document.body.append(node);
  return node;
}

const pretty = (name) => name.replace('mod+', navigator.platform?.startsWith('Mac') ? '⌘' : 'Ctrl ').replace('Arrow', '').split(' ')
  .map((key) => kbd({ Enter: '↵', Escape: 'esc', Left: '←', Right: '→' }[key] ?? key));

export function help() {
  const node = dialog('sheet', 'Keys');
  const draw = () => render(node,
    div.sheetHead(h2('Keys'), button.plain({ onclick: () => node.close(), 'aria-label': 'Close' }, 'Close')),
    label.check(input({
      type: 'checkbox', checked: pref('keys') !== 'off', onchange: (event) => setPref('keys', event.target.checked ? 'on' : 'off'),
    }), 'Single keys act'),
    [...maps].map(([part, keys]) => section({ key: part }, h3(part),
      dl.keys(Object.entries(keys).filter(([, entry]) => entry[0]).map(([name, [text]]) => div(dt(pretty(name)), dd(text)))))));
  draw();
  node.showModal();
}

/** Opens the palette over commands `{ text, hint, act }`; `more(query)` may add found ones. */
export function palette(commands, more) {
  const node = dialog('palette', 'Commands');
  let [query, at, found] = ['', 0, []];
  const hits = () => {
    const wanted = query.toLowerCase().split(/\s+/);
    return [...commands.filter(({ text }) => wanted.every((word) => text.toLowerCase().includes(word))), ...found].slice(0, 12);
  };
  const act = (hit) => {
    node.close();
    hit?.act();
  };
  const draw = () => {
    const list = hits();
    at = Math.max(0, Math.min(at, list.length - 1));
    render(node,
      input({
        type: 'text', placeholder: 'Go to, or find a run…', 'aria-label': 'Find a command or a run', role: 'combobox', 'aria-expanded': 'true',
        'aria-controls': 'palette-list', 'aria-activedescendant': list.length ? `palette-${at}` : null, value: query, autocomplete: 'off',
        oninput: async (event) => {
          query = event.target.value;
          at = 0;
          draw();
          const asked = query;
          const answer = query.length > 1 ? await more?.(query).catch(() => []) : [];
          if (asked === query) {
            found = answer ?? [];
            draw();
          }
        },
        onkeydown: (event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step) at += step;
          else if (event.key === 'Enter') return act(hits()[at]);
          else return;
          event.preventDefault();
          draw();
        },
      }),
      ul({ id: 'palette-list', role: 'listbox', 'aria-label': 'Commands' }, list.map((hit, i) => li({
        id: `palette-${i}`, role: 'option', 'aria-selected': String(i === at), onclick: () => act(hit),
      }, span(hit.text), hit.hint && small(hit.hint)))),
      !list.length && p.soft('Nothing found.'));
  };
  draw();
  node.showModal();
}

/** Opens a dialog whose content is drawn by `view(close, draw)`. */
export function openDialog(label, view) {
  const node = dialog('sheet', label);
  const draw = () => render(node, view(() => node.close(), draw));
  draw();
  node.showModal();
  return draw;
}
