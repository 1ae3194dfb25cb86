// Differences: of texts by words, of values by their fields, and JSON patches in words.
import { tags } from '../lib/dom.js';
import { line } from '../lib/format.js';

const { code, dd, del, div, dl, dt, ins, li, ol, p, span } = tags;

/** Compares two texts by words. Returns runs `{ same | out | in }`. */
export function wordDiff(a, b) {
  const [left, right] = [a, b].map((text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? []);
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start++;
  let end = 0;
  while (end < left.length - start && end < right.length - start && left.at(-1 - end) === right.at(-1 - end)) end++;
  const [x, y] = [left.slice(start, left.length - end), right.slice(start, right.length - end)];
  const runs = [];
  const push = (kind, text) => {
    if (!text) return;
    if (runs.at(-1)?.kind === kind) runs.at(-1).text += text;
    else runs.push({ kind, text });
  };
  push('same', left.slice(0, start).join(''));
  if (x.length * y.length > 250000) {
    push('out', x.join(''));
    push('in', y.join(''));
  } else {
    walk(x, y, push);
  }
  push('same', end ? left.slice(-end).join('') : '');
  return runs;
}

function walk(x, y, push) {
  const width = y.length + 1;
  const table = new Uint32Array((x.length + 1) * width);
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) {
      table[i * width + j] = x[i] === y[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  let [i, j] = [0, 0];
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) {
      push('same', x[i++]);
      j++;
    } else if (j >= y.length || (i < x.length && table[(i + 1) * width + j] >= table[i * width + j + 1])) push('out', x[i++]);
    else push('in', y[j++]);
  }
}

export const words = (a, b) => span.words({ dir: 'auto' }, wordDiff(a, b).map(({ kind, text }) =>
  (kind === 'same' ? text : tags[kind === 'out' ? 'del' : 'ins'](text))));

/** Lists the places in which two values differ. */
export function changes(a, b, path = '') {
  if (a === b) return [];
  const both = [a, b].every((value) => value !== null && typeof value === 'object');
  if (!both || Array.isArray(a) !== Array.isArray(b)) return [{ path, from: a, to: b }];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((key) => changes(a[key], b[key], `${path}/${key}`));
}

const text = (value) => (value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value));

/** Draws the difference of two values as a list of changed fields. */
export function valueDiff(a, b) {
  const list = changes(a, b);
  if (!list.length) return p.soft('No difference.');
  return dl.diff(list.slice(0, 60).map(({ path, from, to }) => div({ key: path },
    dt(path.slice(1).replaceAll('/', ' › ') || 'value'),
    dd(from === undefined ? ins(text(to)) : to === undefined ? del(text(from))
      : typeof from === 'string' && typeof to === 'string' ? words(from, to) : [del(text(from)), ' ', ins(text(to))]))),
  list.length > 60 && p.soft(`Showing 60 of ${list.length} differences.`));
}

/** Draws a JSON Patch (RFC 6902), one operation a line. */
export function patchList(patch) {
  if (!patch?.length) return p.soft('This event does not change the state.');
  return ol.patch(patch.slice(0, 80).map((op, index) => li({ key: index },
    span.op({ class: op.op }, op.op), ' ', code(op.path || '(whole state)'), ' ',
    op.op === 'remove' ? null : span.value(line(op.from ?? text(op.value), 200)))),
  patch.length > 80 && p.soft(`Showing 80 of ${patch.length} operations.`));
}
