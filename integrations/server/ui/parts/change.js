// Differences: of texts by words, of values by their fields, and JSON patches in words.
import { tags } from '../lib/dom.js';
import { line } from '../lib/format.js';

const { code, dd, del, div, dl, dt, ins, li, ol, p, span } = tags;

const LARGEST = 250000;

/** Compares two texts by words. Returns parts `{ kind: same | out | in, text }`. */
export function wordDiff(a, b) {
  const [left, right] = [a, b].map((text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? []);
  let [start, end] = [0, 0];
  const shorter = Math.min(left.length, right.length);
  while (start < shorter && left[start] === right[start]) start++;
  while (end < shorter - start && left.at(-1 - end) === right.at(-1 - end)) end++;
  const parts = [];
  const push = (kind, text) => {
    if (parts.at(-1)?.kind === kind) parts.at(-1).text += text;
    else if (text) parts.push({ kind, text });
  };
  push('same', left.slice(0, start).join(''));
  walk(left.slice(start, left.length - end), right.slice(start, right.length - end), push);
  push('same', left.slice(left.length - end).join(''));
  return parts;
}

/** The longest common subsequence, as a table from the end. */
function walk(x, y, push) {
  let [i, j] = [0, 0];
  const width = y.length + 1;
  const isSmall = x.length * y.length <= LARGEST;
  const table = new Uint32Array(isSmall ? (x.length + 1) * width : 0);
  const at = (row, column) => table[row * width + column];
  for (let row = x.length - 1; isSmall && row >= 0; row--) {
    for (let column = y.length - 1; column >= 0; column--) {
      table[row * width + column] = x[row] === y[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  while (i < x.length || j < y.length) {
    if (isSmall && i < x.length && x[i] === y[j]) push('same', (j++, x[i++]));
    else if (j >= y.length || (i < x.length && !(at(i + 1, j) < at(i, j + 1)))) push('out', x[i++]);
    else push('in', y[j++]);
  }
}

const PARTS = { same: (text) => text, out: del, in: ins };
export const words = (a, b) => span.words({ dir: 'auto' }, wordDiff(a, b).map(({ kind, text }) => PARTS[kind](text)));

/** Lists the places in which two values differ. */
export function changes(a, b, path = '') {
  if (a === b) return [];
  const both = [a, b].every((value) => value !== null && typeof value === 'object');
  if (!both || Array.isArray(a) !== Array.isArray(b)) return [{ path, from: a, to: b }];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((key) => changes(a[key], b[key], `${path}/${key}`));
}

const text = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
const changed = (from, to) => (typeof from === 'string' && typeof to === 'string' ? words(from, to)
  : [from !== undefined && del(text(from)), ' ', to !== undefined && ins(text(to))]);
/** Draws the first items of a list, and says how many there are. */
const some = (list, most, what, draw) => [draw(list.slice(0, most)), list.length > most && p.soft(`Showing ${most} of ${list.length} ${what}.`)];

/** Draws the difference of two values as a list of changed fields. */
export function valueDiff(a, b) {
  const list = changes(a, b);
  if (!list.length) return p.soft('No difference.');
  return some(list, 60, 'differences', (shown) => dl.diff(shown.map(({ path, from, to }) => div({ key: path },
    dt(path.slice(1).replaceAll('/', ' › ') || 'value'), dd(changed(from, to))))));
}

/** Draws a JSON Patch (RFC 6902), one operation a line. */
export function patchList(patch) {
  if (!patch?.length) return p.soft('This event does not change the state.');
  return some(patch, 80, 'operations', (shown) => ol.patch(shown.map((op, index) => li({ key: index }, span.op({ class: op.op }, op.op), ' ',
    code(op.path || '(whole state)'), ' ', op.op !== 'remove' && span.value(line(op.from ?? text(op.value), 200))))));
}
