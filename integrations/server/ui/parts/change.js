// Differences: of texts by words, and of values by their fields.
import { tags } from '../lib/dom.js';
import { date } from '../lib/format.js';

const { dd, del, div, dl, dt, ins, p, span, table, tbody, td, th, thead, tr } = tags;

/** The largest table for a comparison by words. Longer texts are replaced as a whole. */
const LARGEST = 250_000;

/** Compares two texts by words: what both have, what the first, and what the second alone has. */
export function words(a, b) {
  const [x, y] = [a, b].map((text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? []);
  const same = (from, to) => x[from] !== undefined && x[from] === y[to];
  let [start, end] = [0, 0];
  while (same(start, start)) start++;
  while (end < Math.min(x.length, y.length) - start && same(x.length - 1 - end, y.length - 1 - end)) end++;
  const middle = [x, y].map((list) => list.slice(start, list.length - end));
  return span.words({ dir: 'auto' }, x.slice(0, start).join(''), walk(...middle), x.slice(x.length - end).join(''));
}

/** The longest common subsequence, from a table of lengths that is filled from the end: `{ kind, item }` with the kind `same`, `out` or `in`. */
function steps(x, y) {
  if (x.length * y.length > LARGEST) return [...x.map((item) => ({ kind: 'out', item })), ...y.map((item) => ({ kind: 'in', item }))];
  const table = Array.from({ length: x.length + 1 }, () => new Uint16Array(y.length + 1));
  for (let i = x.length; i--;) for (let j = y.length; j--;) table[i][j] = x[i] === y[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  const list = [];
  for (let [i, j] = [0, 0]; i < x.length || j < y.length;) {
    if (i < x.length && x[i] === y[j]) list.push({ kind: 'same', item: (j++, x[i++]) });
    else if (j === y.length || (i < x.length && table[i + 1][j] >= table[i][j + 1])) list.push({ kind: 'out', item: x[i++] });
    else list.push({ kind: 'in', item: y[j++] });
  }
  return list;
}
function walk(x, y) {
  const parts = [];
  for (const { kind, item } of steps(x, y)) {
    if (parts.at(-1)?.kind === kind) parts.at(-1).text += item;
    else parts.push({ kind, text: item });
  }
  return parts.map(({ kind, text }) => ({ same: text, out: del(text), in: ins(text) })[kind]);
}

/** The share of the words of two texts that both have. */
export function likeness(a, b) {
  const [x, y] = [a, b].map((text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []);
  const left = new Map();
  for (const word of x) left.set(word, (left.get(word) ?? 0) + 1);
  const common = y.filter((word) => left.get(word) > 0 && left.set(word, left.get(word) - 1)).length;
  return x.length + y.length ? (2 * common) / (x.length + y.length) : 1;
}

/** How many lines around a change are shown. */
const AROUND = 2;
/** Compares two texts by lines: what goes and what comes, with the lines around. */
export function linesDiff(a, b) {
  const list = steps(a.split('\n'), b.split('\n'));
  const isNear = (at) => list.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(({ kind }) => kind !== 'same');
  const shown = list.map(({ kind, item }, i) => (isNear(i) ? { same: div.kept({ key: i }, '  ', item), out: div.out({ key: i }, '− ', item), in: div.come({ key: i }, '+ ', item) }[kind] : i > 0 && isNear(i - 1) && i < list.length - 1 && div.kept({ key: i }, '  …')));
  return div.linesDiff({ tabindex: '0', role: 'group', 'aria-label': 'What is changed', dir: 'auto' }, shown);
}

/** Lists the places in which two values differ. */
function changes(a, b, path = []) {
  if (a === b) return [];
  const both = [a, b].every((value) => value !== null && typeof value === 'object');
  if (!both || Array.isArray(a) !== Array.isArray(b)) return [{ path, from: a, to: b }];
  const field = (value, name) => (Object.hasOwn(value, name) ? value[name] : undefined);
  return Object.keys({ ...a, ...b }).flatMap((name) => changes(field(a, name), field(b, name), [...path, name]));
}

/** Where the times of events begin, in microseconds: no other number is as large. */
const TIMES = 1e15;
/** A value as a person reads it: a time of an event as one. */
const readable = (value) => (typeof value === 'number' && value > TIMES && Number.isInteger(value) ? date(value) : text(value));
export const text = (value) => (value === '' ? '(empty)' : typeof value === 'string' ? value : JSON.stringify(value));
/** Draws the first items of a list, and says how many there are. */
export const some = (list, most, draw) => [draw(list.slice(0, most)), list.length > most && p.soft(`Showing ${most} of ${list.length}.`)];

/** Draws the difference of two values as a list of changed fields. */
export function valueDiff(a, b) {
  const list = changes(a, b);
  if (!list.length) return p.soft('No difference.');
  return some(list, 60, (shown) => dl.diff(shown.map(({ path, from, to }) => div({ key: path.join('\n') }, dt(nameOf(path)),
    dd(from && to && typeof from === 'string' && typeof to === 'string' ? words(from, to) : [from !== undefined && del(text(from)), ' ', to !== undefined && ins(text(to))])))));
}
const nameOf = (path) => path.map((name) => (/[ ›]/.test(name) ? JSON.stringify(name) : name)).join(' › ') || 'value';

/** How much of two equal beginnings and ends is shown around what differs. */
const BESIDE = 60;
/** Two texts, each with what only it has marked. */
function apart(a, b) {
  let [start, end] = [0, 0];
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++;
  while (end < Math.min(a.length, b.length) - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  // Whole words differ.
  while (start > 0 && /\S/.test(a[start - 1])) start--;
  while (end > 0 && /\S/.test(a[a.length - end])) end--;
  return [[a, del], [b, ins]].map(([whole, mark]) => [start > BESIDE && '…', whole.slice(Math.max(0, start - BESIDE), start), mark(whole.slice(start, whole.length - end).slice(0, 600)), whole.slice(whole.length - end).slice(0, BESIDE), end > BESIDE && '…']);
}

/** Draws the fields in which two values differ, side by side under the names of both. */
export function sideBySide([one, other], a, b) {
  const cells = ({ from, to }) => (typeof from === 'string' && typeof to === 'string' ? apart(from, to) : [from === undefined ? span.soft('absent') : del(readable(from)), to === undefined ? span.soft('absent') : ins(readable(to))]);
  return some(changes(a, b), 12, (shown) => div.scroll({ tabindex: '0', role: 'region', 'aria-label': 'What differs' }, table.sides(thead(tr(['Field', one, other].map((name) => th({ scope: 'col' }, name)))),
    tbody(shown.map((change) => tr({ key: change.path.join('\n') }, th({ scope: 'row' }, nameOf(change.path)), cells(change).map((content) => td({ dir: 'auto' }, content))))))));
}
export default valueDiff;
