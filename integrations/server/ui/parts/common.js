// Small parts that all views use.
import { tags } from '../lib/dom.js';
import { ago, date, micros, millis } from '../lib/format.js';
import { icon } from '../lib/icons.js';

const { button, dd, div, dl, dt, p } = tags;

/** A time: relative, with the absolute one in the title. */
export const when = (time, now) => (time == null ? null : tags.time({ datetime: new Date(millis(time)).toISOString(), title: date(time) }, ago(time, now)));

export const empty = (title, text, ...more) => div.empty(p.big(title), text && p.soft(text), more);

export const loading = (text = 'Loading…') => p.loading({ role: 'status' }, text);

/** A failed request, in words. */
export function failure(error, retry) {
  const unknown = error.status === 401;
  return div.empty({ role: 'alert' },
    p.big(unknown ? 'This browser is not signed in' : error.status === 404 ? 'Not found' : error.status === 0 ? 'The server cannot be reached' : 'The request failed'),
    p.soft(unknown ? 'Open the link that `positronic serve` prints; it signs this browser in once.' : error.message),
    retry && button({ onclick: retry }, 'Try again'));
}

export function copyButton(text, label = 'Copy') {
  return button.plain.small({
    onclick: async (event) => {
      const button = event.currentTarget;
      const value = typeof text === 'function' ? await text() : text;
      await copy(value);
      button.dataset.done = 'true';
      setTimeout(() => delete button.dataset.done, 1200);
    },
  }, icon('copy'), label);
}

export async function copy(text) {
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
export const facts = (pairs) => dl.facts(pairs.filter(([, value]) => value != null && value !== '' && value !== false)
  .map(([name, value]) => div({ key: name }, dt(name), dd(value))));

export const took = (node) => (node.started != null && node.ended != null ? micros(node.ended - node.started) : '');
