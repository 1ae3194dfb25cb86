// JSON patches in words.
import { tags } from '../lib/dom.js';
import { brief, line } from '../lib/format.js';
import { some, text } from './change.js';

const { code, li, ol, p, span } = tags;

/** Draws a JSON Patch (RFC 6902), one operation a line. */
export function patchList(patch) {
  if (!patch?.length) return p.soft('This event does not change the state.');
  return some(patch, 80, (shown) => ol.patch(shown.map(({ op, path, from, value }, i) => li({ key: i }, span.op({ class: op }, op), ' ',
    code(path || '(whole state)'), ' ', op !== 'remove' && line(from ?? (value !== null && typeof value === 'object' ? brief(value, 200) : text(value)), 200)))));
}
