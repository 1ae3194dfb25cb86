// The client of the public API: requests, problems, and event streams that resume after the last event they delivered.
import { redraw } from './dom.js';
import { apiUrl, query as queryOf } from './page.js';

/** A problem document (RFC 9457) of the server, or a failed connection with status 0. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answered with status ${status}.`);
    Object.assign(this, { status, body, slug: String(body.type ?? '').split('/').pop() });
  }
}

/** The value of a number in JSON: an integer beyond 2^53 keeps its digits, so that an edit of another field does not change it. */
export const exact = (source, value = Number(source)) => (JSON.rawJSON && /^-?\d+$/.test(source) && !Number.isSafeInteger(value) ? BigInt(source) : value);
export const parse = (text) => JSON.parse(text, (_, value, context) => (typeof value === 'number' && context?.source ? exact(context.source, value) : value));
BigInt.prototype.toJSON = function toJSON() { return JSON.rawJSON(String(this)); };

/** A new idempotency key; `crypto.randomUUID` exists on secure origins only. */
export const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');

export async function request(method, path, { query, body, headers: more } = {}) {
  const headers = { Accept: 'application/json', ...(body && { 'Content-Type': 'application/json' }),
    ...(method === 'POST' && { 'Idempotency-Key': newKey() }), ...more };
  try {
    const response = await fetch(apiUrl(path) + queryOf(query), { method, headers, body: body && JSON.stringify(body) });
    // A proxy may answer with a page, and some answers are empty.
    const value = await response.text().then(parse).catch(() => null);
    if (!response.ok) throw new Problem(response.status, value ?? { title: `${response.status} ${response.statusText}` });
    return value;
  } catch (error) {
    throw error instanceof Problem ? error : new Problem(0, { title: 'The server cannot be reached.' });
  } finally {
    redraw();
  }
}
export const get = (path, query) => request('GET', path, { query });
export const post = (path, body = {}) => request('POST', path, { body });

/** Sends a request whose answer is a stream of events, until that ends; `events` has a handler by the name of each. `signal` takes it back. */
export async function stream(path, body, events, signal) {
  const unreachable = () => { throw new Problem(0, { title: 'The server cannot be reached, or the answer broke off.' }); };
  const response = await fetch(apiUrl(path), { method: 'POST', signal, body: JSON.stringify(body), headers: { Accept: 'text/event-stream', 'Content-Type': 'application/json' } }).catch(unreachable);
  if (!response.ok) throw new Problem(response.status, await response.text().then(parse).catch(() => ({ title: `${response.status} ${response.statusText}` })));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let [text, part] = ['']; !(part = await reader.read().catch(unreachable)).done;) {
    const frames = (text + part.value).split('\n\n');
    text = frames.pop();
    for (const frame of frames) {
      const field = (name) => frame.split('\n').find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      events[field('event')]?.(parse(field('data') ?? 'null'));
    }
    redraw();
  }
}

/** Follows an event stream. The cursor is the id of the last event, so that a new connection misses and repeats nothing;
 *  `EventSource` reconnects by itself, and an answer that ends it is retried here. Returns how to stop. */
export function follow(path, { after, events, onstate }) {
  let [cursor, source, timer, wait, ended] = [after, null, 0, 500, false];
  const stop = () => {
    ended = true;
    clearTimeout(timer);
    source.close();
  };
  const open = () => {
    source = new EventSource(apiUrl(path) + queryOf({ after: cursor }));
    source.onopen = () => {
      wait = 500;
      onstate('live');
    };
    for (const [name, handler] of Object.entries(events)) {
      source.addEventListener(name, ({ lastEventId, data }) => {
        // The id counts only if this event has one: `lastEventId` stays from the event before otherwise.
        if (lastEventId !== '') cursor = lastEventId;
        handler(parse(data || 'null'));
        redraw();
      });
    }
    source.addEventListener('end', () => {
      stop();
      onstate('ended');
    });
    source.onerror = () => {
      if (ended) return;
      onstate('lost');
      if (source.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(open, wait);
      wait = Math.min(wait * 2, 10000) * (0.8 + Math.random() * 0.4);
    };
  };
  open();
  return stop;
}
