// The waterfall's geometry: a bar of segments for each stage, answer and call, on a scale that folds long idle times.
import { tags } from '../lib/dom.js';
import { clock, duration, line, micros } from '../lib/format.js';

const { button, div, i, span } = tags;

export const LEGEND = { model: 'model', tool: 'tool', person: 'waits for a person', webhook: 'waits for a webhook', queued: 'queued', retry: 'retry, back-off', suspended: 'suspended' };
const WORK = ['model', 'tool', 'queued', 'retry'];

/** The bar `{ label, segments: [{ kind, from, to }] }` of a node, in microseconds. A bar that has not ended ends now. */
export function barOf(node, now) {
  const { kind, started: from, ended, status } = node;
  const to = ended ?? now;
  const bar = (label, name, end = to) => ({ label, segments: [{ kind: name, from, to: Math.max(from, end) }] });
  if (kind.type === 'call') return { label: kind.tool, segments: callSegments(node, kind, now) };
  if (from == null) return null;
  if (kind.type === 'stage') return bar(kind.name, 'group');
  if (kind.type === 'retry') return bar(`retry: ${line(kind.message, 40)}`, 'retry', kind.due);
  if (kind.type === 'pause') return bar('paused', 'suspended');
  if (kind.type !== 'answer') return null;
  const answer = bar(kind.model || 'model', status === 'failed' ? 'retry' : 'model');
  if (kind.outcome?.type === 'failed') answer.segments.push({ kind: 'retry', from: to, to: Math.max(to, kind.outcome.due) });
  return answer;
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
  const busy = bars.flatMap(({ segments }) => segments).filter((one) => WORK.includes(one.kind) && one.to >= from && one.from <= to).sort((a, b) => a.from - b.from);
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
    const [time, place] = points.at(-1);
    const x = place + (gap.from - time) * unit;
    points.push([gap.from, x], [gap.to, x + notch]);
  }
  points.push([Math.max(to, from + 1), 1]);
  const along = (value, one, other) => {
    const next = Math.max(1, points.findIndex((point) => point[one] >= value));
    const [a, b] = [points[next - 1], points[next]];
    return a[other] + ((value - a[one]) / (b[one] - a[one] || 1)) * (b[other] - a[other]);
  };
  return { place: (time) => along(Math.min(to, Math.max(from, time)), 0, 1), time: (x) => along(x, 1, 0), gaps, from, to };
}

/** The style of what reaches from a place to another. */
export const extent = (from, to) => ({ left: `${(from * 100).toFixed(3)}%`, width: `max(3px, ${((to - from) * 100).toFixed(3)}%)` });

/** Draws the row of a node's bar. */
export function barRow(node, { label, segments }, axis, { depth, index, selected, select }) {
  const lasted = micros(segments.at(-1).to - segments[0].from);
  const text = segments.filter(({ kind }) => kind !== 'group').map(({ kind, from, to }) => `${LEGEND[kind]} ${micros(to - from)}`).join(', ');
  return div.barRow({ key: node.id, id: `bar-${node.id}`, role: 'row', 'aria-rowindex': index + 1, 'aria-selected': String(selected),
    class: `${selected ? 'selected' : ''} ${node.kind.type}`, onclick: () => select(node) },
  span.barLabel({ role: 'rowheader', style: { '--depth': Math.min(8, depth) }, title: label }, label),
  span.lane({ role: 'gridcell', 'aria-label': text || lasted, title: text }, segments.filter(({ from, to }) => to >= axis.from && from <= axis.to)
    .map(({ kind, from, to }) => i.seg({ class: kind, style: extent(axis.place(from), axis.place(to)) }))),
  span.barTime({ role: 'gridcell' }, lasted));
}

/** Whether the text of a tick would be under that of a gap. */
const isNear = (from, to, x) => x > from - 0.09 && x < to + 0.01;
/** Draws the axis: five times, and the folded gaps. */
export const axisRow = (axis, toggle) => div.axis({ 'aria-hidden': 'true' }, span.barLabel(clock(axis.from)), span.lane(
  [0, 0.2, 0.4, 0.6, 0.8].filter((x) => !axis.gaps.some((gap) => isNear(axis.place(gap.from), axis.place(gap.to), x))).map((x) => i.tick({ style: { left: `${x * 100}%` } }, x ? `+${duration((axis.time(x) - axis.from) / 1000)}` : '0')),
  axis.gaps.map(({ from, to, open }) => button.gap({ key: from, tabindex: '-1', class: open && 'open', style: extent(axis.place(from), axis.place(to)), onclick: () => toggle(from),
    title: `${micros(to - from)} without work; click to ${open ? 'fold' : 'unfold'}` }, micros(to - from)))), span.barTime(micros(axis.to - axis.from)));
