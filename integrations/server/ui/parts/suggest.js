// What a search may go on with: keys, and after a key the values that are known.
import { tags } from '../lib/dom.js';
import { status } from '../lib/icons.js';
import { number, plural } from '../lib/format.js';
import { KEYS } from './query.js';

const { div, kbd, li, p, small, span, ul } = tags;

const MOST = 11;
/** The statuses that the server counts, and what runs are called beside them. */
export const STATUSES = ['running', 'waiting', 'paused', 'completed', 'failed', 'cancelled'];
const STANDINGS = { stuck: 'no worker can continue them', queued: 'no worker has claimed them yet', sleeping: 'until a time', parked: 'after too many crashes', 'cut off': 'at a limit' };
const TIMES = { today: 'since midnight', '1h': 'the last hour', '24h': 'the last 24 hours', '7d': 'the last 7 days' };
const quotedIf = (value) => (/\s/.test(value) ? `"${value}"` : value);

/** Counts the values of a field in the rows that are shown. */
function counted(rows, of) {
  const counts = new Map();
  for (const row of rows) for (const value of [of(row)].flat()) if (value) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1]).map(([value, n]) => ({ value, hint: `${number(n)} of those shown` }));
}

/** The values of each key that the page knows. */
const VALUES = {
  // Of what no run is, nothing is offered before it is asked for.
  status: ({ counts }) => STATUSES.map((value) => ({ value, isNone: counts && !counts.capped && counts[value] === 0 && STATUSES.some((name) => counts[name] > 0), shown: status(value), hint: counts && (counts.capped ? `${number(counts[value])}+ runs` : plural(counts[value], 'run')) }))
    .concat(Object.entries(STANDINGS).map(([value, hint]) => ({ value, hint, shown: status(value === 'cut off' ? 'limited' : value) }))),
  brain: ({ titles }) => titles.map((value) => ({ value })),
  user: ({ rows }) => counted(rows, ({ user }) => user),
  tag: ({ rows }) => counted(rows, ({ tags: own }) => own),
  conversation: ({ rows }) => counted(rows, ({ conversation }) => conversation),
  model: ({ rows }) => counted(rows, ({ models }) => models),
  needs: () => [{ value: 'decision', hint: 'waits for a person' }],
  since: () => Object.entries(TIMES).map(([value, hint]) => ({ value, hint })),
  tool: ({ tools }) => tools.map((value) => ({ value, hint: 'has asked a person lately' })),
};

/** Lists how the word before the caret may go on: `{ title, from, items: [{ insert, shown, hint }] }`. */
export function suggestions(text, caret, known) {
  const word = /(?:[a-z]+:"[^"]*|\S*)$/.exec(text.slice(0, caret))[0];
  const from = caret - word.length;
  const [, key, begun] = /^([a-z]+):"?(.*)$/.exec(word) ?? [];
  const fits = (value, part) => value.toLowerCase().includes(part.toLowerCase());
  const begins = (value, part) => value.toLowerCase().startsWith(part.toLowerCase());
  if (key && Object.hasOwn(KEYS, key)) {
    const items = (VALUES[key]?.(known) ?? []).filter(({ value, isNone }) => fits(value, begun) && value !== begun && !(isNone && !begun))
      // What begins so comes before what has it somewhere.
      .toSorted((one, other) => Number(begins(other.value, begun)) - Number(begins(one.value, begun))).slice(0, MOST);
    return { title: `${key}: ${KEYS[key]}`, from, items: items.map(({ value, shown, hint }) => ({ insert: `${key}:${quotedIf(value)} `, shown: shown ?? value, hint })) };
  }
  if (key) return { title: '', from, items: [] };
  const keys = Object.keys(KEYS).filter((name) => name.startsWith(word)).map((name) => ({ insert: `${name}:`, shown: `${name}:`, hint: KEYS[name] }));
  const brains = word.length > 1 ? known.titles.filter((title) => fits(title, word)).map((title) => ({ insert: `brain:${quotedIf(title)} `, shown: `brain:${title}`, hint: 'its runs' })) : [];
  const stands = word.length > 1 ? [...STATUSES, ...Object.keys(STANDINGS)].filter((name) => name.startsWith(word)).map((name) => ({ insert: `status:${quotedIf(name)} `, shown: `status:${name}`, hint: STANDINGS[name] ?? 'its runs' })) : [];
  return { title: word ? 'Keys, and what begins alike' : 'Narrow the list by', from, items: [...brains, ...stands, ...keys].slice(0, MOST) };
}

/** Draws the suggestions below a field. */
export const menuOf = ({ title, items }, active, take) => div.suggestions({ key: 'suggestions', onmousedown: (event) => event.preventDefault() }, p.soft(title),
  ul({ id: 'suggestions', role: 'listbox', 'aria-label': 'Suggestions' }, items.map((item, i) => li({ key: item.insert, id: `suggestion-${i}`, role: 'option', 'aria-selected': String(i === active), onclick: () => take(item) }, span(item.shown), item.hint && small(item.hint)))),
  p.quiet(kbd('↑'), kbd('↓'), ' choose ', kbd('Tab'), ' take ', kbd('↵'), ' search'));
