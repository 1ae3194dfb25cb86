// The waterfall tab: bars by time, windowed, with folded idle times; dragging over the lanes zooms.
import { tags } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { axisRow, barOf, barRow, extent, gridLines, LEGEND, scale } from '../parts/waterfall.js';
import { failureOf, isFailure } from '../parts/model.js';
import { nodeList } from '../parts/node_list.js';
import { empty, hasEnded } from '../parts/common.js';

const { a, button, div, i, p, span } = tags;

export default function waterfallTab(run) {
  const { model, view, select } = run;
  let [axis, now, zoom, drag, idle, scaled, unfolded, kinds, hasFailed, failedOnly, wanted] = [null, 0, null, null, [], 0, new Set(), new Set(), false, false, null];
  /** Whether a node has failed, or something in it. */
  const fails = (node) => isFailure(node, model) || (model.children.get(node.id) ?? []).some((id) => fails(model.nodes[id]));
  const shows = (node) => barOf(node, 0, model) !== null && (!failedOnly || fails(node));
  // A failed run opens at its failure where the dock leaves room for the bars.
  if (view.selected == null && model.run.status === 'failed' && matchMedia('(min-width: 1440px)').matches) {
    wanted = failureOf(model);
    view.selected = wanted?.id ?? null;
  }
  const rows = nodeList(run, { name: 'bars', height: 28, shows, nests: (node) => node.parent != null && shows(node), folded: view.folded,
    row: (node, depth, index) => barRow(node, barOf(node, now, model), axis, { depth, index, selected: node.id === view.selected, select, model, fold: hasBelow(node) && fold, isFolded: view.folded.has(node.id) }) });
  const fold = (node) => change(() => rows.fold(node));
  const hasBelow = (node) => (model.children.get(node.id) ?? []).some((id) => shows(model.nodes[id]) || hasBelow(model.nodes[id]));
  // Times without a worker are between a release and the next claim.
  get(`${model.path}/events`, { type: 'RUN_CLAIMED,RUN_RELEASED', limit: 500 }).then(({ items }) => {
    idle = items.flatMap(({ type, at: from }, n) => (type === 'RUN_RELEASED' && items[n + 1] ? [{ from, to: items[n + 1].at }] : []));
  }, () => {});
  /** Makes the scale. A long run's is made at most once a second while it grows. */
  function compute() {
    if (axis && model.nodes.length > 5000 && performance.now() - scaled < 1000) return;
    const [{ started, ended }] = model.nodes;
    // What an open run waits for takes time, too.
    now = !hasEnded(model.run) ? Date.now() * 1000 : model.nodes.reduce((time, node) => Math.max(time, node?.ended ?? node?.started ?? 0), 0);
    // What is folded has worked, too.
    const bars = model.nodes.map((node) => node && barOf(node, now, model)).filter((bar) => bar?.segments.length);
    kinds = new Set([...bars.flatMap(({ segments }) => segments.map(({ kind }) => kind.split(' ')[0])), idle.length && 'suspended']);
    axis = scale(bars, { from: started, to: Math.max(started + 1, ended ?? now), ...zoom, unfolded });
    hasFailed = model.nodes.some((node) => node && isFailure(node, model));
    scaled = performance.now();
  }
  const change = (act) => {
    act();
    scaled = -Infinity;
  };
  const place = ({ clientX, currentTarget }) => {
    const lane = currentTarget.querySelector('.axis .lane').getBoundingClientRect();
    return Math.max(0, Math.min(1, (clientX - lane.left) / lane.width));
  };
  const ends = () => drag.toSorted((one, other) => one - other);
  const pointer = {
    onpointerdown: (event) => {
      const isLane = event.target.closest('.lane') && !event.target.closest('button');
      if (isLane && event.button === 0 && event.pointerType === 'mouse') drag = [place(event), place(event)];
    },
    // A button that is released outside of the bars has ended the drag.
    onpointermove: (event) => { if (drag) drag = event.buttons ? [drag[0], place(event)] : null; },
    onpointerup: () => {
      if (!drag) return;
      const [from, to] = ends();
      if (to - from > 0.01) change(() => { zoom = { from: axis.time(from), to: axis.time(to) }; });
      drag = null;
    },
  };
  const whole = () => change(() => { zoom = null; });
  const toggle = (from) => change(() => unfolded.delete(from) || unfolded.add(from));
  const showFailed = () => change(() => {
    failedOnly = !failedOnly;
    rows.sort();
  });
  const drawn = () => {
    // The legend stays in view, if it can.
    if (wanted) rows.list.show(rows.rows.place(wanted.id));
    wanted = null;
  };
  const toggleAll = () => change(() => { unfolded = new Set(unfolded.size ? [] : axis.gaps.map((gap) => gap.from)); });
  return {
    reveal: rows.reveal, close: rows.close,
    route: (seq) => { if (model.nodes[view.selected]?.seq !== seq) view.selected = model.nodeAt(seq)?.id ?? null; },
    keys: () => ({ ...rows.keys, 0: ['Whole time', whole], z: [null, whole], u: ['Fold or unfold idle times', toggleAll], o: ['Show or hide below', () => view.selected != null && fold(model.nodes[view.selected])],
      Enter: ['Show in the transcript', () => view.selected != null && run.go('transcript', model.nodes[view.selected].seq)] }),
    render() {
      if (!rows.rows.ids.length) return empty('No stage has begun', 'Bars appear as the run works.');
      compute();
      const selected = model.nodes[view.selected];
      return div(pointer,
        p.legend(Object.entries(LEGEND).filter(([kind]) => kinds.has(kind)).map(([kind, text]) => span(i.seg({ class: kind }), text)), span.grow(),
          hasFailed && button.small({ 'aria-pressed': String(failedOnly), onclick: showFailed }, 'Failed only'),
          zoom ? button.small({ onclick: whole }, 'Show the whole time', tags.kbd('0')) : span.quiet.wide('drag to zoom'), selected && a.wide({ href: run.url('transcript', selected.seq) }, 'Show in the transcript')),
        axisRow(axis, toggle),
        div.lanes({ drawn }, div.back({ 'aria-hidden': 'true' }, span(), span.lane(
          gridLines(axis), idle.map(({ from, to }) => i.suspended({ style: extent(axis.place(from), axis.place(to)) })), drag && i.selection({ style: extent(...ends()) })), span()),
        rows.list.view({ role: 'grid', 'aria-label': 'Waterfall' }, selected && `bar-${selected.id}`)));
    },
  };
}
