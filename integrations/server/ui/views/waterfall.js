// The waterfall tab: bars by time, windowed, with folded idle times; dragging over the axis zooms.
import { tags } from '../lib/dom.js';
import { get, at, ui } from '../lib/api.js';
import { axisRow, barOf, barRow, extent, LEGEND, scale } from '../parts/waterfall.js';
import { nodeList } from '../parts/rows.js';
import { empty } from '../parts/common.js';

const { a, button, div, i, p, span } = tags;

export function waterfallTab(tools) {
  const { model, view, context } = tools;
  let [axis, now, zoom, drag, idle, scaled] = [null, 0, null, null, [], 0];
  const unfolded = new Set();
  const bar = (node) => barOf(node, now);
  const rows = nodeList(tools, { shows: (node) => barOf(node, 0) !== null, nests: (node) => node.parent != null && barOf(node, 0) !== null, height: 28,
    row: (node, depth, index) => barRow(node, bar(node), axis, { depth, index, selected: node.id === view.selected, select: tools.select }) });
  // Times without a worker are between a release and the next claim.
  get(`/runs${at(model.id, 'events')}`, { type: 'RUN_CLAIMED,RUN_RELEASED', limit: 500 }).then(({ items }) => {
    idle = items.flatMap(({ type, at: from }, n) => (type === 'RUN_RELEASED' && items[n + 1] ? [{ from, to: items[n + 1].at }] : []));
    context.redraw();
  }, () => {});
  /** Makes the scale. A long run's is made at most once a second while it grows. */
  const compute = (again) => {
    if (axis && !again && rows.rows.ids.length > 5000 && performance.now() - scaled < 1000) return;
    const [root] = model.nodes;
    const last = () => model.nodes.reduce((time, node) => Math.max(time, node?.ended ?? node?.started ?? 0), 0);
    now = model.run.status === 'running' ? Date.now() * 1000 : last();
    const whole = { from: root.started, to: Math.max(root.started + 1, root.ended ?? now) };
    axis = scale(rows.rows.ids.map((id) => bar(model.nodes[id])), { ...whole, ...zoom, unfolded });
    scaled = performance.now();
  };
  const again = () => {
    compute(true);
    context.redraw();
  };
  const place = ({ clientX }) => {
    const lane = document.querySelector('.axis .lane').getBoundingClientRect();
    return Math.max(0, Math.min(1, (clientX - lane.left) / lane.width));
  };
  const ends = () => [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)];
  const pointer = {
    onpointerdown: (event) => {
      const isLane = event.target.closest('.lane') && !event.target.closest('button');
      if (isLane && event.button === 0 && event.pointerType === 'mouse') drag = { from: place(event), to: place(event) };
    },
    onpointermove: (event) => {
      if (!drag) return;
      drag.to = place(event);
      context.redraw();
    },
    onpointerup: () => {
      if (!drag) return;
      const [from, to] = ends();
      if (to - from > 0.01) zoom = { from: axis.time(from), to: axis.time(to) };
      drag = null;
      again();
    },
  };
  const whole = () => { zoom = null; again(); };
  const toggle = (from) => { if (!unfolded.delete(from)) unfolded.add(from); again(); };
  const toggleAll = () => {
    const gaps = unfolded.size ? [] : axis.gaps.map((gap) => gap.from);
    unfolded.clear();
    for (const from of gaps) unfolded.add(from);
    again();
  };
  return {
    reveal: rows.reveal,
    keys: () => ({ ...rows.keys, z: ['Whole time', whole], u: ['Fold or unfold idle times', toggleAll],
      Enter: ['Show in the transcript', () => view.selected != null && tools.go('transcript', model.nodes[view.selected].seq)] }),
    render() {
      if (!rows.rows.ids.length) return empty('No stage has begun', 'Bars appear as the run works.');
      compute();
      const selected = model.nodes[view.selected];
      const behind = idle.map(({ from, to }) => i.suspended({ style: extent(axis.place(from), axis.place(to)) }));
      return div.waterfall({ ...pointer },
        p.legend(Object.entries(LEGEND).map(([kind, text]) => span(i.seg({ class: kind }), text)), span.grow(),
          zoom && button.small({ onclick: whole }, 'Show the whole time'),
          selected && a({ href: ui(`/runs/${model.id}/transcript/${selected.seq}`) }, 'Show in the transcript')),
        axisRow(axis, toggle),
        div.lanes(
          div.back({ 'aria-hidden': 'true' }, span(), span.lane(behind, drag && i.selection({ style: extent(...ends()) })), span()),
          div.bars({ key: 'bars', opaque: true, role: 'grid', 'aria-label': 'Waterfall', tabindex: '0', 'aria-rowcount': rows.rows.ids.length,
            'aria-activedescendant': view.selected == null ? null : `bar-${view.selected}`, ref: rows.list.attach })));
    },
    drawn: rows.draw,
    tick: context.redraw,
    close: rows.close,
  };
}
