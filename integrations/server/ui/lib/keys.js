// Keys, the help about them, dialogs, and the command palette. Keys do nothing in fields, and can be switched off.
import { tags, render, onRedraw, redraw } from './dom.js';
import { pref, setPref } from './page.js';
import { settle } from './settle.js';

const { button, dd, div, dl, dt, footer, h2, h3, input, kbd, label, li, p, section, small, span, ul } = tags;

const FIELDS = 'input, textarea, select';
const PRETTY = { Enter: '↵', Escape: 'esc', ArrowLeft: '←', ArrowRight: '→', 'mod+k': navigator.platform?.startsWith('Mac') ? '⌘ K' : 'Ctrl K' };

const maps = {};
let [prefix, forget] = ['', 0];
/** Sets the keys of one part of the page: `{ 'g r': ['Runs', action] }`. A key without words is not in the help. */
export const bind = (part, keys) => { maps[part] = keys; };
const find = (name) => Object.values(maps).findLast((keys) => keys[name])?.[name];

// A held key presses no button: the focus may have come to it only now.
addEventListener('keydown', (event) => {
  if (event.repeat && ['Enter', ' '].includes(event.key) && event.target.closest?.('a, button, summary')) event.preventDefault();
}, true);

addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  const name = (event.metaKey || event.ctrlKey ? 'mod+' : '') + (event.key.length > 1 || event.shiftKey ? event.key : event.key.toLowerCase());
  // A closed dialog keeps the focus until the next frame.
  const target = event.target.closest?.('dialog:not([open])') ? document.body : event.target;
  const menu = name === 'Escape' && document.querySelector('details.menu[open]');
  if (menu) {
    menu.open = false;
    menu.querySelector('summary').focus({ preventScroll: true });
  }
  if (name === 'Escape' && target.closest?.(FIELDS)) target.blur();
  if (menu || (target.closest?.(FIELDS) && name !== 'mod+k')) return;
  if ((pref('keys') === 'off' && name.length === 1) || document.querySelector('dialog[open]')) return;
  // A control keeps its own keys.
  if (['Enter', ' '].includes(name) && target.closest('a, button, summary')) return;
  const entry = (prefix && find(`${prefix} ${name}`)) || find(name);
  clearTimeout(forget);
  prefix = entry || prefix ? '' : name;
  forget = setTimeout(() => { prefix = ''; }, 1500);
  if (!entry) return;
  event.preventDefault();
  entry[1](event);
  redraw();
});

/** Opens a dialog whose content is drawn by `view(close)`. The focus returns to where it was. */
export function openDialog(text, view, name = 'sheet') {
  const before = document.activeElement;
  const node = Object.assign(document.createElement('dialog'), { className: name });
  node.setAttribute('aria-label', text);
  const close = () => node.close();
  const draw = () => render(node, view(close));
  const remove = onRedraw(draw);
  node.onclose = () => {
    remove();
    node.remove();
    settle();
    before?.focus?.({ preventScroll: true });
  };
  node.onclick = ({ target }) => { if (target === node) close(); };
  document.body.append(node);
  draw();
  node.showModal();
  return close;
}

/** The buttons at the end of a dialog, with one that closes it. */
export const ends = (close, ...more) => footer(more, close && button.plain({ type: 'button', onclick: close }, 'Close'));

export const help = () => openDialog('Keys', (close) => [h2('Keys'),
  label.check(input({ type: 'checkbox', checked: pref('keys') !== 'off', onchange: ({ target }) => setPref('keys', target.checked ? 'on' : 'off') }),
    'Enable single-key shortcuts'),
  Object.entries(maps).map(([part, keys]) => section({ key: part }, h3(part), dl.keys(Object.entries(keys).filter(([, [text]]) => text)
    .map(([name, [text]]) => div(dt((PRETTY[name] ?? name).split(' ').map((key) => kbd(key))), dd(text)))))),
  ends(close)]);

/** Opens the palette over commands `{ text, hint, act }`; `more(query)` adds found ones. */
export function palette(commands, more) {
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
        li({ id: `hit-${i}`, role: 'option', 'aria-selected': String(i === at), onclick: () => act(hit) }, span(hit.text), hit.hint && small(hit.hint)))),
      !hits.length && p.soft('Nothing found.'),
    ];
  }, 'palette');
}
