// A JSON value as a tree that opens on demand, with marks at changed places, and as fields for people.
import { tags } from '../lib/dom.js';
import { brief, written } from '../lib/format.js';

const { bdi, button, dd, div, dl, dt, li, p, small, span, ul } = tags;

const PAGE = 100;
const isNested = (value) => value !== null && typeof value === 'object';

/** Draws a value. `open` keeps how many entries show, by pointer; `marks` are pointers of changed places. */
export function json(value, { open = new Map(), marks = [], depth = 2, page = PAGE, most = Infinity, label } = {}) {
  return div.json({ role: 'group', 'aria-label': label }, node(value, null, '', 0));

  function node(item, name, pointer, level) {
    const props = { key: pointer, class: marks.includes(pointer) && 'changed' };
    const key = name != null && span.key(name, ': ');
    const entries = isNested(item) ? Object.entries(item) : [];
    const [from, to] = Array.isArray(item) ? '[]' : '{}';
    if (entries.length && level > most) return div.leaf(props, key, tokens(item));
    if (!entries.length) return div.leaf(props, key, isNested(item) ? from + to : scalar(item));
    const shown = open.get(pointer) ?? (level < depth || marks.some((mark) => mark.startsWith(`${pointer}/`)) ? page : 0);
    return div.branch(props,
      button.twist({ 'aria-expanded': String(shown > 0), onclick: () => open.set(pointer, shown ? 0 : page) },
        key, span.soft(shown ? from : `${from} ${brief(from === '[' ? item : Object.keys(item), 70)} ${to}`), small(` ${entries.length}`)),
      shown > 0 && div.kids(
        entries.slice(0, shown).map(([entry, one]) => node(one, entry, `${pointer}/${entry.replaceAll('~', '~0').replaceAll('/', '~1')}`, level + 1)),
        entries.length > shown && button.plain.small({ onclick: () => open.set(pointer, shown + PAGE) }, `Show more of ${entries.length - shown}`)));
  }
}

/** From how many characters on a text is drawn with a font of the system: browsers need many times as long with a loaded one. */
const LONG = 4000;
const size = (text) => (text.length > LONG ? 'long' : null);
const scalar = (value, text = String(value)) => span[typeof value]({ dir: 'auto', class: size(text) }, text || '""');

/** A value as JSON in one line. Each text is isolated, so that one from right to left does not change the order of the others. */
const tokens = (value) => span(JSON.stringify(value).split(/("(?:[^"\\]|\\.)*")/).map((part, i) => (i % 2 ? bdi(part) : part)));

/** How many plain values stand below each other without their numbers. */
const FEW = 8;
/** A value for people: text as text, an object as a list of fields, few plain values as lines, the rest as a tree. */
export function readable(value, options, level = 0) {
  if (value == null) return null;
  if (!isNested(value)) return level ? scalar(value, written(value)) : p.prose({ dir: 'auto', class: size(String(value)) }, String(value));
  const entries = Object.entries(value);
  if (!entries.length) return span(JSON.stringify(value));
  if (Array.isArray(value) && entries.length <= FEW && !value.some(isNested)) return ul.values(value.map((item, i) => li({ key: i }, scalar(item, written(item)))));
  if (Array.isArray(value) || entries.length > 12 || (level && entries.some(([, item]) => isNested(item)))) return json(value, { depth: level ? 1 : 2, ...options });
  return dl.fields(entries.map(([name, item]) => div({ key: name }, dt(name), dd(item === null ? scalar(item) : readable(item, options, level + 1)))));
}

/** The most entries that are drawn one by one, and the deepest level: each is further to the right. */
const [MAX_ENTRIES, MAX_LEVEL] = [2000, 4];
const entriesOf = (value) => (isNested(value) ? Object.values(value).reduce((sum, item) => sum + entriesOf(item), 1) : 1);
/** A value without anything folded; one with very many entries as text. */
export const whole = (value, open) => (entriesOf(value) > MAX_ENTRIES ? p.prose.long(JSON.stringify(value, null, 1)) : readable(value, { open, depth: Infinity, page: Infinity, most: MAX_LEVEL }));
