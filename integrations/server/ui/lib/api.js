// The client of the public API: requests, problems, and event streams that resume after the last event they delivered.

/** The path under which the server is mounted; empty at the root. */
export const PREFIX = new URL(import.meta.url).pathname.replace(/\/ui\/assets\/.*$/, '');
const BASE = `${PREFIX}/api/v1`;
export const ui = (path = '') => `${PREFIX}/ui${path}`;
export const apiUrl = (path) => BASE + path;

/** A problem document (RFC 9457) of the server, or a failed connection with status 0. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answered with status ${status}.`);
    this.status = status;
    this.body = body;
    this.slug = String(body.type ?? '').split('/').pop();
  }
}

function address(path, query) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value != null && value !== '' && value !== false) search.set(name, value);
  }
  const text = search.toString();
  return `${BASE}${path}${text ? `?${text}` : ''}`;
}

async function call(method, path, { query, body, signal, given } = {}) {
  const headers = { Accept: 'application/json', ...given };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (method === 'POST') headers['Idempotency-Key'] = key();
  let response;
  try {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    response = await fetch(address(path, query), { method, headers, body: payload, signal, credentials: 'same-origin' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem(0, { title: 'The server cannot be reached.' });
  }
  const text = await response.text();
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch { /* A proxy may answer with a page. */ }
  if (!response.ok) throw new Problem(response.status, value ?? { title: `${response.status} ${response.statusText}` });
  return value;
}

/** A new idempotency key; `crypto.randomUUID` exists on secure origins only. */
function key() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export const get = (path, query, signal) => call('GET', path, { query, signal });
export const post = (path, body = {}) => call('POST', path, { body });
export const request = (method, path, body, given) => call(method, path, { body, given });
export const at = (...segments) => segments.map((segment) => `/${encodeURIComponent(segment)}`).join('');

/** Follows an event stream. The cursor is the id of the last event, so that a new connection misses and repeats nothing;
 *  `EventSource` reconnects by itself, and an answer that ends it is retried here. */
export function follow(path, { after, events, onstate }) {
  let cursor = after;
  let source = null;
  let timer = null;
  let wait = 500;
  let ended = false;
  const open = () => {
    source = new EventSource(address(path, { after: cursor }));
    source.onopen = () => {
      wait = 500;
      onstate?.('live');
    };
    for (const [name, handler] of Object.entries(events)) {
      source.addEventListener(name, (event) => {
        // The id counts only if this event has one: `lastEventId` stays from the event before otherwise.
        if (event.lastEventId !== '') cursor = event.lastEventId;
        handler(event.data ? JSON.parse(event.data) : null);
      });
    }
    source.addEventListener('end', () => {
      ended = true;
      source.close();
      onstate?.('ended');
    });
    source.onerror = () => {
      if (ended) return;
      onstate?.('lost');
      if (source.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(open, wait);
      wait = Math.min(wait * 2, 10000) * (0.8 + Math.random() * 0.4);
    };
  };
  open();
  return () => {
    ended = true;
    clearTimeout(timer);
    source.close();
  };
}
