// The waterfall: a bar per stage, answer and call over time, in segments; long idle times are folded.
import { tags } from '../lib/dom.js';
import { clock, duration, line, micros } from '../lib/format.js';

const { button, div, i, span } = tags;

export const LEGEND = { model: 'model', tool: 'tool', person: 'waits for a person', webhook: 'waits for a webhook', queued: 'queued',
  retry: 'retry, back-off', suspended: 'suspended' };
const WORK = new Set(['model', 'tool', 'queued', 'retry']);

/** The bar `{ label, segments: [{ kind, from, to }] }` of a node, in microseconds. A bar that has not ended ends now. */
export function barOf(node, now) {
  const { kind, started: from, ended } = node;
  const to = ended ?? now;
  const bar = (label, name, end = to) => ({ label, segments: [{ kind: name, from, to: Math.max(from, end) }] });
  if (from == null && kind.type !== 'call') return null;
  switch (kind.type) {
    case 'stage': return bar(kind.name, 'group');
    case 'retry': return bar(`retry: ${line(kind.message, 40)}`, 'retry', kind.due);
    case 'pause': return bar('paused', 'suspended');
    case 'answer': {
      const one = bar(kind.model || 'model', node.status === 'failed' ? 'retry' : 'model');
      if (kind.outcome?.type === 'failed') one.segments.push({ kind: 'retry', from: to, to: Math.max(to, kind.outcome.due) });
      return one;
    }
    case 'call': return { label: kind.tool, segments: callSegments(node, kind, now) };
    default: return null;
  }
}

function callSegments({ started, ended }, { proposed, approval, waits = [], brain }, now) {
  const segments = [];
  const end = ended ?? now;
  const work = brain ? 'group' : 'tool';
  let at = proposed;
  const until = (kind, to) => {
    if (to > at) segments.push({ kind, from: at, to });
    at = Math.max(at, to);
  };
  if (approval?.requested != null) {
    until('queued', approval.requested);
    until('person', approval.outcome?.at ?? end);
  }
  if (started != null) until('queued', started);
  for (const { since, waits: any, resumed } of waits) {
    until(work, since);
    until(any.some((one) => one.person) ? 'person' : 'webhook', resumed?.at ?? end);
  }
  until(started == null ? 'queued' : work, end);
  return segments.length ? segments : [{ kind: work, from: at, to: end }];
}

/** A scale from time to a place between 0 and 1. Times over 2 % in which nothing works are folded to a notch each. */
export function scale(bars, { from, to, unfolded }) {
  const total = Math.max(1, to - from);
  const busy = bars.flatMap(({ segments }) => segments).filter((one) => WORK.has(one.kind) && one.to >= from && one.from <= to)
    .sort((a, b) => a.from - b.from);
  const gaps = [];
  let end = from;
  for (const one of [...busy, { from: to, to }]) {
    if (one.from - end > Math.max(total * 0.02, 1e6)) gaps.push({ from: end, to: one.from, open: unfolded.has(end) });
    end = Math.max(end, one.to);
  }
  const folded = gaps.filter((gap) => !gap.open);
  const notch = folded.length ? Math.min(0.06, 0.4 / folded.length) : 0;
  const shown = total - folded.reduce((sum, gap) => sum + gap.to - gap.from, 0);
  const unit = (1 - notch * folded.length) / Math.max(1, shown);
  // The points between which the scale is straight: [time, place].
  const points = [[from, 0]];
  for (const gap of folded) {
    const x = points.at(-1)[1] + (gap.from - points.at(-1)[0]) * unit;
    points.push([gap.from, x], [gap.to, x + notch]);
  }
  points.push([Math.max(to, from + 1), 1]);
  const along = (value, [one, other]) => {
    const next = Math.max(1, points.findIndex((point) => point[one] >= value));
    const [a, b] = [points[next - 1], points[next]];
    return a[other] + ((value - a[one]) / (b[one] - a[one] || 1)) * (b[other] - a[other]);
  };
  return { place: (time) => along(Math.min(to, Math.max(from, time)), [0, 1]), time: (x) => along(x, [1, 0]), gaps, from, to };
}

export const extent = (from, to) => ({ left: `${(from * 100).toFixed(3)}%`, width: `max(3px, ${((to - from) * 100).toFixed(3)}%)` });

/** Draws the row of a node's bar. */
export function barRow(node, { label, segments }, axis, { depth, index, selected, select }) {
  const [first, last] = [segments[0].from, segments.at(-1).to];
  const text = segments.filter(({ kind }) => kind !== 'group').map(({ kind, from, to }) => `${LEGEND[kind]} ${micros(to - from)}`).join(', ');
  const visible = segments.filter(({ from, to }) => to >= axis.from && from <= axis.to);
  return div.barRow({ key: node.id, id: `bar-${node.id}`, role: 'row', 'aria-rowindex': index + 1, 'aria-selected': String(selected),
    class: `${selected ? 'selected' : ''} ${node.kind.type}`, onclick: () => select(node) },
  span.barLabel({ role: 'rowheader', style: { '--depth': Math.min(8, depth) }, title: label }, label),
  span.lane({ role: 'gridcell', 'aria-label': text || micros(last - first), title: text },
    visible.map(({ kind, from, to }) => i.seg({ class: kind, style: extent(axis.place(from), axis.place(to)) }))),
  span.barTime({ role: 'gridcell' }, micros(last - first)));
}

/** Draws the axis: about five times, and the folded gaps. */
export function axisRow(axis, toggle, marks = 5) {
  const tick = (_, at) => i.tick({ style: { left: `${(at / marks) * 100}%` } }, at ? `+${duration((axis.time(at / marks) - axis.from) / 1000)}` : '0');
  const gap = (one) => button.gap({ key: one.from, tabindex: '-1', class: one.open && 'open',
    style: extent(axis.place(one.from), axis.place(one.to)), onclick: () => toggle(one.from),
    title: `${micros(one.to - one.from)} without work; click to ${one.open ? 'fold' : 'unfold'}` }, micros(one.to - one.from));
  return div.axis({ 'aria-hidden': 'true' }, span.barLabel(clock(axis.from)), span.lane(Array.from({ length: marks }, tick), axis.gaps.map(gap)),
    span.barTime(micros(axis.to - axis.from)));
}
