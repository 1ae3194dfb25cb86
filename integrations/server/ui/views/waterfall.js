// The waterfall tab: bars by time, windowed, with folded idle times; dragging over the axis zooms.
import { tags } from '../lib/dom.js';
import { FixedList } from '../lib/list.js';
import { get, at, ui } from '../lib/api.js';
import { axisRow, barRow, bars, LEGEND, scale } from '../parts/waterfall.js';
import { empty } from '../parts/common.js';

const { a, button, div, i, p, span } = tags;

export function waterfallTab(tools) {
  const { model, view, context } = tools;
  let [list, items, axis, zoom, drag, idle] = [null, [], null, null, null, []];
  const unfolded = new Set();
  const claims = async () => {
    // Times without a worker are between a release and the next claim.
    const answer = await get(`/runs${at(model.id, 'events')}`, { type: 'RUN_CLAIMED,RUN_RELEASED', limit: 500 }).catch(() => ({ items: [] }));
    idle = answer.items.flatMap((event, i, all) => (event.type === 'RUN_RELEASED' && all[i + 1] ? [{ from: event.at, to: all[i + 1].at }] : []));
    context.redraw();
  };
  claims();
  const compute = () => {
    const now = model.run.status === 'running' ? Date.now() * 1000 : model.nodes.reduce((last, node) => Math.max(last, node?.ended ?? node?.started ?? 0), 0);
    items = bars(model, now);
    const from = model.nodes[0]?.started ?? 0;
    const to = Math.max(from + 1, model.nodes[0]?.ended ?? now);
    axis = scale(items, { from: zoom?.from ?? from, to: zoom?.to ?? to, unfolded });
  };
  const step = (by) => {
    const index = items.findIndex(({ node }) => node.id === view.selected);
    const next = items[Math.max(0, Math.min(items.length - 1, index + by))];
    if (next) { view.selected = null; tools.select(next.node); list.show(items.indexOf(next)); }
  };
  const place = (event) => {
    const lane = list.host.querySelector('.lane')?.getBoundingClientRect();
    return lane ? Math.max(0, Math.min(1, (event.clientX - lane.left) / lane.width)) : 0;
  };
  const pointer = {
    onpointerdown: (event) => { if (event.target.closest('.lane') && !event.target.closest('button') && event.button === 0 && event.pointerType === 'mouse') drag = { from: place(event), to: place(event) }; },
    onpointermove: (event) => { if (drag) { drag.to = place(event); if (Math.abs(drag.to - drag.from) > 0.01) event.preventDefault(); context.redraw(); } },
    onpointerup: () => {
      if (drag && Math.abs(drag.to - drag.from) > 0.01) zoom = { from: axis.time(Math.min(drag.from, drag.to)), to: axis.time(Math.max(drag.from, drag.to)) };
      drag = null;
      context.redraw();
    },
  };
  const unzoom = () => { zoom = null; context.redraw(); };
  return {
    reveal: (node) => { const index = items.findIndex((bar) => bar.node.id === node.id); if (index >= 0) list?.show(index); },
    keys: () => ({ j: ['Next bar', () => step(1)], k: ['Bar before', () => step(-1)], z: ['Whole time', unzoom], u: ['Fold or unfold idle times', () => { if (unfolded.size) unfolded.clear(); else axis.gaps.forEach((gap) => unfolded.add(gap.from)); context.redraw(); }],
      Enter: ['Show in the transcript', () => { const node = model.nodes[view.selected]; if (node) tools.go('transcript', node.seq); }] }),
    render() {
      compute();
      if (!items.length) return empty('No stage has begun', 'Bars appear as the run works.');
      const selected = model.nodes[view.selected];
      return div.waterfall({ ...pointer },
        p.legend(LEGEND.map(([kind, text]) => span({ key: kind }, i.seg({ class: kind }), text)), span.grow(), zoom && button.small({ onclick: unzoom }, 'Show the whole time'),
          selected && a({ href: ui(`/runs/${model.id}/transcript/${selected.seq}`) }, 'Show in the transcript')),
        axisRow(axis, { toggleGap: (gap) => { unfolded[gap.open ? 'delete' : 'add'](gap.from); context.redraw(); } }),
        div.lanes(
          div.back({ 'aria-hidden': 'true' }, span.barLabel(), span.lane([...idle, ...(drag ? [{ drag: true }] : [])].map((span, i) => {
            const [a, b] = span.drag ? [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)] : [axis.place(span.from), axis.place(span.to)];
            return tags.i({ key: i, class: span.drag ? 'selection' : 'suspended', style: { left: `${a * 100}%`, width: `${(b - a) * 100}%` } });
          })), span.barTime()),
          div.bars({ key: 'bars', opaque: true, role: 'grid', 'aria-label': 'Waterfall', tabindex: '0', 'aria-rowcount': items.length, 'aria-activedescendant': view.selected == null ? null : `bar-${view.selected}`, ref: attach })));
    },
    drawn() { if (list?.host.isConnected) list.setCount(items.length); },
    tick: () => context.redraw(),
    close: () => list?.close(),
  };
  function attach(host) {
    list?.close();
    list = new FixedList({ scroller: context.main, host, height: 28, row: (index) => barRow(items[index], axis, { selected: items[index].node.id === view.selected, select: tools.select, index }) });
  }
}
