// The transcript of a run: windowed rows that follow the end of a running one until the reader scrolls up.
import { tags } from '../lib/dom.js';
import { FlowList } from '../lib/list.js';
import { row, rows } from '../parts/transcript.js';
import { empty } from '../parts/common.js';
import { searchBar } from './search.js';

const { button, div } = tags;

export function transcriptTab(tools) {
  const { model, view, context } = tools;
  let [list, items, seen, revealed, drawn, version] = [null, [], model.head, false, -1, 0];
  const search = searchBar(tools, (seq) => { const node = model.nodeAt(seq); if (node) { view.selected = node.id; reveal(node); } });
  const frame = {
    model, context, folded: view.folded, select: tools.select, get selected() { return view.selected; }, get version() { return version; },
    pendingOf: (node) => (node.status === 'waiting' ? model.run.pending?.find((item) => item.call === node.path && (item.kind === 'budget') === (node.kind.type === 'budget')) : null),
    fold: (node) => { view.folded[view.folded.has(node.id) ? 'delete' : 'add'](node.id); drawn = -1; context.redraw(); },
  };
  const atEnd = () => context.main.scrollHeight - context.main.scrollTop - context.main.clientHeight < 160;
  const toEnd = () => {
    for (let i = 0; i < 3; i++) { context.main.scrollTop = context.main.scrollHeight; list?.paint(); }
    seen = model.head;
    context.redraw();
  };
  function reveal(node) {
    let at = node;
    let index = -1;
    while (at && (index = items.findIndex((item) => item.node.id === at.id)) < 0) at = model.of(at.id)[0] ?? model.nodes[at.parent];
    if (index >= 0) list?.show(index);
    context.redraw();
  }
  let follows = false;
  return {
    reveal,
    keys: () => ({
      ...search.keys(), j: ['Next row', () => step(1)], k: ['Row before', () => step(-1)], End: ['Jump to the end', toEnd], Home: [null, () => context.main.scrollTo(0, 0)],
      o: ['Show or hide below', () => { const node = model.nodes[view.selected]; if (node) frame.fold(node); }],
    }),
    changed() { follows = atEnd(); },
    route(to) { if (to.rest[0] != null) view.selected = model.nodeAt(Number(to.rest[0]))?.id ?? null; },
    render: () => [search.render(),
      model.nodes.length < 2 ? empty('Nothing has happened yet', 'The transcript fills as the run works.') : div.transcript({ key: 'flow', opaque: true, role: 'list', 'aria-label': 'Transcript', ref: attach }),
      seen < model.head && !atEnd() && ['running', 'waiting'].includes(model.run.status) ? button.jump({ key: 'jump', onclick: toEnd }, `${model.head - seen} new, jump to the end`) : null],
    drawn() {
      if (!list?.host.isConnected) return;
      if (drawn !== model.version) items = rows(model, view.folded);
      drawn = model.version;
      list.set(items);
      if (!revealed && view.selected != null) { revealed = true; reveal(model.nodes[view.selected]); }
      if (follows && seen < model.head && model.run.status !== 'completed') { follows = false; toEnd(); }
      if (atEnd()) seen = model.head;
    },
    tick: () => { version++; context.redraw(); },
    close: () => { list?.close(); search.close(); },
  };
  function attach(host) {
    list?.close();
    list = new FlowList({ scroller: context.main, host, row: (item) => row(item, frame) });
  }
  function step(by) {
    const at = items.findIndex((item) => item.node.id === view.selected);
    const next = items[Math.max(0, Math.min(items.length - 1, at + by))];
    if (!next) return;
    view.selected = null;
    tools.select(next.node);
    list.show(items.indexOf(next), 'nearest');
  }
}
