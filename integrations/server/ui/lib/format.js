// Times, durations, amounts and short forms of values, as text.
import { pref } from './page.js';

const plain = new Intl.NumberFormat('en');
export const number = (n) => plain.format(n ?? 0);
export const compact = (n) => (n < 10000 ? number(n) : n < 999_950 ? `${plain.format(Math.round(n / 100) / 10)}k` : `${plain.format(Math.round(n / 1e5) / 10)}M`);
export const plural = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;
export const bytes = (n) => (n < 1000 ? `${n} B` : n < 1e6 ? `${(n / 1000).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`);
export function tokens(usage) {
  const total = (usage?.input ?? 0) + (usage?.output ?? 0);
  return total ? `${compact(total)} tokens` : '';
}
/** Formats an amount of money, which is text or a number of billionths. */
export function money(amount, currency = '') {
  const value = typeof amount === 'string' ? Number(amount) : amount / 1e9;
  const digits = value === 0 || value >= 100 ? 2 : value >= 1 ? 3 : value >= 0.0001 ? 4 : value >= 0.00001 ? 6 : 8;
  const sign = { USD: '$', EUR: '€', GBP: '£' }[currency];
  return sign ? sign + value.toFixed(digits).replace(/(\.\d{4}\d*?)0+$/, '$1') : `${Number(value.toFixed(digits))} ${currency}`.trim();
}

/** A sum of money to the cent, or as exactly as one of a single run if it is small. */
export const cash = (amount, currency) => money(String(amount), currency).replace(/^(\D*[1-9]\d*\.\d\d)\d+/, '$1');

/** Converts a time of an event (microseconds) or of the API (RFC 3339) to milliseconds. */
export const millis = (time) => (typeof time === 'number' ? time / 1000 : Date.parse(time));

const UNITS = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
/** Formats a duration in milliseconds by its two largest units. */
export function duration(ms) {
  if (ms == null || Number.isNaN(ms)) return '';
  if (ms < 999.5) return `${ms < 9.95 ? Math.round(Math.max(0, ms) * 10) / 10 : Math.round(ms)} ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const first = UNITS.findIndex(([size]) => seconds >= size);
  const parts = UNITS.slice(first, first + 2).map(([size, name], i) => [Math.floor((i ? seconds % UNITS[first][0] : seconds) / size), name]);
  return parts.filter(([n]) => n).map((part) => part.join(' ')).join(' ');
}
export const micros = (us) => duration(us / 1000);

/** Formats the time until something happens by its two largest units, rounded up, so that of three days `3 d` are left at once. */
function remaining(ms) {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const first = UNITS.findIndex(([size]) => seconds >= size);
  const size = UNITS[first + 1][0];
  return duration(Math.ceil(seconds / size) * size * 1000);
}

const local = (time, options) => {
  const date = new Date(millis(time));
  const isUtc = pref('utc') === 'on';
  return Number.isNaN(date.getTime()) ? '' : date.toLocaleString('en-GB', { ...options, timeZone: isUtc ? 'UTC' : undefined }) + (options.dateStyle && isUtc ? ' UTC' : '');
};
/** A time of today as hours, minutes and seconds; of another day with its date. */
export const moment = (time) => (new Date(millis(time)).toDateString() === new Date().toDateString() ? local(time, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
  : local(time, { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' }));
export const zone = () => (pref('utc') === 'on' ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone);
export const clock = (time) => local(time, { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 });
export const date = (time) => local(time, { dateStyle: 'medium', timeStyle: 'medium' });
export function ago(time) {
  const past = Date.now() - millis(time);
  if (Number.isNaN(past)) return '';
  const size = Math.abs(past);
  if (size < 5000) return past < 0 ? 'in a moment' : 'just now';
  if (past < 0) return `in ${remaining(size)}`;
  const [n, unit] = duration(size).split(' ');
  return `${Math.floor(n)} ${unit} ago`;
}

/** A value as text: a string as it is, unless it reads as a value of another type or its spaces do not show; anything else as JSON. */
export const written = (value) => (typeof value === 'string' && !/^(\s*|\s.*|.*\s|true|false|null|-?\d+(\.\d+)?([eE][-+]?\d+)?|".*")$/.test(value) ? value : JSON.stringify(value));

/** Cuts a text to one line of at most `max` characters. */
export function line(text, max = 160) {
  const one = String(text ?? '').slice(0, max * 4).replace(/\s+/g, ' ').trim();
  return one.length > max ? `${one.slice(0, max - 1)}…` : one;
}
/** A value in one line. */
export function brief(value, max = 140) {
  if (value === null || typeof value !== 'object') return line(value, max);
  const text = (item) => (item === null || typeof item === 'object' ? JSON.stringify(item) : item);
  if (Array.isArray(value)) return line(value.map((item) => line(text(item), Math.max(60, Math.floor(max / value.length)))).join(', '), max);
  return line(Object.entries(value).map(([name, item]) => `${name}: ${line(text(item), 90)}`).join(' · '), max);
}

/** A text whose first letter is a capital. */
export const sentenceCase = (text) => text && text[0].toUpperCase() + text.slice(1);

/** The title of a brain as commands take it. */
export const titleWord = (title) => (/^[\w-]+$/.test(title) ? title.toLowerCase() : title);

/** Makes a tool's or field's identifier readable without changing it for machines. */
export const words = (id) => String(id).replace(/[_-]+/g, ' ');
/** The cost of a run in a list, which says whether a part of it is unknown. */
export const runCost = (cost) => (cost?.currency ? `${cost.partial ? '≥ ' : ''}${money(cost.amount, cost.currency)}` : cost?.partial ? 'unknown' : '–');
/** What `runCost` has shortened: a cost is counted when the answer comes, and stays. */
export const runCostTitle = (cost) => (cost?.partial ? `No price was known for ${cost.currency ? 'some of its answers' : 'its answers'} when it ran. The page of the run estimates them by the prices of today` : null);
/** The costs of answers, `≈` if a part of them had no price when it came. */
export const costText = (costs) => costs.filter(Boolean).map(({ amount, currency, isEstimate }) => `${isEstimate ? '≈ ' : ''}${money(String(amount), currency)}`).join(' + ');
export const costTitle = (costs) => (costs.some((cost) => cost?.isEstimate) ? 'Estimated by the prices of today: when it ran, no price was known' : null);
const ends = new Map();
/** Shortens a UUID, or the id of a child run, to its end, since all of a minute begin alike: to six digits as in a terminal, or to as many as tell it from the others that this page has
 *  shown. Other ids are given by people and schedules, and stay whole. */
export function shortId(id) {
  const text = String(id);
  if (!/^([\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}|child-[\da-f]{32})$/.test(text)) return text;
  for (let size = 6; size < 12; size++) {
    const end = text.slice(-size);
    if (!ends.has(end)) ends.set(end, text);
    if (ends.get(end) === text) return end;
  }
  return text;
}
/** Returns the id that this page has shown as a short one. */
export const longId = (end) => ends.get(end);
const CHANNELS = { cli: 'the command line', api: 'the API', cassette: 'the cassette' };
/** Who acted, by name and over what; a name that says over what itself stands alone. */
export function who(actor) {
  const { by, channel } = actor ?? {};
  if (!by) return channel ? CHANNELS[channel] ?? `the ${channel}` : 'a person';
  return [channel, `the ${channel}`].includes(by) ? CHANNELS[channel] ?? by : channel ? `${by} via ${channel}` : by;
}

const AMOUNT = { money: (n) => money(n), time: micros };
/** An amount of a limit, such as `500 tokens`. */
export const limitText = (kind, amount) => AMOUNT[kind]?.(amount) ?? `${number(amount)} ${kind}`;

/** A decision that was made, in one line. */
export function decided({ outcome: made }) {
  if (!made) return null;
  if (made.type === 'expired') return 'expired without a decision';
  if (made.type === 'withdrawn') return `withdrawn: ${made.cause}`;
  return `${made.decision}${made.arguments !== undefined && made.decision === 'approved' ? ' with edits' : ''} by ${who(made.actor)}${made.reason ? `: ${made.reason}` : ''}`;
}
