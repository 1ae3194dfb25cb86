// The inspector page: routes, the frame around the views, and what all views share.
import { tags, render, perFrame } from './lib/dom.js';
import { get, post, request, follow, ui, Problem } from './lib/api.js';
import { bind, help, palette } from './lib/keys.js';
import { icon } from './lib/icons.js';
import { pref, setPref } from './lib/prefs.js';
import { shortId } from './lib/format.js';
import { failure } from './parts/common.js';
import { runsView } from './views/runs.js';
import { runView } from './views/run.js';
import { inboxView } from './views/inbox.js';
import { diffView } from './views/compare.js';
import { brainsView } from './views/brains.js';
import { schedulesView } from './views/schedules.js';
import { webhooksView } from './views/webhooks.js';

const { a, b, button, div, header, img, kbd, main, nav, span } = tags;

const VIEWS = { runs: runsView, run: runView, inbox: inboxView, diff: diffView, brains: brainsView, schedules: schedulesView,
  webhooks: webhooksView };
const NAV = { runs: 'Runs', inbox: 'Inbox', brains: 'Brains', schedules: 'Schedules', webhooks: 'Webhooks' };
const LINK = { lost: 'reconnecting…', out: 'signed out: open the link of the server again' };
const MAC = navigator.platform?.startsWith('Mac');
const ICON = new URL('./icon.svg', import.meta.url).pathname;

const app = { session: null, pending: null, link: 'idle', trouble: null, view: null, name: '' };
const redraw = perFrame(draw);

/** Reads an address of the page: `runs/{id}/{tab}/{seq}`, or a page and what follows it. */
function route() {
  const [page = 'runs', ...rest] = location.pathname.slice(ui().length).split('/').filter(Boolean).map(decodeURIComponent);
  const query = new URLSearchParams(location.search);
  if (page === 'runs' && rest.length) return { name: 'run', id: rest[0], tab: rest[1] ?? 'transcript', rest: rest.slice(2), query };
  return { name: VIEWS[page] ? page : 'runs', rest, query };
}

/** What a view gets: the caller's rights, and the ways to change the page. */
const context = {
  go(path, { replace = false } = {}) {
    history[replace ? 'replaceState' : 'pushState'](null, '', ui(path));
    show();
  },
  redraw,
  get session() { return app.session; },
  get main() { return document.getElementById('main'); },
  /** Whether the caller may do what needs a scope. */
  may: (scope) => !app.session.read_only && app.session.scopes.some((own) => own === scope || own === 'admin'),
  say,
  setLink,
  refreshPending,
};

function show() {
  const to = route();
  if (!(app.view && app.name === to.name && app.view.update?.(to))) {
    app.view?.close?.();
    bind('This page', null);
    app.name = to.name;
    app.view = VIEWS[to.name](context, to);
    context.main?.scrollTo(0, 0);
    context.main?.focus({ preventScroll: true });
    followStream();
  }
  redraw();
}

function draw() {
  document.title = `${app.view?.title() ?? 'Runs'} · Positronic`;
  bind('This page', app.view?.keys?.() ?? null);
  const colours = `Colours: ${pref('theme') ?? 'auto'}`;
  const current = app.name === 'run' ? 'runs' : app.name;
  const page = (name) => a({ key: name, href: ui(`/${name}`), 'aria-current': name === current ? 'page' : null }, NAV[name],
    name === 'inbox' && app.pending ? span.count({ 'aria-label': `${app.pending} pending` }, app.pending) : null);
  render(document.getElementById('app'),
    header.bar(
      a.brand({ href: ui('/runs'), 'aria-label': 'Positronic, runs' }, img({ src: ICON, alt: '', width: 22, height: 22 }), b('Positronic')),
      nav({ 'aria-label': 'Pages' }, Object.keys(NAV).map(page)),
      span.grow(),
      app.session?.read_only && span.tag({ title: 'The page shows an exported log; nothing can be changed.' }, 'read-only'),
      span.link({ class: app.link, role: 'status' }, LINK[app.link]),
      button.plain.find({ onclick: openPalette, title: 'Find a command or a run' }, icon('search'), span('Find'), kbd(MAC ? '⌘K' : 'Ctrl K')),
      button.plain.round({ onclick: nextTheme, 'aria-label': colours, title: colours }, icon('sun')),
      button.plain.round.wideOnly({ onclick: help, 'aria-label': 'Keys', title: 'Keys (?)' }, icon('keys'))),
    main({ id: 'main', tabindex: '-1', key: 'main' },
      app.trouble ? failure(app.trouble, start) : div.view({ key: app.name }, app.view?.render())));
  app.view?.drawn?.();
}

function nextTheme() {
  const themes = ['auto', 'light', 'dark'];
  setPref('theme', themes[(themes.indexOf(pref('theme') ?? 'auto') + 1) % 3]);
  applyTheme();
}
function applyTheme() {
  document.documentElement.dataset.theme = pref('theme') ?? 'auto';
  redraw();
}
function nextZone() {
  setPref('utc', pref('utc') === 'on' ? 'off' : 'on');
  redraw();
}
async function signOut() {
  try {
    await request('DELETE', '/session');
    location.reload();
  } catch (error) { say(error.message, true); }
}

function openPalette() {
  const pages = Object.entries(NAV).map(([page, text]) => ({ text, hint: `g ${page[0]}`, act: () => context.go(`/${page}`) }));
  const own = Object.entries(app.view?.keys?.() ?? {}).filter(([, [text]]) => text)
    .map(([key, [text, act]]) => ({ text, hint: key.replace('mod+', '⌘'), act }));
  const settings = Object.entries({ 'Colours: next': nextTheme, [`Times: ${pref('utc') === 'on' ? 'local' : 'UTC'}`]: nextZone, Keys: help,
    'Sign out': signOut });
  palette([...own, ...pages, ...settings.map(([text, act]) => ({ text, act }))], async (q) => {
    const { items } = await get('/runs', { q, limit: 6 });
    return items.map((run) => ({ text: `${run.brain} ${shortId(run.id)}`, hint: run.status, act: () => context.go(`/runs/${run.id}`) }));
  });
}

let quiet = 0;
/** Tells a screen reader one sentence; routine ones at most every 5 seconds. */
function say(text, urgent = false) {
  if (!urgent && quiet) return;
  document.getElementById(urgent ? 'alert' : 'live').textContent = text;
  if (!urgent) quiet = setTimeout(() => { quiet = 0; }, 5000);
}

async function refreshPending() {
  try {
    const { items, next } = await get('/pending', { limit: 99 });
    if (app.pending != null && items.length > app.pending) say(`${items.length} items wait for a person.`, true);
    app.pending = next ? '99+' : items.length;
    redraw();
  } catch { /* The next change asks again. */ }
}

function stopStream() {
  app.unfollow?.();
  app.unfollow = null;
}
function followStream() {
  // One stream a tab, since browsers allow six connections to a server: a run's page follows its run only.
  if (app.view?.follows) stopStream();
  if (app.view?.follows || app.unfollow || document.hidden) return;
  let timer = 0;
  const changed = (run) => { refreshPending(); app.view?.onchange?.(run); };
  app.unfollow = follow('/stream', {
    events: {
      run: (run) => {
        app.view?.onrun?.(run);
        clearTimeout(timer);
        timer = setTimeout(changed, 120, run);
      },
    },
    onstate: (state) => {
      // What changed without a connection is read again.
      if (state === 'live' && app.link === 'lost') changed();
      setLink(state);
    },
  });
}

function setLink(state) {
  app.link = state;
  redraw();
}

async function start() {
  app.trouble = null;
  const code = /^#code=(.+)$/.exec(location.hash)?.[1];
  try {
    if (code) {
      history.replaceState(null, '', location.pathname + location.search);
      await post('/session', { code });
    }
    app.session = await get('/session');
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    app.trouble = error;
    return redraw();
  }
  show();
  refreshPending();
}

addEventListener('popstate', show);
addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href]');
  const elsewhere = event.button || event.metaKey || event.ctrlKey || event.shiftKey;
  if (!link || event.defaultPrevented || elsewhere || link.target || link.hasAttribute('download')) return;
  const to = new URL(link.href);
  if (to.origin !== location.origin || !to.pathname.startsWith(ui()) || to.hash) return;
  event.preventDefault();
  document.querySelector('dialog[open]')?.close();
  history.pushState(null, '', to);
  show();
});
document.addEventListener('visibilitychange', () => {
  if (!app.session) return;
  if (document.hidden) {
    stopStream();
    app.view?.onhide?.();
  } else {
    followStream();
    refreshPending();
    app.view?.onchange?.();
  }
});
setInterval(() => !document.hidden && app.view?.tick?.(), 1000);

bind('Everywhere', {
  '?': ['Keys', help], 'mod+k': ['Find a command or a run', openPalette],
  ...Object.fromEntries(Object.entries(NAV).map(([page, text]) => [`g ${page[0]}`, [text, () => context.go(`/${page}`)]])),
});
applyTheme();
start();
