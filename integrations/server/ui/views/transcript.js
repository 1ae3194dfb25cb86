// The transcript of a run: windowed rows that follow the end of a running one until the reader scrolls up.
import { tags } from '../lib/dom.js';
import { nodeList } from '../parts/rows.js';
import { minimap } from '../parts/minimap.js';
import { nests, row, shows } from '../parts/transcript.js';
import { empty } from '../parts/common.js';
import { searchBar } from './search.js';

const { button, div } = tags;

export function transcriptTab(tools) {
  const { model, view, context } = tools;
  const { main } = context;
  const { folded } = view;
  let [seen, follows, version, wanted] = [model.head, false, 0, view.selected];
  const pendingOf = ({ status, path, kind: { type } }) => (status === 'waiting' && ['call', 'budget'].includes(type)
    ? model.run.pending?.find((item) => item.call === path && (item.kind === 'budget') === (type === 'budget')) : null);
  const frame = { model, context, folded, pendingOf, select: tools.select, fold: (node) => rows.fold(node),
    isSelected: (node) => node.id === view.selected, version: () => version };
  const rows = nodeList(tools, { shows: (node) => shows(node), nests, folded, height: 46, measured: true,
    row: (node, depth) => row(node, depth, frame) });
  const search = searchBar(tools, (seq) => { select(seq); if (view.selected != null) rows.reveal(model.nodes[view.selected]); });
  const select = (seq) => { view.selected = model.nodeAt(Number(seq))?.id ?? null; };
  const isAtEnd = () => main.scrollHeight - main.scrollTop - main.clientHeight < 160;
  const toEnd = () => {
    for (let tries = 0; tries < 3; tries++) {
      main.scrollTop = main.scrollHeight;
      rows.draw();
    }
    seen = model.head;
    context.redraw();
  };
  const isOpen = () => ['running', 'waiting'].includes(model.run.status);
  return {
    reveal: rows.reveal,
    keys: () => ({
      ...search.keys(), ...rows.keys, End: ['Jump to the end', toEnd], Home: [null, () => main.scrollTo(0, 0)],
      o: ['Show or hide below', () => view.selected != null && rows.fold(model.nodes[view.selected])],
    }),
    changed() { follows = isAtEnd(); },
    route(to) { if (to.rest[0] != null) select(to.rest[0]); },
    render: () => [
      search.render(),
      model.nodes.length < 2 ? empty('Nothing has happened yet', 'The transcript fills as the run works.')
        : div.mapped({ key: 'flow' },
          div.transcript({ key: 'rows', opaque: true, role: 'list', 'aria-label': 'Transcript', ref: rows.list.attach }),
          minimap(model, tools.reveal)),
      seen < model.head && !isAtEnd() && isOpen() && button.jump({ key: 'jump', onclick: toEnd }, `${model.head - seen} new, jump to the end`),
    ],
    drawn() {
      rows.draw();
      if (wanted != null) rows.reveal(model.nodes[wanted]);
      wanted = null;
      if (follows && seen < model.head && model.run.status !== 'completed') toEnd();
      if (isAtEnd()) seen = model.head;
      follows = false;
    },
    tick() {
      version++;
      context.redraw();
    },
    close() {
      rows.close();
      search.close();
    },
  };
}
