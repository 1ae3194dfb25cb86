// The inspector page: routes, the frame around the views, and the stream that keeps lists current.
import { tags, render, onRedraw, redraw } from './lib/dom.js';
import { get, post, request, follow, Problem } from './lib/api.js';
import { bind, help, isField, offHint, release } from './lib/keys.js';
import { icon } from './lib/icons.js';
import { at, caller, go, later, load, main as mainOf, PAGES, pref, say, setPref, START, TABS, ui } from './lib/page.js';
import { shortId } from './lib/format.js';
import { idsOf } from './parts/ids.js';
import { failure, loading, readUnread } from './parts/common.js';

const { a, aside, button, div, h2, header, img, kbd, main, nav, span } = tags;

const LINK = { live: 'Live', lost: 'Reconnecting…', out: 'Signed out: open a new link of `positronic serve`', idle: 'Not connected yet' };
const signIn = later('signin');
const ICON = new URL('./icon.svg', import.meta.url).pathname;

/** The modules of `views/`, which load when they are first shown, or once the page is idle, so that nothing waits for them later. */
const MODULES = ['run', ...Object.keys(TABS), ...PAGES.map(({ name }) => name), 'diff', 'fork', 'actions', 'bulk'];

const app = { pending: null, link: 'idle', trouble: null, view: null, name: '', turn: 0 };

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch { // An address that was typed, with a `%` that encodes nothing.
    return text;
  }
}

/** Reads the address: `runs/{id}/{tab}/{seq}`, or a page and what follows it. */
function route() {
  const [page = START, ...rest] = location.pathname.slice(ui().length).split('/').filter(Boolean).map(decoded);
  const query = new URLSearchParams(location.search);
  if (page === 'runs' && rest[1] && !Object.hasOwn(TABS, rest[1])) return { unknown: `A run has no view \`${rest[1]}\`.` };
  if (page === 'runs' && rest.length) return { name: 'run', id: rest[0], tab: rest[1] ?? 'transcript', rest: rest.slice(2), query };
  const isKnown = ['diff', 'fork'].includes(page) || PAGES.some(({ name }) => name === page);
  return isKnown ? { name: page, rest, query } : { unknown: `There is no page \`${page}\`.` };
}

/** What a view tells the page. */
const frame = {
  fail,
  setLink(state) { app.link = state; },
  async countPending() {
    const { items, next } = await get('/pending', { person: true, limit: 99 }).catch(() => ({}));
    if (!items) return;
    if (app.pending != null && items.length > app.pending) announce(`${items.length} items wait for a person.`);
    app.pending = next ? '99+' : items.length;
  },
};

/** Says that something new waits: to a screen reader, and to a person who looks elsewhere and has asked for it. */
function announce(text) {
  say(text, true);
  if (document.hidden && pref('notify') === 'on' && globalThis.Notification?.permission === 'granted') new Notification('Positronic', { body: text, tag: 'pending' });
}

/** Shows what the address names. A view that loads while the reader goes elsewhere is not shown. */
async function show() {
  const turn = ++app.turn;
  const to = route();
  if (to.unknown) return fail(new Problem(404, { title: to.unknown }));
  if (app.name === to.name && app.view.update?.(to)) return redraw();
  app.trouble = null;
  const view = await load(to.name).then((module) => module.default, (error) => turn === app.turn && failToLoad(error));
  if (!view || turn !== app.turn) return;
  app.view?.close?.();
  app.name = to.name;
  app.view = view(to, frame);
  mainOf().scrollTo(0, 0);
  // A person who types when a view is replaced has not asked for it, so that keys stay off.
  if (!isField(document.activeElement)) release();
  draw();
  mainOf().focus({ preventScroll: true });
  followStream();
  redraw();
}

/** Shows why the page cannot continue, and closes the view, so that no key acts on what is not shown. */
function fail(error) {
  app.view?.close?.();
  Object.assign(app, { trouble: error, view: null, name: '' });
  redraw();
}

/** Shows why a view does not load. A server that was away may have another version of it, so the page is loaded anew once the server answers. */
async function failToLoad(error) {
  const answers = () => get('/session').then(() => true, ({ status }) => status !== 0);
  if (await answers()) return fail(error);
  const away = Object.assign(new Problem(0, { title: 'The server cannot be reached.' }), { retries: true });
  fail(away);
  while (app.trouble === away) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    if (app.trouble === away && await answers()) location.reload();
  }
}

function draw() {
  try {
    drawPage();
  } catch (error) {
    if (app.trouble) throw error;
    fail(error);
  }
}

function drawPage() {
  document.documentElement.dataset.theme = theme();
  document.title = `${app.pending ? `(${app.pending}) ` : ''}${app.view?.title() ?? 'Runs'} · Positronic`;
  // What waits shows in the tab of the browser, too.
  const mark = document.querySelector('link[rel=icon]');
  const shape = app.pending ? ICON.replace('icon.svg', 'icon-waits.svg') : ICON;
  if (!mark.href.endsWith(shape)) mark.href = shape;
  bind('This page', app.view?.keys?.() ?? {});
  render(document.getElementById('app'), side(),
    div.frame({ 'data-view': app.trouble ? null : app.name },
      !app.trouble && app.view?.head && header.head({ key: `head ${app.name}` }, app.view.head()),
      !app.trouble && app.view?.queue?.(),
      main({ id: 'main', tabindex: '-1', key: 'main' }, app.trouble ? [failure(app.trouble, () => location.reload()), app.trouble.status === 401 && signIn()] : div.view({ key: app.name }, app.view ? app.view.render() : loading())),
      !app.trouble && app.view?.beside?.()));
}

/** Draws the side bar, which stands at the bottom of a narrow window. */
function side() {
  const current = ['run', 'fork', 'diff'].includes(app.name) ? 'runs' : app.name;
  const colours = `Colours: ${theme()}`;
  // Without a session there is nothing to go to.
  const isOut = app.trouble?.status === 401;
  const link = ({ name, text, shape, rare }) => a({ key: name, href: ui(`/${name}`), title: text, 'aria-current': name === current && 'page', class: rare && 'rare' }, icon(shape), span(text),
    name === 'inbox' && app.pending ? span.count.wait({ 'aria-label': `${app.pending} pending` }, app.pending) : null);
  return aside.side({ key: 'side', 'aria-label': 'Positronic' },
    a.brand({ href: ui(`/${START}`), 'aria-label': 'Positronic, start' }, img({ src: ICON, alt: '', width: 20, height: 20 }), span('Positronic')),
    !isOut && button.find({ onclick: openPalette, title: 'Find a command or a run' }, icon('search'), span('Find'), kbd('Ctrl K')),
    !isOut && nav({ 'aria-label': 'Pages' }, PAGES.map((page, i) => [page.group && page.group !== PAGES[i - 1]?.group && h2({ key: page.group }, page.group), link(page)]),
      button.narrow({ onclick: openPalette }, icon('dots'), span('More'))),
    div.foot(
      offHint(), caller.session?.read_only && span.link.idle(icon('file'), span.tag({ title: 'The page shows an exported log; nothing can be changed.' }, 'read-only')),
      span.link({ class: app.link, role: 'status' }, span.dot(), span(LINK[app.link])),
      button({ onclick: nextTheme, title: colours }, icon('sun'), span(colours)), button({ onclick: help, title: 'Keys (?)' }, icon('keys'), span('Keys'), kbd('?'))));
}

const THEMES = ['auto', 'light', 'dark'];
const theme = () => pref('theme') ?? 'auto';
const nextTheme = () => setPref('theme', THEMES[(THEMES.indexOf(theme()) + 1) % 3]);
const nextZone = () => setPref('utc', pref('utc') === 'on' ? 'off' : 'on');
const signOut = () => request('DELETE', '/session').then(() => location.reload(), (error) => say(error.message, true));

/** Where a search has found its words. */
const hitWords = (hit) => hit && `${hit.field ? `${hit.field}: ` : ''}${hit.text}`;

/** The palette, once it is loaded: the letters after its key are typed into it at once. */
let palette = null;
const loadPalette = () => load('palette').then((module) => { palette = module.default; });
function openPalette() {
  const pages = PAGES.map(({ name, text }) => ({ text, hint: `g ${name[0]}`, act: () => go(`/${name}`) }));
  const own = Object.entries(app.view?.keys?.() ?? {}).filter(([, [text]]) => text).map(([hint, [text, act]]) => ({ text, hint, act }));
  const more = { 'Colours: next': nextTheme, [`Times: ${pref('utc') === 'on' ? 'local' : 'UTC'}`]: nextZone, Keys: help, 'Sign out': signOut };
  const others = Object.entries(more).map(([text, act]) => ({ text, act }));
  // A narrow window has no keyboard: it goes to pages from here.
  const commands = matchMedia('(max-width: 699px)').matches ? [...pages.map(({ text, act }) => ({ text, act })), ...others] : [...own, ...pages, ...others];
  const found = (run, hits = []) => {
    const hit = hits.find((one) => one.run === run.id);
    return { text: `${run.brain} ${shortId(run.id)}`, about: hitWords(hit) ?? run.input, hint: run.status, act: () => go(hit ? at('runs', run.id, 'transcript', hit.seq) : at('runs', run.id)) };
  };
  const find = async (q) => {
    const [{ items, hits }, ids] = await Promise.all([get('/runs', { q, limit: 6 }), idsOf(q.trim())]);
    const ended = await Promise.all(ids.slice(0, 3).map((id) => get(`/runs/${id}`)));
    return [...ended, ...items.filter(({ id }) => !ids.includes(id))].map((run) => found(run, hits));
  };
  if (palette) palette(commands, find);
  else loadPalette().then(openPalette, fail);
}

/** Follows the changes of all runs. One stream a tab, since browsers allow six connections to a server: a run's page follows
 *  its run only, and a hidden page nothing. */
function followStream() {
  app.unfollow?.();
  app.unfollow = null;
  if (!app.view || app.view.follows || document.hidden) return;
  let timer = 0;
  const changed = (run) => {
    frame.countPending();
    app.view?.change?.(run);
  };
  app.unfollow = follow('/stream', {
    events: { run: (run) => {
      clearTimeout(timer);
      timer = setTimeout(changed, 120, run);
    } },
    onstate: (state) => {
      // What changed without a connection is read again.
      if (state === 'live' && app.link === 'lost') {
        changed();
        readUnread();
      }
      frame.setLink(state);
    },
  });
}

async function start() {
  let used = null;
  const code = /^#code=(.+)$/.exec(location.hash)?.[1];
  try {
    if (code) {
      history.replaceState(null, '', location.pathname + location.search);
      await post('/session', { code }).catch((error) => { used = error; });
    }
    // A link that was used before is fine in a browser that is signed in.
    caller.session = await get('/session').catch((error) => { throw used ? Object.assign(used, { refused: used.status === 401 }) : error; });
  } catch (error) {
    return fail(error);
  }
  await show();
  frame.countPending();
  loadPalette().catch(() => {});
  setTimeout(() => MODULES.forEach((name) => load(name).catch(() => {})), 1000);
}

addEventListener('popstate', () => caller.session && show());
addEventListener('click', (event) => {
  const menu = document.querySelector('details.menu[open]');
  if (menu && !menu.contains(event.target)) menu.open = false;
  const link = event.target.closest?.('a[href]');
  const to = link && new URL(link.href);
  const isElsewhere = event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.defaultPrevented;
  if (!link || isElsewhere || link.target || link.download || to.origin !== location.origin || !to.pathname.startsWith(ui()) || to.hash) return;
  event.preventDefault();
  // The link may leave with what it is on.
  release();
  document.querySelector('dialog[open]')?.close();
  go(to.href.slice(location.origin.length + ui().length));
});
document.addEventListener('visibilitychange', () => {
  if (!app.view) return;
  followStream();
  if (document.hidden) return app.view.hide?.();
  frame.countPending();
  app.view.change?.();
});
setInterval(() => document.hidden || redraw(), 1000);

bind('Everywhere', { '?': ['Keys', help], 'mod+k': ['Find a command or a run', openPalette],
  ...Object.fromEntries(PAGES.map(({ name, text }) => [`g ${name[0]}`, [text, () => go(`/${name}`)]])) });
// Views listen to the scrolling of `main`, so it exists before the first of them.
draw();
onRedraw(draw);
start();
