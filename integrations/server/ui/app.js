// The inspector page: routes, the frame around the views, and what all views share.
import { tags, render, perFrame } from './lib/dom.js';
import { get, post, follow, ui, Problem } from './lib/api.js';
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

const VIEWS = { runs: runsView, run: runView, inbox: inboxView, diff: diffView, brains: brainsView, schedules: schedulesView, webhooks: webhooksView };
const NAV = [['runs', 'Runs', 'r'], ['inbox', 'Inbox', 'i'], ['brains', 'Brains', 'b'], ['schedules', 'Schedules', 's'], ['webhooks', 'Webhooks', 'w']];

const app = { session: null, pending: null, link: 'idle', trouble: null, view: null, name: '' };
const redraw = perFrame(draw);

/** Reads an address of the page: `runs/{id}/{tab}/{seq}`, or a page and what follows it. */
function route() {
  const [page = 'runs', ...rest] = location.pathname.slice(ui().length).split('/').filter(Boolean).map(decodeURIComponent);
  const query = new URLSearchParams(location.search);
  if (page === 'runs' && rest.length) return { name: 'run', id: rest[0], tab: rest[1] ?? 'transcript', rest: rest.slice(2), query };
  return { name: VIEWS[page] ? page : 'runs', rest, query };
}

/** What a view gets: its route and the ways to change the page. */
const context = {
  go(path, { replace = false } = {}) {
    history[replace ? 'replaceState' : 'pushState'](null, '', ui(path));
    show();
  },
  redraw,
  get session() { return app.session; },
  get main() { return document.getElementById('main'); },
  say,
  setLink,
  refreshPending,
};

function show() {
  const to = route();
  const same = app.view && app.name === to.name && app.view.update?.(to);
  if (!same) {
    app.view?.close?.();
    bind('This page', null);
    app.name = to.name;
    app.view = VIEWS[to.name](context, to);
    context.main?.scrollTo(0, 0);
    if (context.main) context.main.focus({ preventScroll: true });
    followStream();
  }
  redraw();
}

function draw() {
  const root = document.getElementById('app');
  document.title = `${app.view?.title?.() ?? 'Runs'} · Positronic`;
  bind('This page', app.view?.keys?.() ?? null);
  render(root,
    header.bar(
      a.brand({ href: ui('/runs'), 'aria-label': 'Positronic, runs' }, img({ src: new URL('./icon.svg', import.meta.url).pathname, alt: '', width: 22, height: 22 }), b('Positronic')),
      nav({ 'aria-label': 'Pages' }, NAV.map(([page, text]) => a({
        href: ui(`/${page}`), 'aria-current': app.name === page || (page === 'runs' && app.name === 'run') ? 'page' : null,
      }, text, page === 'inbox' && app.pending ? span.count({ 'aria-label': `${app.pending} pending` }, app.pending) : null))),
      span.grow(),
      app.session?.read_only ? span.tag({ title: 'The page shows an exported log; nothing can be changed.' }, 'read-only') : null,
      span.link({ class: app.link, role: 'status' }, { lost: 'reconnecting…', out: 'signed out: open the link of the server again' }[app.link]),
      button.plain.find({ onclick: openPalette, title: 'Find a command or a run' }, icon('search'), span('Find'), kbd(navigator.platform?.startsWith('Mac') ? '⌘K' : 'Ctrl K')),
      button.plain.round({ onclick: nextTheme, 'aria-label': `Colours: ${pref('theme') ?? 'auto'}`, title: `Colours: ${pref('theme') ?? 'auto'}` }, icon('sun')),
      button.plain.round.wideOnly({ onclick: help, 'aria-label': 'Keys', title: 'Keys (?)' }, icon('keys'))),
    main({ id: 'main', tabindex: '-1', key: 'main' }, app.trouble ? failure(app.trouble, start) : div.view({ key: app.name }, app.view?.render())));
  app.view?.drawn?.();
}

function nextTheme() {
  const themes = ['auto', 'light', 'dark'];
  setPref('theme', themes[(themes.indexOf(pref('theme') ?? 'auto') + 1) % 3]);
  applyTheme();
  redraw();
}
function applyTheme() {
  document.documentElement.dataset.theme = pref('theme') ?? 'auto';
}

function openPalette() {
  const pages = NAV.map(([page, text, key]) => ({ text, hint: `g ${key}`, act: () => context.go(`/${page}`) }));
  const own = Object.entries(app.view?.keys?.() ?? {}).filter(([, [text]]) => text).map(([key, [text, act]]) => ({ text, hint: key.replace('mod+', '⌘'), act }));
  const settings = [
    { text: 'Colours: next', act: nextTheme },
    { text: `Times: ${pref('utc') === 'on' ? 'local' : 'UTC'}`, act: () => { setPref('utc', pref('utc') === 'on' ? 'off' : 'on'); redraw(); } },
    { text: 'Keys', hint: '?', act: help },
  ];
  palette([...own, ...pages, ...settings], async (q) => {
    const { items } = await get('/runs', { q, limit: 6 });
    return items.map((run) => ({ text: `${run.brain} ${shortId(run.id)}`, hint: run.status, act: () => context.go(`/runs/${run.id}`) }));
  });
}

let sayTimer = 0;
/** Tells a screen reader one sentence; routine ones at most every 5 seconds. */
function say(text, urgent = false) {
  if (urgent) {
    document.getElementById('alert').textContent = text;
    return;
  }
  if (sayTimer) return;
  document.getElementById('live').textContent = text;
  sayTimer = setTimeout(() => { sayTimer = 0; }, 5000);
}

async function refreshPending() {
  try {
    const { items, next } = await get('/pending', { limit: 99 });
    const before = app.pending;
    app.pending = next ? '99+' : items.length;
    if (before != null && items.length > before) say(`${items.length} items wait for a person.`, true);
    redraw();
  } catch { /* The next change asks again. */ }
}

function followStream() {
  // One stream a tab, since browsers allow six connections to a server: a run's page follows its run only.
  if (app.view?.follows) {
    app.unfollow?.();
    app.unfollow = null;
    return;
  }
  if (app.unfollow || document.hidden) return;
  let timer = 0;
  app.unfollow = follow('/stream', {
    events: {
      run: (run) => {
        app.view?.onrun?.(run);
        clearTimeout(timer);
        timer = setTimeout(() => {
          refreshPending();
          app.view?.onchange?.(run);
        }, 120);
      },
    },
    onstate: (state) => {
      // What changed without a connection is read again.
      if (state === 'live' && app.link === 'lost') {
        refreshPending();
        app.view?.onchange?.();
      }
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
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || link.target || link.hasAttribute('download')) return;
  const to = new URL(link.href);
  if (to.origin !== location.origin || !to.pathname.startsWith(ui()) || to.hash) return;
  event.preventDefault();
  history.pushState(null, '', to);
  show();
});
document.addEventListener('visibilitychange', () => {
  if (!app.session) return;
  if (document.hidden) {
    app.unfollow?.();
    app.unfollow = null;
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
  ...Object.fromEntries(NAV.map(([page, text, key]) => [`g ${key}`, [text, () => context.go(`/${page}`)]])),
});
applyTheme();
start();
