// Small parts that all views use.
import { tags } from '../lib/dom.js';
import { ago, date, micros, millis } from '../lib/format.js';
import { icon } from '../lib/icons.js';

const { button, dd, div, dl, dt, h1, p, tbody, td, th, thead, tr } = tags;

/** A time: relative, with the absolute one in the title. */
export const when = (time, now) => time != null
  && tags.time({ datetime: new Date(millis(time)).toISOString(), title: date(time) }, ago(time, now));

export const pageHead = (title, ...more) => div.pageHead(h1(title), more);

export const empty = (title, text, ...more) => div.empty(p.big(title), text && p.soft(text), more);

export const loading = (text = 'Loading…') => p.loading({ role: 'status' }, text);

const FAILURES = { 0: 'The server cannot be reached', 401: 'This browser is not signed in', 404: 'Not found' };

/** A failed request, in words. */
export function failure(error, retry) {
  const text = error.status === 401 ? 'Open the link that `positronic serve` prints; it signs this browser in once.' : error.message;
  return div.empty({ role: 'alert' }, p.big(FAILURES[error.status] ?? 'The request failed'), p.soft(text),
    retry && button({ onclick: retry }, 'Try again'));
}

/** Data of the server: `load` reads it anew, `show` draws it, or why it is absent. An answer that a later one overtakes is dropped. */
export function resource(context, read) {
  const data = { value: null, error: null, turn: 0 };
  data.load = async () => {
    const turn = ++data.turn;
    try {
      const value = await read(data.value);
      if (turn === data.turn) Object.assign(data, { value, error: null });
    } catch (error) {
      if (turn === data.turn) data.error = error;
    }
    context.redraw();
  };
  data.show = (draw) => (data.value ? draw(data.value) : data.error ? failure(data.error, data.load) : loading());
  data.load();
  return data;
}

/** A table: `columns` has a heading and a function from a row to its cell. */
export const table = (label, columns, rows) => div.scroll({ tabindex: '0', role: 'region', 'aria-label': label },
  tags.table({ 'aria-label': label }, thead(tr(Object.keys(columns).map((name) => th({ scope: 'col' }, name)))),
    tbody(rows.map((row, i) => tr({ key: row.id ?? i }, Object.values(columns).map((cell) => td(cell(row))))))));

export function copyButton(text, label = 'Copy') {
  return button.plain.small({
    onclick: async ({ currentTarget }) => {
      await copy(typeof text === 'function' ? await text() : text);
      currentTarget.dataset.done = 'true';
      setTimeout(() => delete currentTarget.dataset.done, 1200);
    },
  }, icon('copy'), label);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // The clipboard exists on secure origins only.
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
}

/** Facts as a list of terms and values; absent values are left out. */
export const facts = (pairs) => dl.facts(pairs.filter(([, value]) => value)
  .map(([name, value]) => div({ key: name }, dt(name), dd(value))));

export const took = (node) => (node.started != null && node.ended != null ? micros(node.ended - node.started) : '');
