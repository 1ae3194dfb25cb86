// The transcript of a run: windowed rows that follow the end of a running one until the reader scrolls up.
import { tags } from '../lib/dom.js';
import { later, main } from '../lib/page.js';
import { settle } from '../lib/settle.js';
import { nodeList } from '../parts/rows.js';
import { nests, row, shows } from '../parts/transcript.js';
import { empty } from '../parts/common.js';
import { searchBar } from './search.js';

const { button, div } = tags;
const minimap = later('minimap');

export default function transcriptTab(run) {
  const { model, view } = run;
  const folded = new Set();
  const rows = nodeList(run, { name: 'transcript', shows, nests, folded, height: 46, measured: true,
    row: (node, depth) => row(node, depth, { ...run, isFolded: folded.has(node.id), fold: rows.fold }) });
  const route = (seq) => { view.selected = model.nodeAt(seq)?.id ?? null; };
  const search = searchBar(model, (seq) => {
    route(seq);
    rows.reveal(model.nodes[view.selected]);
  });
  const isAtEnd = () => main().scrollHeight - main().scrollTop - main().clientHeight < 160;
  let [seen, wanted] = [model.head, view.selected];
  const places = () => [...document.querySelectorAll('.decide footer')].map((node) => node.getBoundingClientRect().top).join();
  const toEnd = () => {
    const before = places();
    for (let tries = 0; tries < 3; tries++) {
      main().scrollTop = main().scrollHeight;
      rows.list.paint();
    }
    if (places() !== before) settle();
    seen = model.head;
  };
  const drawn = () => {
    if (wanted != null) rows.reveal(model.nodes[wanted]);
    wanted = null;
    if (isAtEnd()) seen = model.head;
  };
  return {
    reveal: rows.reveal, route, close: rows.close,
    keys: () => ({ ...search.keys, ...rows.keys, End: ['Jump to the end', toEnd], Home: [null, () => main().scrollTo(0, 0)],
      o: ['Show or hide below', () => view.selected != null && rows.fold(model.nodes[view.selected])] }),
    render() {
      // Before the new rows are drawn, the view is at the end of the old ones.
      if (seen < model.head && isAtEnd() && model.run.status !== 'completed') requestAnimationFrame(toEnd);
      return [search.render(),
        model.nodes.length < 2 ? empty('Nothing has happened yet', 'The transcript fills as the run works.')
          : div.mapped({ key: 'flow', drawn }, rows.list.view({ role: 'list', 'aria-label': 'Transcript', 'aria-rowcount': null }), minimap(run)),
        seen < model.head && !isAtEnd() && ['running', 'waiting'].includes(model.run.status)
          && button.jump({ key: 'jump', onclick: toEnd }, `${model.head - seen} new, jump to the end`)];
    },
  };
}
