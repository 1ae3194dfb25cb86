// A JSON value as a tree that opens on demand. Changed places are marked.
import { tags } from '../lib/dom.js';
import { line } from '../lib/format.js';

const { button, dd, div, dl, dt, p, small, span } = tags;

const PAGE = 100;
const escape = (key) => String(key).replaceAll('~', '~0').replaceAll('/', '~1');

/** Draws a value. `state` keeps what is open, by pointer; `marks` are pointers of changed places. */
export function json(value, { state, redraw, marks = [], depth = 2, page = PAGE, label = null } = {}) {
  const open = state ?? new Map();
  return div.json({ role: 'group', 'aria-label': label }, node(value, null, '', { open, redraw, marks, depth, page }, 0));
}

function node(value, name, pointer, tree, level) {
  const { open, redraw, marks, depth, page } = tree;
  const marked = marks.includes(pointer);
  const key = name == null ? null : span.key(name, ': ');
  if (value === null || typeof value !== 'object') return div.leaf({ key: pointer, class: marked ? 'changed' : '' }, key, scalar(value));
  const entries = Array.isArray(value) ? value.map((item, index) => [index, item]) : Object.entries(value);
  const [from, to] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (!entries.length) return div.leaf({ key: pointer, class: marked ? 'changed' : '' }, key, span.soft(from + to));
  const holdsMark = marks.some((mark) => mark.startsWith(`${pointer}/`));
  const shown = open.get(pointer) ?? (level < depth || holdsMark ? page : 0);
  const toggle = () => {
    open.set(pointer, shown ? 0 : page);
    redraw?.();
  };
  return div.branch({ key: pointer, class: marked ? 'changed' : '' },
    button.twist({ 'aria-expanded': String(Boolean(shown)), onclick: toggle },
      key, span.soft(shown ? from : `${from} ${line(entries.map(([entry, item]) => (Array.isArray(value) ? peek(item) : entry)).slice(0, 8).join(', '), 70)} ${to}`),
      small.soft(` ${entries.length}`)),
    shown ? div.kids(
      entries.slice(0, shown).map(([entry, item]) => node(item, entry, `${pointer}/${escape(entry)}`, tree, level + 1)),
      entries.length > shown && button.plain.small({ onclick: () => { open.set(pointer, shown + PAGE); redraw?.(); } }, `Show ${Math.min(PAGE, entries.length - shown)} of ${entries.length - shown} more`)) : null);
}

const peek = (value) => (value !== null && typeof value === 'object' ? (Array.isArray(value) ? '[…]' : '{…}') : String(value));

export function scalar(value) {
  if (typeof value === 'string') return span.string({ dir: 'auto' }, value === '' ? '""' : value);
  return tags.span[value === null ? 'null' : typeof value === 'number' ? 'number' : 'bool'](String(value));
}

const nested = (item, options) => (!Array.isArray(item) && Object.values(item).every((field) => field === null || typeof field !== 'object') ? readable(item, options) : json(item, { depth: 1, ...options }));

/** A value for people: text as text, an object as a list of fields, the rest as a tree. */
export function readable(value, options = {}) {
  if (value == null) return null;
  if (typeof value === 'string') return p.prose({ dir: 'auto' }, value);
  if (typeof value !== 'object') return p.prose(String(value));
  if (Array.isArray(value) || Object.keys(value).length > 12) return json(value, options);
  return dl.fields(Object.entries(value).map(([name, item]) => div({ key: name },
    dt(name), dd(item !== null && typeof item === 'object' ? nested(item, options) : scalar(item)))));
}
