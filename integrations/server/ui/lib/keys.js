// Keys, the help about them, and dialogs. Keys do nothing in fields, and can be switched off.
import { tags, render, onRedraw, redraw } from './dom.js';
import { pref, say, setPref } from './page.js';
import { settle } from './settle.js';

const { button, dd, div, dl, dt, footer, h2, h3, input, kbd, label, section, span } = tags;

const FIELDS = 'input, textarea, select';
/** The key that makes a command of another one, as it is written on the keyboard. */
export const MOD = navigator.platform?.startsWith('Mac') ? '⌘' : 'Ctrl';
const PRETTY = { Enter: '↵', Escape: 'esc', ArrowLeft: '←', ArrowRight: '→', 'mod+k': `${MOD} K`, 'mod+Enter': `${MOD} ↵` };

const maps = {};
let [prefix, forget] = ['', 0];
/** Sets the keys of one part of the page: `{ 'g r': ['Runs', action] }`. A key without words is not in the help. */
export const bind = (part, keys) => { maps[part] = keys; };
const find = (name) => Object.values(maps).findLast((keys) => keys[name])?.[name];

/** The element that a person works with: it got the focus last. If it loses the focus without an act of the person, such as by a
 *  drawing that removes it, single keys are off until a click, Tab or Escape: the rest of a sentence must not act on the page. */
let inUse = null;
/** The control that was pressed last, until the page is drawn: what a press itself removes has not been taken away. */
let pressed = null;
/** Whether a key was pressed while keys were off. */
let isMissed = false;
const isGone = (node) => !node.isConnected || node.matches(':disabled') || node.checkVisibility?.() === false;
const isLost = () => inUse !== null && ([null, document.body].includes(document.activeElement) || isGone(inUse));
const isOff = () => inUse !== pressed && isLost();
export const isField = (node) => Boolean(node?.closest?.(FIELDS));
/** A person has finished with the focused element, which may leave. */
export function release() {
  [inUse, isMissed] = [null, false];
}
const OFF = 'The focused element was removed, so single keys are off. Click, or press Tab or Escape.';
export const offHint = () => isMissed && isOff() && span.link.lost({ title: OFF }, 'keys are off: ', kbd('esc'));

// The focus that a program sets is not an act of the person.
// A drawing may put the element in use to another place, or another element with its id in its place.
addEventListener('focusin', ({ target }) => { if (!isOff() || (target.id && target.id === inUse.id)) inUse = target; });
addEventListener('input', ({ target }) => { if (isField(target)) inUse = target; }, true);
addEventListener('pointerdown', release, true);
addEventListener('submit', release, true);
addEventListener('click', () => {
  if (isOff()) release();
  const own = isField(inUse) ? null : inUse;
  pressed = own;
  requestAnimationFrame(() => requestAnimationFrame(() => {
    if (pressed !== own) return;
    if (inUse === own && isLost()) release();
    pressed = null;
  }));
});
addEventListener('keydown', (event) => {
  const isPress = ['Enter', ' '].includes(event.key) && event.target.closest?.('a, button, summary');
  // A held key presses no button: the focus may have come to it only now.
  if (isPress && (event.repeat || isOff())) event.preventDefault();
  if (!['Tab', 'Escape'].includes(event.key) || event.isComposing) return;
  // This Escape does nothing else.
  if (isOff() && event.key === 'Escape' && !document.querySelector('dialog[open]')) event.preventDefault();
  release();
  redraw();
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
  if (isOff() && !name.startsWith('mod+')) {
    if (!isMissed && name.length === 1) say(OFF, true);
    [prefix, isMissed] = ['', true];
    return redraw();
  }
  // A control keeps its own keys.
  if (['Enter', ' '].includes(name) && target.closest('a, button, summary')) return;
  const entry = (prefix && find(`${prefix} ${name}`)) || find(name);
  clearTimeout(forget);
  prefix = entry || prefix ? '' : name;
  forget = setTimeout(() => { prefix = ''; }, 1500);
  if (!entry) return;
  event.preventDefault();
  // A person who uses keys has left the control that has the focus.
  release();
  entry[1](event);
  redraw();
});

/** Opens a dialog whose content is drawn by `view(close)`; this `close` is for what a person presses, the returned one for the page.
 *  The focus returns to where it was. */
export function openDialog(text, view, name = 'sheet') {
  const before = document.activeElement;
  const node = Object.assign(document.createElement('dialog'), { className: name });
  node.setAttribute('aria-label', text);
  const close = () => node.close();
  const leave = () => {
    release();
    close();
  };
  const draw = () => render(node, view(leave));
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
