// The waterfall's geometry: a bar of segments for each stage, answer and call, on a scale that folds long idle times.
import { tags } from '../lib/dom.js';
import { icon, STATUS } from '../lib/icons.js';
import { clock, compact, costText, costTitle, duration, line, micros } from '../lib/format.js';
import { answerOf, attempts, costOf, isLastAttempt, isNoAnswer, isQuestion, iterationOf, stageName, standingOf, sumsOf } from './model.js';

const { button, div, i, span } = tags;

export const LEGEND = { group: 'stage', model: 'model', tool: 'tool', brain: 'brain', person: 'a person decides', webhook: 'waits for a message', sleep: 'sleep', failed: 'failed', retry: 'back-off', queued: 'queued', suspended: 'suspended' };
const WORK = ['model', 'tool', 'queued', 'retry', 'failed'];

/** Which part of the bar of an answer is shown as queued at least: a request always takes a little longer than its answer. */
const LEAST_QUEUED = 0.1;

/** A model without its provider, which is the same for most answers of a run. */
const nameOf = (model) => model?.split('/').slice(1).join('/') || model || 'model';

/** The bar `{ label, segments: [{ kind, from, to }] }` of a node, in microseconds. A bar that has not ended ends now; a stage that was not
 *  reached has no segments. All attempts to get one answer are one bar. */
export function barOf(node, now, model) {
  const { kind, started: from, ended, status } = node;
  const to = ended ?? now;
  const bar = (label, name, end = to) => ({ label, segments: [{ kind: name, from, to: Math.max(from, end) }] });
  if (kind.type === 'call') return { label: kind.tool, segments: callSegments(node, kind, now) };
  if (kind.type === 'stage' && from == null) return node.parent === 0 ? { label: stageName(node, model), segments: [] } : null;
  if (from == null) return null;
  if (kind.type === 'stage') return { label: stageName(node, model), segments: kind.waited ? stageSegments(node, kind.waited, now) : bar('', status === 'failed' ? 'group bad' : 'group').segments };
  if (kind.type === 'retry') return bar(`retry: ${line(kind.message, 40)}`, 'retry', kind.due);
  if (kind.type === 'child_run') {
    // The log has the end only of one that reports it by a message.
    const end = model.reports.get(kind.run)?.started ?? (kind.link === 'background' ? model.nodes[0].ended ?? now : from);
    return bar(`${kind.name}: run of ${kind.title}`, 'brain', end);
  }
  if (kind.type === 'pause') return bar('paused', 'suspended');
  if (kind.type !== 'answer' || !isLastAttempt(node, model)) return null;
  const list = attempts(node, model);
  const segments = list.flatMap((one, n) => {
    const end = one.ended ?? now;
    const next = list[n + 1]?.started ?? one.kind.outcome?.due;
    const began = beganAt(one, end);
    const work = { kind: one.kind.outcome?.type === 'answered' || one.status === 'running' ? 'model' : 'failed', from: began, to: Math.max(began, end) };
    return [began > one.started && { kind: 'queued', from: one.started, to: began }, work, one.kind.outcome?.type === 'failed' && next > end && { kind: 'retry', from: end, to: next }].filter(Boolean);
  });
  return { label: `${isQuestion(node) ? 'question to ' : ''}${nameOf(kind.model)}${list.length > 1 ? `, ${list.length} attempts` : ''}`, segments };
}

/** When a model began to answer: its time is measured apart, and the rest was spent before it, such as for an answer from a cassette. */
function beganAt({ started, ended, kind }, end) {
  const took = answerOf(kind)?.duration;
  const rest = ended != null && took != null ? end - started - took : 0;
  return rest > (end - started) * LEAST_QUEUED ? started + rest : started;
}

/** A stage that waits: for a person, a message, or a time. */
function stageSegments({ started, ended }, { since, waits, resumed }, now) {
  const kind = waits.some((one) => one.person) ? 'person' : waits.length ? 'webhook' : 'sleep';
  const end = resumed?.at ?? ended ?? now;
  return [{ kind: 'group', from: started, to: Math.max(started, since) }, { kind, from: since, to: Math.max(since, end) }, ...((ended ?? now) > end ? [{ kind: 'group', from: end, to: ended ?? now }] : [])];
}

function callSegments({ started, ended, status }, { proposed, approval, waits = [], brain }, now) {
  const segments = [];
  const end = ended ?? now;
  const work = brain ? 'brain' : status === 'failed' ? 'failed' : 'tool';
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

/** The part of the lanes that a notch takes, by the width of the window: its length has room in it. */
const NOTCH = 115;
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
  const notch = folded.length ? Math.min(NOTCH / innerWidth, 0.4 / folded.length) : 0;
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

/** The mark of a row: what it is, or how its stage stands. */
function markOf(node, model) {
  const { type, brain, stage } = node.kind;
  if (isNoAnswer(node, model) || (type === 'call' && node.status === 'failed')) return ['cross', 'bad'];
  if (type === 'stage') return stage === 'wait' ? ['clock', 'wait'] : STATUS[standingOf(node, model)] ?? ['skip', 'quiet'];
  return { answer: ['model', 'of-model'], call: brain ? ['brain', 'of-brain'] : ['tool', 'of-tool'], retry: ['retry', 'bad'], child_run: ['fork', 'of-brain'] }[type] ?? ['pause', 'quiet'];
}

/** Draws the row of a node's bar. */
export function barRow(node, { label, segments }, axis, { depth, index, selected, select, model, fold, isFolded }) {
  const text = segments.filter(({ kind }) => LEGEND[kind]).map(({ kind, from, to }) => `${LEGEND[kind]} ${micros(to - from)}`).join(', ');
  const iteration = iterationOf(node, model);
  const [shape, tone] = markOf(node, model);
  const answer = answerOf(node.kind);
  const lasted = segments.length ? micros(segments.length === 1 && answer?.duration != null ? answer.duration : segments.at(-1).to - segments[0].from) : '';
  const whole = node.kind.type === 'stage' ? sumsOf(node, model) : null;
  const { input = 0, output = 0 } = answer?.metadata?.usage ?? node.kind.usage ?? whole?.usage ?? {};
  const costs = whole ? whole.costs : [costOf(answer, model)];
  return div.barRow({ key: node.id, id: `bar-${node.id}`, role: 'row', 'aria-rowindex': index + 1, 'aria-selected': String(selected),
    class: `${selected ? 'selected' : ''} ${node.kind.type} ${tone}`, onclick: ({ target }) => !target.closest('button') && select(node) },
  span.barLabel({ role: 'rowheader', style: { '--depth': Math.min(8, depth) }, title: label },
    fold && button.twist({ tabindex: '-1', 'aria-expanded': String(!isFolded), 'aria-label': `${isFolded ? 'Show' : 'Hide'} what ${label} did`, onclick: () => fold(node) }, icon('chevron')), span.n(iteration), icon(shape), span.cut(label)),
  span.lane({ role: 'gridcell', 'aria-label': text || lasted || 'not reached', title: text }, segments.length ? segments.filter(({ from, to }) => to >= axis.from && from <= axis.to)
    .map(({ kind, from, to }) => i.seg({ class: kind, style: extent(axis.place(from), axis.place(to)) })) : span.notReached('not reached')),
  span.barFigure({ role: 'gridcell' }, input + output ? compact(input + output) : ''), span.barFigure({ role: 'gridcell', title: costTitle(costs) }, costText(costs)), span.barTime({ role: 'gridcell' }, lasted || '–'));
}

/** Whether the text of a tick would be under that of a gap. */
const isNear = (from, to, x) => x > from - 0.09 && x < to + 0.01;
/** Whether the lanes are so narrow that fewer texts fit. */
const isNarrow = () => innerWidth < 1100;
/** Round times from the beginning, in microseconds, about as many as fit. */
function ticks(axis) {
  const span_ = axis.to - axis.from - axis.gaps.reduce((sum, gap) => sum + (gap.open ? 0 : gap.to - gap.from), 0);
  const rough = Math.max(1, span_ / (isNarrow() ? 3 : 6));
  const unit = [1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 1.5e7, 3e7, 6e7, 1.2e8, 3e8, 6e8, 9e8, 1.8e9, 3.6e9, 7.2e9, 1.08e10, 2.16e10, 4.32e10, 8.64e10].find((size) => size >= rough) ?? Math.ceil(rough / 8.64e10) * 8.64e10;
  const times = [];
  for (let time = axis.from; time < axis.to && times.length < 400; time += unit) times.push(time);
  // Of those within a folded gap, none is shown.
  return times.filter((time) => !axis.gaps.some((gap) => !gap.open && time > gap.from && time < gap.to));
}

/** The times of the axis whose texts have room. */
function shownTicks(axis) {
  let last = -1;
  return ticks(axis).filter((time) => {
    const x = axis.place(time);
    if (x - last < (isNarrow() ? 0.2 : 0.07) || x > 0.96 || axis.gaps.some((gap) => isNear(axis.place(gap.from), axis.place(gap.to), x))) return false;
    last = x;
    return true;
  });
}
const leftOf = (axis, time) => ({ left: `${axis.place(time) * 100}%` });
/** Draws lines below the times of the axis, behind the bars. */
export const gridLines = (axis) => shownTicks(axis).map((time) => i.line({ key: time, style: leftOf(axis, time) }));

/** Draws the axis: round times, and the folded gaps. */
export function axisRow(axis, toggle) {
  return div.axis({ 'aria-hidden': 'true' }, span.barLabel(clock(axis.from).slice(0, 8)), span.lane(
    shownTicks(axis).map((time) => i.tick({ key: time, style: leftOf(axis, time) }, time === axis.from ? '0' : duration((time - axis.from) / 1000))),
    axis.gaps.map(({ from, to, open }) => button.gap({ key: from, tabindex: '-1', class: open && 'open', style: extent(axis.place(from), axis.place(to)), onclick: () => toggle(from),
      title: `${micros(to - from)} without work; click to ${open ? 'fold' : 'unfold'}` }, micros(to - from).split(' ').slice(0, 2).join(' ')))), span.barFigure('tokens'), span.barFigure('cost'), span.barTime('time'));
}
