// The transcript of a run: windowed rows that follow the end of a running one until the reader scrolls up.
import { redraw, tags } from '../lib/dom.js';
import { later, main } from '../lib/page.js';
import { isField } from '../lib/keys.js';
import { settle } from '../lib/settle.js';
import { withDrafts } from '../parts/drafts.js';
import { nodeList } from '../parts/node_list.js';
import { nests, row, shows } from '../parts/transcript.js';
import { empty, hasEnded } from '../parts/common.js';
import { readable } from '../parts/json.js';
import { brief } from '../lib/format.js';
import { searchBar } from './search.js';

const { b, button, details, div, p, span, summary } = tags;
const minimap = later('minimap');

/** What the run was started with, and its result. */
function ends({ run, nodes }) {
  const { ending, options } = nodes[0]?.kind ?? {};
  const value = (title, given) => given != null && (typeof given !== 'object' || Object.keys(given).length > 0)
    && details({ key: title }, summary({ title: `Show all of “${title}”` }, b(title), ' ', span.cut({ dir: 'auto' }, brief(given, 300))), div.whole({ tabindex: '0', role: 'region', 'aria-label': title }, readable(given)));
  return div.inout(value('Started with', options), ending?.type === 'completed' && value('Result', run.result ?? ending.result));
}

export default function transcriptTab(run) {
  const { model, view } = run;
  const { folded } = view;
  const waiting = () => withDrafts(model.run.pending ?? [], model.id);
  const loadPicks = () => {
    // How several calls are decided at once, once the run waits for more than one.
    run.several = { picker: () => null, bar: () => null };
    import('../parts/picks.js').then(({ picks }) => {
      run.several = picks(waiting);
      redraw();
    }, () => {});
  };
  const rows = nodeList(run, { name: 'transcript', shows, nests, folded, height: 46, measured: true,
    row: (node, depth) => row(node, depth, { ...run, picker: (item) => run.several?.picker(item), toDecide: run.toDecide(), isFolded: folded.has(node.id), fold: rows.fold }) });
  // Several nodes may begin at one event, so that what is selected already stays.
  const route = (seq) => { if (model.nodes[view.selected]?.seq !== seq) view.selected = model.nodeAt(seq)?.id ?? null; };
  const search = searchBar(model, (seq) => {
    route(seq);
    rows.reveal(model.nodes[view.selected]);
  });
  const isAtEnd = () => main().scrollHeight - main().scrollTop - main().clientHeight < 160;
  // A run that failed or waits opens there.
  let [seen, wanted] = [model.head, view.selected ?? run.place()?.id];
  const isChosen = view.selected != null;
  /** Whether the end stays in view while the run grows: of a run that works when it is opened, until the reader scrolls up, selects a row or stops it. */
  let [follows, stopped, top] = [wanted == null && model.run.status === 'running', false, 0];
  // A field in which a person types must stay in view.
  const isFollowing = () => follows && view.selected == null && !hasEnded(model.run) && !isField(document.activeElement);
  const places = () => [...document.querySelectorAll('.decide footer')].map((node) => node.getBoundingClientRect().top).join();
  const toEnd = () => {
    const before = places();
    for (let tries = 0; tries < 3; tries++) {
      main().scrollTop = main().scrollHeight;
      rows.list.paint();
    }
    if (places() !== before) settle();
    [seen, follows, stopped, top] = [model.head, true, false, main().scrollTop];
  };
  const stop = () => { [follows, stopped] = [false, true]; };
  const onscroll = () => {
    const { scrollTop } = main();
    if (isAtEnd()) follows ||= !stopped && !hasEnded(model.run);
    else if (scrollTop < top - 1) follows = false;
    top = scrollTop;
  };
  main().addEventListener('scroll', onscroll, { passive: true });
  const drawn = () => {
    if (wanted != null && (isChosen || model.nodes.length > 12)) rows.reveal(model.nodes[wanted]);
    wanted = null;
    if (isFollowing() && main().scrollHeight - main().scrollTop - main().clientHeight > 2) requestAnimationFrame(() => isFollowing() && toEnd());
    if (isAtEnd()) seen = model.head;
  };
  /** Says whether the end is followed, and changes it. */
  function followButton() {
    const fresh = model.head - seen;
    if (hasEnded(model.run) || (fresh <= 0 && (model.run.status !== 'running' || model.nodes.length <= 12))) return null;
    if (isFollowing()) return button.jump.following({ key: 'jump', onclick: stop }, 'Following the end: stop');
    if (fresh <= 0 && view.selected != null) return null;
    return (!isAtEnd() || stopped) && button.jump({ key: 'jump', onclick: toEnd }, fresh > 0 ? `${fresh} new, jump to the end` : 'Follow the end', tags.kbd('End'));
  }
  return {
    reveal(node) {
      follows = false;
      rows.reveal(node);
    },
    route,
    close() {
      main().removeEventListener('scroll', onscroll);
      rows.close();
    },
    keys: () => ({ ...search.keys, ...rows.keys, End: ['Jump to the end', toEnd], Home: [null, () => main().scrollTo(0, 0)],
      o: ['Show or hide below', () => view.selected != null && rows.fold(model.nodes[view.selected])] }),
    render() {
      if (!run.several && model.run.pending?.length > 1) loadPicks();
      // Before the new rows are drawn, the view is at the end of the old ones.
      if (seen < model.head && isAtEnd() && !stopped && !hasEnded(model.run)) requestAnimationFrame(() => stopped || isField(document.activeElement) || toEnd());
      return [search.render(),
        ends(model),
        model.nodes.length < 2 ? empty('Nothing has happened yet', 'The transcript fills as the run works.')
          : [p.columnHeads({ 'aria-hidden': 'true' }, span('tokens'), span('cost'), span('time')), div.mapped({ key: 'flow', drawn }, rows.list.view({ role: 'list', 'aria-label': 'Transcript', 'aria-rowcount': null }), model.nodes.length > 40 && minimap(run))],
        followButton(),
        run.toDecide().length === 0 && run.several?.bar()];
    },
  };
}
