// What all views share: addresses, settings of this browser, the signed-in caller, and sentences for screen readers.
import { redraw, tags } from './dom.js';

/** The path under which the server is mounted; empty at the root. */
const PREFIX = new URL(import.meta.url).pathname.replace(/\/ui\/assets\/.*$/, '');
export const apiUrl = (path) => `${PREFIX}/api/v1${path}`;
export const ui = (path = '') => `${PREFIX}/ui${path}`;
/** Makes a path of segments: `/runs/3/transcript`. Segments that are `null` are left out. */
export const at = (...segments) => segments.filter((one) => one != null).map((one) => `/${encodeURIComponent(one)}`).join('');
export const runUrl = (...segments) => ui(at('runs', ...segments));
/** Makes a query of the values that are there: `?a=1`, or nothing. */
export function query(values) {
  const text = new URLSearchParams(Object.entries(values ?? {}).filter(([, value]) => value != null && value !== '' && value !== false));
  return text.size ? `?${text}` : '';
}

/** The pages of the side bar in their order: the name of the view's module, which is the address too, the text, the icon and the group. The
 *  bar of a narrow window has none that is `rare`. The first letter of a name is the key after `g`. */
export const PAGES = [
  { name: 'overview', text: 'Overview', shape: 'chart' }, { name: 'runs', text: 'Runs', shape: 'lines' }, { name: 'inbox', text: 'Inbox', shape: 'inbox' },
  { name: 'conversations', text: 'Conversations', shape: 'message', rare: true }, { name: 'brains', text: 'Brains', shape: 'brain', group: 'Build' },
  { name: 'schedules', text: 'Schedules', shape: 'calendar', group: 'Build', rare: true }, { name: 'playground', text: 'Playground', shape: 'flask', group: 'Build', rare: true },
  { name: 'webhooks', text: 'Webhooks', shape: 'hook', group: 'Build', rare: true },
];
/** The page that opens without an address of its own. */
export const START = 'overview';
/** The tabs of a run. */
export const TABS = { transcript: 'Transcript', waterfall: 'Waterfall', events: 'Events', state: 'State', requests: 'Requests' };
/** Loads a view, a tab or the dialogs of one, when it is first needed. */
export const load = (name) => import(`../views/${name}.js`);
/** A part whose module loads when it is first drawn; until then it draws nothing, and `isLoaded` is false. */
export function later(name) {
  let [part, failed] = [null, false];
  const draw = (...of) => {
    if (part) return part(...of);
    import(`../parts/${name}.js`).then((module) => { part = module.default; redraw(); }, () => { failed = true; });
    return failed && tags.p.problem('A part of the page cannot be loaded. Reload the page.');
  };
  return Object.assign(draw, { isLoaded: () => part !== null });
}

export const main = () => document.getElementById('main');
/** Goes to an address of the page, as a link does. What `opens` on the page is closed by `close`, or by the browser's Back. */
export function go(path, replace = false, opens = false) {
  if (returning) return returning.then(() => go(path, replace, opens));
  if (replace) history.replaceState(history.state, '', ui(path));
  else history.pushState(opens ? { opens } : null, '', ui(path));
  return dispatchEvent(new PopStateEvent('popstate'));
}
/** The browser goes back. Until it has, no other address is gone to. */
let returning = null;
/** Notes an address without going there: what is shown has it already. */
export const note = (path) => history.replaceState(history.state, '', ui(path));
/** Closes what has opened on the page: goes back to where it was opened, or to an address in its place if the page has begun with it. */
export function close(path) {
  if (!history.state?.opens) return go(path, true);
  returning = new Promise((done) => addEventListener('popstate', done, { once: true })).then(() => { returning = null; });
  return history.back();
}

const settings = new Map();
export function pref(name) {
  try {
    if (!settings.has(name)) settings.set(name, localStorage.getItem(`positronic.${name}`));
  } catch { /* The browser forbids storage. */ }
  return settings.get(name);
}
export function setPref(name, value) {
  settings.set(name, value);
  try {
    localStorage.setItem(`positronic.${name}`, value);
  } catch { /* The setting lasts until the page closes. */ }
  redraw();
}

/** The session of the caller: `{ scopes, read_only }`. */
export const caller = { session: null };
/** Whether the caller may do what needs a scope. */
export const may = (scope) => !caller.session.read_only && caller.session.scopes.some((own) => own === scope || own === 'admin');

/** A word as a shell takes it. */
const shellWord = (word) => (/^[\w:.,/@=-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`);
/** A command for a terminal: what the server says that its commands begin with, and words. `null` if the server has no commands for the caller. */
export const commandOf = (...words) => caller.session?.program && [caller.session.program, ...words.map(shellWord)].join(' ');

let quiet = 0;
/** Tells a screen reader one sentence; routine ones at most every 5 seconds. */
export function say(text, urgent = false) {
  if (!urgent && quiet) return;
  document.getElementById(urgent ? 'alert' : 'live').textContent = text;
  if (!urgent) quiet = setTimeout(() => { quiet = 0; }, 5000);
}
