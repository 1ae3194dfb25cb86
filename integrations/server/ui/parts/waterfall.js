// The waterfall: a bar per stage, answer and call over time, in segments; long idle times are folded.
import { tags } from '../lib/dom.js';
import { clock, duration, line } from '../lib/format.js';

const { button, div, span } = tags;

export const LEGEND = [['model', 'model'], ['tool', 'tool'], ['person', 'waits for a person'], ['webhook', 'waits for a webhook'], ['queued', 'queued'], ['retry', 'retry, back-off'], ['suspended', 'suspended']];

/** Lists the bars `{ node, depth, label, segments: [{ kind, from, to }] }` of a run, in microseconds. */
export function bars(model, now) {
  const list = [];
  const walk = (node, depth) => {
    const bar = barOf(node, now);
    if (bar) list.push({ node, depth, ...bar });
    for (const child of model.of(node.id)) walk(child, bar ? depth + 1 : depth);
  };
  if (model.nodes[0]) walk(model.nodes[0], -1);
  return list;
}

function barOf(node, now) {
  const { kind } = node;
  const from = node.started;
  const to = node.ended ?? now;
  if (kind.type === 'stage') return from == null ? null : { label: kind.name, group: true, segments: [{ kind: 'group', from, to }] };
  if (kind.type === 'answer' && from != null) {
    const segments = [{ kind: node.status === 'failed' ? 'retry' : 'model', from, to }];
    if (kind.outcome?.type === 'failed') segments.push({ kind: 'retry', from: to, to: Math.max(to, kind.outcome.due) });
    return { label: kind.model || 'model', segments };
  }
  if (kind.type === 'retry') return { label: `retry: ${line(kind.message, 40)}`, segments: [{ kind: 'retry', from, to: Math.max(from, kind.due) }] };
  if (kind.type === 'pause') return { label: 'paused', segments: [{ kind: 'suspended', from, to }] };
  return kind.type === 'call' ? callBar(node, kind, now) : null;
}

function callBar(node, kind, now) {
  const segments = [];
  let at = kind.proposed;
  const until = (name, to) => {
    if (to > at) segments.push({ kind: name, from: at, to });
    at = Math.max(at, to);
  };
  const { approval } = kind;
  if (approval?.requested != null) {
    until('queued', approval.requested);
    until('person', approval.outcome?.at ?? node.ended ?? now);
  }
  if (node.started != null) until('queued', node.started);
  const end = node.ended ?? now;
  for (const wait of kind.waits ?? []) {
    until('tool', wait.since);
    until(wait.waits.some((one) => one.person) ? 'person' : 'webhook', wait.resumed?.at ?? end);
  }
  if (node.started != null) until(kind.brain ? 'group' : 'tool', end);
  else if (!node.ended && !approval?.requested) until('queued', now);
  if (!segments.length) segments.push({ kind: kind.brain ? 'group' : 'tool', from: at, to: end });
  return { label: kind.tool, segments };
}

/** A scale from time to a place between 0 and 1. Times over 2 % in which nothing works are folded to a notch each. */
export function scale(list, { from, to, unfolded = new Set(), idle = [] }) {
  const total = Math.max(1, to - from);
  const busy = list.flatMap(({ segments }) => segments).filter(({ kind }) => ['model', 'tool', 'queued', 'retry'].includes(kind))
    .map(({ from: a, to: b }) => [Math.max(a, from), Math.min(b, to)]).filter(([a, b]) => b >= a).sort((x, y) => x[0] - y[0]);
  const gaps = [];
  let end = from;
  for (const [a, b] of [...busy, [to, to]]) {
    if (a - end > Math.max(total * 0.02, 1e6)) gaps.push({ from: end, to: a, open: unfolded.has(end) });
    end = Math.max(end, b);
  }
  const folded = gaps.filter((gap) => !gap.open);
  const hidden = folded.reduce((sum, gap) => sum + gap.to - gap.from, 0);
  const notch = folded.length ? Math.min(0.06, 0.4 / folded.length) : 0;
  const unit = (1 - notch * folded.length) / Math.max(1, total - hidden);
  const place = (time) => {
    const t = Math.min(to, Math.max(from, time));
    let [x, last] = [0, from];
    for (const gap of folded) {
      if (t <= gap.from) break;
      x += (gap.from - last) * unit;
      x += t >= gap.to ? notch : (notch * (t - gap.from)) / (gap.to - gap.from);
      last = Math.min(t, gap.to);
    }
    return Math.min(1, x + Math.max(0, t - last) * unit);
  };
  const time = (x) => {
    let [lo, hi] = [from, to];
    for (let i = 0; i < 40; i++) {
      const mid = (lo + hi) / 2;
      if (place(mid) < x) lo = mid;
      else hi = mid;
    }
    return lo;
  };
  return { place, time, gaps, idle, from, to };
}

const percent = (x) => `${(x * 100).toFixed(3)}%`;

/** Draws one bar's row. */
export function barRow(bar, axis, { selected, select, index }) {
  const shown = bar.segments.filter(({ from, to }) => to >= axis.from && from <= axis.to);
  const [first, last] = [bar.segments[0].from, bar.segments.at(-1).to];
  const text = bar.segments.filter(({ kind }) => kind !== 'group').map(({ kind, from, to }) => `${LEGEND.find(([name]) => name === kind)?.[1]} ${duration((to - from) / 1000)}`).join(', ');
  return div.barRow({
    key: bar.node.id, role: 'row', 'aria-rowindex': index + 1, 'aria-selected': String(selected), class: `${selected ? 'selected' : ''}${bar.group ? ' group' : ''}`, onclick: () => select(bar.node), id: `bar-${bar.node.id}`,
  },
  span.barLabel({ role: 'rowheader', style: { '--depth': Math.min(8, bar.depth) }, title: bar.label }, bar.label),
  span.lane({ role: 'gridcell', 'aria-label': text || duration((last - first) / 1000), title: text },
    shown.map(({ kind, from, to }, i) => {
      const x = axis.place(from);
      return tags.i.seg({ key: i, class: kind, style: { left: percent(x), width: `max(3px, ${percent(axis.place(to) - x)})` } });
    })),
  span.barTime({ role: 'gridcell' }, duration((last - first) / 1000)));
}

/** Draws the axis: about five times, and the folded gaps. */
export function axisRow(axis, { toggleGap, marks = 5 }) {
  const span = axis.to - axis.from;
  return div.axis({ 'aria-hidden': 'true' }, tags.span.barLabel(clock(axis.from / 1)),
    tags.span.lane(
      Array.from({ length: marks }, (_, i) => tags.i.tick({ key: i, style: { left: percent(i / marks) } }, i ? `+${duration((axis.time(i / marks) - axis.from) / 1000)}` : '0')),
      axis.gaps.map((gap) => button.gap({ key: gap.from, tabindex: '-1', class: gap.open ? 'open' : '', style: { left: percent(axis.place(gap.from)), width: percent(axis.place(gap.to) - axis.place(gap.from)) },
        title: `${duration((gap.to - gap.from) / 1000)} without work; click to ${gap.open ? 'fold' : 'unfold'}`, onclick: () => toggleGap(gap) }, duration((gap.to - gap.from) / 1000)))),
    tags.span.barTime(duration(span / 1000)));
}
