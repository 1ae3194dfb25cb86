// Times, durations, amounts and short forms of values, as text.
import { pref } from './prefs.js';

const plain = new Intl.NumberFormat('en');
export const number = (n) => plain.format(n ?? 0);
export const compact = (n) => (n < 10000 ? number(n) : `${plain.format(Math.round(n / 100) / 10)}k`);
export const plural = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;

/** Converts a time of an event (microseconds) or of the API (RFC 3339) to milliseconds. */
export const millis = (time) => (typeof time === 'number' ? time / 1000 : Date.parse(time));

/** A duration given in milliseconds. */
export function duration(ms) {
  if (ms == null || Number.isNaN(ms)) return '';
  if (ms < 0) return '0 ms';
  if (ms < 9.95) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 59.95) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  const [d, hours, m] = [Math.floor(s / 86400), Math.floor(s / 3600), Math.floor(s / 60)];
  const two = (a, b) => [a, b].filter((part) => !part.startsWith('0 ')).join(' ') || a;
  if (hours < 1) return two(`${m} min`, `${Math.round(s % 60)} s`);
  if (hours < 48) return two(`${hours} h`, `${m % 60} min`);
  return two(`${d} d`, `${hours % 24} h`);
}
export const micros = (us) => duration(us / 1000);

const zone = () => (pref('utc') === 'on' ? 'UTC' : undefined);
export function clock(time, exact = false) {
  const at = new Date(millis(time));
  if (Number.isNaN(at.getTime())) return '';
  const text = at.toLocaleTimeString('en-GB', { timeZone: zone() });
  return exact ? `${text}.${String(at.getMilliseconds()).padStart(3, '0')}` : text;
}
export function date(time) {
  const at = new Date(millis(time));
  if (Number.isNaN(at.getTime())) return '';
  const day = at.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: 'numeric', timeZone: zone() });
  return `${day}, ${clock(time)}${zone() ? ' UTC' : ''}`;
}
export function ago(time, now = Date.now()) {
  const past = now - millis(time);
  if (Number.isNaN(past)) return '';
  const size = Math.abs(past);
  if (size < 5000) return past < 0 ? 'in a moment' : 'just now';
  const text = duration(Math.max(1000, size - (size % (size < 60000 ? 1000 : 60000))));
  const short = text.split(' ').slice(0, 2).join(' ').replace(/\.\d/, '');
  return past < 0 ? `in ${short}` : `${short} ago`;
}

/** Formats an amount of money, which is text or a number of billionths. */
export function money(amount, currency) {
  const value = typeof amount === 'string' ? Number(amount) : amount / 1e9;
  const digits = value === 0 || value >= 100 ? 2 : value >= 0.01 ? 3 : 5;
  return `${Number(value.toFixed(digits))} ${currency ?? ''}`.trim();
}

export function tokens(usage) {
  const total = (usage?.input ?? 0) + (usage?.output ?? 0);
  return total ? `${compact(total)} tokens` : '';
}
export function bytes(n) {
  return n < 1000 ? `${n} B` : n < 1e6 ? `${(n / 1000).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`;
}

/** Cuts a text to one line of at most `max` characters. */
export function line(text, max = 160) {
  const one = String(text).replace(/\s+/g, ' ').trim();
  return one.length > max ? `${one.slice(0, max - 1)}…` : one;
}

/** Writes a value in one short line: fields as `name value`, without braces and quotes. */
export function brief(value, max = 140) {
  if (value == null) return '';
  if (typeof value === 'string') return line(value, max);
  if (typeof value !== 'object') return String(value);
  const entries = Array.isArray(value) ? value.map((item) => brief(item, 60)) : Object.entries(value).map(([key, item]) =>
    `${key} ${item === null ? 'null' : typeof item === 'object' ? line(JSON.stringify(item), 60) : line(item, 90)}`);
  return line(entries.join(Array.isArray(value) ? ', ' : ' · '), max);
}

/** Makes a tool's or field's identifier readable without changing it for machines. */
export const words = (id) => String(id).replace(/[_-]+/g, ' ');
export const shortId = (id) => String(id).slice(0, 13);
export const who = (actor) => [actor?.by, actor?.channel && (actor.by ? `via ${actor.channel}` : `the ${actor.channel}`)].filter(Boolean).join(' ') || 'a person';
