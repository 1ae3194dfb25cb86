// Icons as line drawings of 16 by 16, and the marks of statuses. A mark never stands without its word.
import { tags } from './dom.js';

const { path, span, svg } = tags;

const PATHS = {
  check: 'M3.5 8.5l3 3 6-7', cross: 'M4 4l8 8M12 4l-8 8', pause: 'M5.5 3.5v9M10.5 3.5v9', clock: 'M8 4.5V8l2.5 1.5M14 8A6 6 0 112 8a6 6 0 0112 0z',
  run: 'M5 3.5l7 4.5-7 4.5z', stop: 'M4.5 4.5h7v7h-7z', retry: 'M13 8a5 5 0 11-1.6-3.7M13 2.5v2.6h-2.6', person: 'M8 8a2.5 2.5 0 100-5 2.5 2.5 0 000 5zM3 13.5c.6-2.6 2.5-4 5-4s4.4 1.4 5 4',
  tool: 'M10.2 3a3.3 3.3 0 00-3 4.6L3 11.8 4.2 13l4.2-4.2A3.3 3.3 0 0013 5.8l-2 1.4-1.3-1.3z', model: 'M8 2.5l1.4 4.1 4.1 1.4-4.1 1.4L8 13.5 6.6 9.4 2.5 8l4.1-1.4z',
  brain: 'M4 3.5v9M4 8h4.5m0 0l3.5-3.5M8.5 8l3.5 3.5', hook: 'M6.5 9.5l3-3M7.5 5l1.3-1.3a2.5 2.5 0 013.5 3.5L11 8.5M8.5 11l-1.3 1.3a2.5 2.5 0 01-3.5-3.5L5 7.5',
  file: 'M4.5 2.5h5l3 3v8h-8zM9.5 2.5v3h3', warn: 'M8 3l5.5 10h-11zM8 7v2.5M8 11.3v.2', fork: 'M5 3v10M5 9c0-3 6-1.5 6-5.5M9.3 5.2L11 3.5l1.7 1.7', chevron: 'M6 4l4 4-4 4',
  message: 'M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2z', search: 'M7 11.5a4.5 4.5 0 100-9 4.5 4.5 0 000 9zM10.3 10.3l3.2 3.2', copy: 'M5.5 5.5h7v7h-7zM3.5 10.5v-7h7', skip: 'M4.5 8h7', flag: 'M4 13.5v-10h7.5l-2 2.5 2 2.5H4',
  chart: 'M2.5 13.5h11M4.5 11V8.5M8 11V4M11.5 11V6.5', lines: 'M2.5 4h11M2.5 8h11M2.5 12h7', inbox: 'M2.5 9l2-5.5h7l2 5.5v3.5h-11zM2.5 9H6c0 1.2.8 2 2 2s2-.8 2-2h3.5',
  calendar: 'M2.5 4h11v9.5h-11zM2.5 7h11M5.5 2.5V5M10.5 2.5V5', plus: 'M8 3.5v9M3.5 8h9', down: 'M4 6l4 4 4-4', up: 'M4 10l4-4 4 4', dots: 'M3.5 8h.1M8 8h.1M12.4 8h.1', pen: 'M3 13l.7-3L10.5 3.2l2.3 2.3L6 12.3z',
  moon: 'M9.5 3A5.5 5.5 0 1013 9.7 4.6 4.6 0 019.5 3z', pin: 'M6 2.5h4l-.5 4.5 2 2h-7l2-2zM8 9v4.5', bell: 'M4 11.5V7.5a4 4 0 018 0v4l1 1H3zM7 14h2', half: 'M8 2a6 6 0 000 12zM14 8A6 6 0 112 8a6 6 0 0112 0z',
  exit: 'M3 8h9M9 5l3 3-3 3',
  flask: 'M6.5 2.5h3M7 2.5V7l-3.6 5a1 1 0 00.8 1.5h7.6a1 1 0 00.8-1.5L9 7V2.5', send: 'M8 13V3.5M4 7l4-4 4 4',
  sun: 'M8 10.5a2.5 2.5 0 100-5 2.5 2.5 0 000 5zM8 2v1.5M8 12.5V14M2 8h1.5M12.5 8H14M3.8 3.8l1 1M11.2 11.2l1 1M12.2 3.8l-1 1M4.8 11.2l-1 1', keys: 'M2.5 4.5h11v7h-11zM5 7h.1M8 7h.1M11 7h.1M5.5 9.5h5',
};

export const icon = (name, label) => svg.icon({
  viewBox: '0 0 16 16', 'aria-hidden': label ? null : 'true', role: label ? 'img' : null, 'aria-label': label,
}, path({ d: PATHS[name] }));

/** Status of a run or a node: its icon, its tone and its word. */
export const STATUS = {
  running: ['run', 'busy', 'running'], waiting: ['clock', 'wait', 'waiting'], paused: ['pause', 'quiet', 'paused'],
  parked: ['warn', 'bad', 'parked'], stuck: ['warn', 'bad', 'stuck'], queued: ['clock', 'quiet', 'queued'], sleeping: ['moon', 'quiet', 'sleeping'],
  completed: ['check', 'good', 'completed'], failed: ['cross', 'bad', 'failed'], cancelled: ['stop', 'quiet', 'cancelled'],
  done: ['check', 'good', 'done'], interrupted: ['stop', 'quiet', 'interrupted'], limited: ['half', 'wait', 'cut off'],
  skipped: ['skip', 'quiet', 'skipped'], not_started: ['skip', 'quiet', 'not started'], denied: ['cross', 'wait', 'rejected'],
};

export function status(name, text) {
  const [shape, tone, word] = STATUS[name] ?? ['skip', 'quiet', name];
  return span.status({ class: tone }, icon(shape), span(text ?? word));
}
