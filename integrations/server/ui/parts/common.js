// Small parts that all views use.
import { quoted } from '../lib/cause.js';
import { tags } from '../lib/dom.js';
import { ago, date, micros, millis, sentenceCase, shortId } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { PAGES, ui } from '../lib/page.js';

const { a, button, code, dd, div, dl, dt, h1, p, span, tbody, td, th, thead, tr } = tags;

/** What a cancellation does. */
export const CANCELS = 'Calls that have not started are skipped, and those in flight are interrupted. This cannot be undone.';
export const hasEnded = ({ status }) => ['completed', 'failed', 'cancelled'].includes(status);
/** A time: relative, with the absolute one in the title. */
export const when = (time) => time != null && tags.time({ datetime: new Date(millis(time)).toISOString(), title: date(time) }, ago(time));
export const took = ({ started, ended }) => (started != null && ended != null ? micros(ended - started) : '');
export const pageHead = (title, ...more) => div.bar.pageHead(h1(title), more);
export const empty = (title, text, ...more) => div.empty(p.big(title), p.soft(text), more);
export const loading = (text = 'Loading…') => p.loading({ role: 'status' }, text);

const FAILURES = { 0: 'The server cannot be reached', 401: 'This browser is not signed in', 404: 'Not found' };
/** A failed request, or an error of the page itself, in words. */
export const failure = ({ status, message, refused, retries }, retry) => div.empty({ role: 'alert' },
  p.big(FAILURES[status] ?? (status ? 'The request failed' : 'A part of the page failed')),
  p.soft(quoted(status === 401 ? `${refused ? 'The link was refused: it is unknown, has expired or was used. ' : ''}Open the link that \`serve\` prints when it starts. It signs in one browser, within 15 minutes.` : retries ? 'The page asks it again by itself.' : sentenceCase(message))), button({ onclick: retry }, 'Try again'), status === 404 && listLink());
/** Leads from what does not exist to the list of what does. */
function listLink() {
  const [, name] = location.pathname.slice(ui().length).split('/');
  const { name: list, text } = PAGES.find((page) => page.name === name) ?? PAGES.find((page) => page.name === 'runs');
  return a.button({ href: ui(`/${list}`) }, `All ${text.toLowerCase()}`);
}

/** What could not be read while the server was not reached. */
const unread = new Set();
/** Reads anew what could not be read while the server was not reached. */
export function readUnread() {
  const again = [...unread];
  unread.clear();
  again.forEach((data) => data.load());
}
/** Data of the server: `load` reads it anew, `show` draws it, or why it is absent. An answer that a later one overtakes is dropped. */
export function resource(read) {
  const data = { value: null, error: null, turn: 0 };
  data.load = async () => {
    const turn = ++data.turn;
    const answer = await read(data.value).then((value) => ({ value, error: null }), (error) => ({ error }));
    if (turn === data.turn) Object.assign(data, answer);
    if (data.error?.status === 0) unread.add(data);
  };
  data.show = (draw) => (data.value ? draw(data.value) : data.error ? failure({ ...data.error, message: data.error.message, retries: data.error.status === 0 }, data.load) : loading());
  data.load();
  return data;
}

/** The id of a run as it is shown: of a long one, the beginning is cut where there is no room, since the ids of a conversation differ at their ends. */
export function idText(id) {
  const text = shortId(id);
  return text.length > 12 ? span.ends(span.cut(text.slice(0, -6)), span(text.slice(-6))) : text;
}

/** A table: `columns` has a heading and a function from a row to its cell. */
export const table = (label, columns, rows, none) => (rows.length ? div.scroll({ tabindex: '0', role: 'region', 'aria-label': label },
  tags.table({ 'aria-label': label }, thead(tr(Object.keys(columns).map((name) => th({ scope: 'col' }, name)))),
    tbody(rows.map((row, i) => tr({ key: row.id ?? i }, Object.values(columns).map((cell) => td(cell(row)))))))) : p.soft(none));

/** Facts as a list of terms and values; absent values are left out. */
export const facts = (values) => dl.facts(Object.entries(values).filter(([, value]) => value).map(([name, value]) => div({ key: name }, dt(name), dd(value))));

/** A button that copies a text, or what a function returns. */
export const copyButton = (text, label = 'Copy') => button.plain.small({ onclick: async ({ currentTarget: { dataset } }) => {
  await copy(typeof text === 'function' ? await text() : text);
  dataset.done = 'true';
  setTimeout(() => delete dataset.done, 1200);
} }, icon('copy'), label);

/** A command for a terminal, with a button that copies it. In several lines its words stay whole where they have room; one line is cut. */
export const command = (text, isLine = false) => text && div.command({ key: 'command' }, code(isLine ? text : text.split(' ').map((word, i) => [i > 0 && ' ', span.word({ key: i }, word)])), copyButton(text));

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // The clipboard exists on secure origins only.
    const area = Object.assign(document.createElement('textarea'), { value: text });
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
}
