// One run: its head, its log in five readings, and beside them what is selected.
import { tags, redraw } from '../lib/dom.js';
import { at, close, go, later, load, may, runUrl, say, TABS } from '../lib/page.js';
import { settle } from '../lib/settle.js';
import { batches, lastCall } from '../parts/batches.js';
import { isForPerson, isHeld, withDrafts } from '../parts/drafts.js';
import { idsOf } from '../parts/ids.js';
import { RunModel, failureOf, foldedAtFirst, isFailure, isLastAttempt, isWait, iterationOf } from '../parts/model.js';
import { failure, loading } from '../parts/common.js';
import { askRetry, retryOf, runHead } from '../parts/run_head.js';

const { article, aside, button, div } = tags;
const [pane, deciding] = [later('pane'), later('deciding')];

/** Where there is room for it, what waits for a person stands beside the transcript. */
const wide = matchMedia('(min-width: 1100px)');
wide.addEventListener('change', redraw);

export default function runView(route, frame) {
  const model = new RunModel(route.id, frame.setLink, frame.countPending);
  /** What the tabs share: the run, the address, and the node that is selected in all of them. */
  const run = {
    model, view: { route, selected: null, folded: null },
    url: (tab, seq) => runUrl(model.id, tab, seq),
    go: (tab, seq, replace, opens) => go(address(tab, seq), replace, opens),
    /** What a tab opens at: the request of what is selected. */
    kept: (tab) => (tab === 'requests' ? model.nodes[run.view.selected]?.seq : undefined),
    /** The item that waits first, and the place of its call in the transcript. */
    asked() {
      const [first] = model.run.pending ?? [];
      return first && model.nodes.find((node) => node?.path === first.call && node.status === 'waiting' && (node.kind.type === 'budget') === (first.kind === 'budget'));
    },
    /** Selects a node, or no node if it is the selected one and need not `stay`. */
    select(node, stay) {
      const opens = run.view.selected == null;
      run.view.selected = run.view.selected === node.id && !stay ? null : node.id;
      // The pane makes the rows narrower, so that what was clicked may move out of view.
      if (opens) requestAnimationFrame(() => requestAnimationFrame(() => document.querySelector('.tab .selected')?.scrollIntoView({ block: 'nearest' })));
      run.open(opens, run.view.selected == null ? null : node.seq);
    },
    /** Notes in the address what is selected. A selection that opens a pane is a step of the history, another one takes its place. */
    open(opens, seq) {
      const { tab: name } = run.view.route;
      if (seq == null) close(address(name));
      else run.go(name, seq, !opens, opens);
    },
    reveal(node) {
      run.select(node, true);
      tab?.reveal?.(node);
    },
    /** What waits for people, if it stands beside the transcript and not below its calls. Where an item stands must not depend on
     *  whether someone has begun to decide it: a form that moves loses the focus, and what is typed. */
    toDecide: () => (wide.matches ? withDrafts(model.run.pending ?? [], model.id).filter(isForPerson) : []),
    /** Shows what waits for a person with its form, which no pane may cover. */
    decide() {
      const node = run.asked();
      run.view.selected = null;
      const [first] = batches(model.run.pending);
      wantsForm = { node: first.list[0].kind === 'approval' ? lastCall(node, model) : node, item: first.list[0] };
      run.go('transcript', null, run.view.route.tab === 'transcript');
      if (shown === 'transcript') toForm();
    },
    /** The node where the run failed or waits. */
    place: () => (model.run.status === 'failed' ? failureOf(model) : run.asked()),
    selectNode: (node) => run.select(node, true),
    get retry() { return retryOf(run); },
    /** Opens a dialog of the run; a fork is a view of its own. */
    dialog: (name, seq = run.view.route.rest[0] ?? model.head) => (name === 'fork' ? go(at('fork', model.id, seq)) : load('actions').then((dialogs) => dialogs[name](model, Number(seq)), frame.fail)),
  };
  const address = (name, seq) => at('runs', model.id, name, seq) + location.search.replace(/^\?since.*/, '');
  let [tab, shown, wantsForm] = [null, '', null];
  /** Goes to the form of the node that is to be decided, once its tab is drawn. */
  function toForm() {
    if (!wantsForm) return;
    const { node, item } = wantsForm;
    wantsForm = null;
    tab.reveal(node);
    // The pane of the decisions may have to be loaded.
    import('../parts/deciding.js').then(() => {
      redraw();
      requestAnimationFrame(() => requestAnimationFrame(() => {
        const form = document.getElementById(`item-${item.id}`);
        form?.scrollIntoView({ block: 'nearest' });
        form?.focus({ preventScroll: true });
      }));
    }, frame.fail);
  }
  const openTab = async () => {
    const name = run.view.route.tab;
    const module = await load(name).catch(frame.fail);
    if (!module || model.closed || name !== run.view.route.tab) return;
    tab?.close?.();
    const [seq] = run.view.route.rest;
    if (seq != null) run.view.selected = model.nodeAt(Number(seq))?.id ?? null;
    // What is folded in one tab is folded in the others.
    run.view.folded ??= foldedAtFirst(model);
    [tab, shown] = [module.default(run), name];
    if (name === 'transcript') requestAnimationFrame(toForm);
    redraw();
  };
  const open = async () => {
    await model.load();
    if (model.run?.id === model.id && !model.closed) return openTab();
    // The short form of an id, as the page prints it, leads to the run.
    // A server that restarts is asked again.
    if (model.trouble?.status === 0 && !model.closed) setTimeout(() => model.closed || open(), 2000);
    if (!model.run && model.trouble?.status !== 404) return null;
    const found = model.run ? [model.run.id] : await idsOf(model.id).catch(() => []);
    if (found.length === 1 && !model.closed) go(at('runs', found[0], route.tab === 'transcript' && !route.rest.length ? null : route.tab, route.rest[0]), true);
    else if (found.length) model.trouble = { status: 404, message: `${found.length} runs end with ${model.id}: ${found.join(', ')}` };
    else if (/^[\da-f]{1,3}$/i.test(model.id)) model.trouble = { status: 404, message: `\`${model.id}\` is too short for the end of an id: write four characters or more.` };
    return null;
  };
  open();
  return {
    follows: true,
    title: () => (model.run ? `${model.run.brain} ${model.run.status}` : 'Run'),
    update(to) {
      if (to.name !== 'run' || to.id !== route.id) return false;
      const isOther = to.tab !== run.view.route.tab;
      run.view.route = to;
      if (tab && isOther) openTab();
      else if (shown === to.tab && ['transcript', 'waterfall', 'events'].includes(shown)) {
        if (to.rest[0] != null) tab.route?.(Number(to.rest[0]));
        else if (tab.deselect) tab.deselect();
        else run.view.selected = null;
      } else if (to.rest[0] != null && shown === to.tab) tab.route?.(Number(to.rest[0]));
      return true;
    },
    keys: () => (tab ? { ...keys(run), ...tab.keys() } : {}),
    head: () => !model.trouble && tab && runHead(run),
    render: () => (model.trouble ? failure({ ...model.trouble, message: model.trouble.message, retries: model.trouble.status === 0 }, open) : tab ? article({ 'aria-label': `Run of ${model.run.brain}`, 'data-tab': shown }, div.tab({ key: shown }, tab.render()), jumpOf(run, shown)) : loading('Loading the run…')),
    /** The pane beside the transcript and the waterfall has what is selected there. */
    beside() {
      if (model.trouble || !tab || !['transcript', 'waterfall'].includes(shown)) return null;
      const node = model.nodes[run.view.selected];
      const items = shown === 'transcript' ? run.toDecide() : [];
      // A call that waits is read with its decision, also one that was decided elsewhere while a person was at work on it.
      if (items.length && (!node || items.some((item) => item.call === node.path && (node.status === 'waiting' || isHeld(item))))) return aside.beside.pane.deciding({ key: 'deciding', 'aria-label': 'Decisions' }, deciding(items, run.several, node?.path));
      return node && aside.beside.pane({ key: 'pane', class: shown === 'waterfall' && 'dock', 'aria-label': 'Details' }, pane(run));
    },
    hide: () => model.stop?.(),
    change: () => model.run && model.follow(),
    close() {
      tab?.close?.();
      model.close();
    },
  };
}

/** What a long transcript has out of view: the failure of the run, or what waits. */
function jumpOf(run, shown) {
  if (shown !== 'transcript') return null;
  const { model } = run;
  const node = model.run.status === 'failed' ? failureOf(model) : model.run.status === 'waiting' ? run.asked() : null;
  if (!node || isInView(node) || [...document.querySelectorAll('.tab :is(.decide, .batch)')].some(isShown)) return null;
  const iteration = model.nodes[node.parent]?.kind;
  const name = iteration?.type === 'iteration' ? `Iteration ${iteration.number + 1}` : node.kind.name ?? node.kind.tool ?? 'A request for more';
  return div.jumpTo(button({ onclick: () => run.reveal(node) }, `${name} ${model.run.status === 'failed' ? 'failed' : 'waits'} `, tags.kbd(model.run.status === 'failed' ? 'E' : 'W')));
}
const isInView = ({ seq }) => isShown(document.querySelector(`.row[data-seq="${seq}"]`));
function isShown(part) {
  const row = part?.getBoundingClientRect();
  const frame = document.getElementById('main').getBoundingClientRect();
  return Boolean(row && row.top < frame.bottom - 20 && row.bottom > frame.top + 20);
}

/** How an item is decided. It is loaded before a key needs it: while a key waits, the item may leave with another person's decision. */
let decisions = null;

function keys(run) {
  const { model, view } = run;
  if (run.asked() && !decisions) import('../parts/decide.js').then((module) => { decisions = module; }, () => {});
  /** Goes to the next or previous node that passes a test; without a selection, to the given one first. */
  const to = (test, step, first) => () => {
    const list = model.select((node) => test(node, model));
    const seq = model.nodes[view.selected]?.seq ?? (step > 0 ? -1 : Infinity);
    const next = (view.selected == null && first?.()) || (step > 0 ? list.find((node) => node.seq > seq) ?? list[0] : list.findLast((node) => node.seq < seq) ?? list.at(-1));
    if (next) run.reveal(next);
  };
  /** The first row of an iteration stands for it. */
  const begins = (node) => iterationOf(node, model) !== null && isLastAttempt(node, model);
  const up = () => {
    let node = model.nodes[model.nodes[view.selected]?.parent];
    while (node && ['iteration', 'brain'].includes(node.kind.type)) node = model.nodes[node.parent];
    if (node) run.reveal(node);
  };
  /** Opens the selected answer in the playground, or the one before what is selected. */
  const trial = () => {
    const list = model.select(({ kind }) => kind.type === 'answer');
    const answer = list.findLast(({ seq }) => seq <= (model.nodes[view.selected]?.seq ?? Infinity)) ?? list[0];
    if (answer) go(at('playground', model.id, answer.seq));
  };
  /** Goes to the item that waits first: a key must decide only what the person has seen to be chosen. */
  const toItem = () => {
    if (!run.asked()) return;
    run.decide();
    // Who types a word has read nothing yet.
    settle();
    say('The item has the focus now. Press the key again to decide it.', true);
  };
  /** A key of the item whose form has the focus; without one, a key of the run. */
  const orItem = (act, otherwise) => () => {
    const id = document.activeElement?.closest('.decide')?.id;
    const item = id && model.run.pending?.find((one) => `item-${one.id}` === id);
    if (!item) return otherwise?.();
    return decisions?.isInView(item) && act(item, decisions);
  };
  const parent = model.run.forked_from;
  const nextFailure = to(isFailure, 1, () => model.run.status === 'failed' && failureOf(model));
  return {
    ...Object.fromEntries(Object.entries(TABS).map(([tab, text], i) => [i + 1, [text, () => run.go(tab, run.kept(tab))]])),
    '[': ['Iteration before', to(begins, -1)], ']': ['Next iteration', to(begins, 1)],
    e: [run.asked() ? 'Next failure; edit the arguments of the item that has the focus' : 'Next failure', orItem((item, { toggle }) => item.editable && toggle(item, 'edit'), nextFailure)],
    ...(run.asked() && { a: ['Approve the item that has the focus', orItem((item, { approveShown }) => item.kind !== 'answer' && approveShown(item), toItem)], 'mod+Enter': ['Decide as the form shows', orItem((item, { approveShown }) => approveShown(item), toItem)],
      r: ['Reject the item that has the focus…', orItem((item, { toggle }) => item.kind !== 'answer' && toggle(item, 'reject'), toItem)] }),
    w: ['Next wait', to(isWait, 1, () => model.run.status === 'waiting' && run.asked())], u: ['What it is part of', up], t: ['The whole run', () => run.go('transcript')],
    ...(parent && { P: ['The run it was forked from', () => go(`/runs/${parent.run}`)] }), ...(may('playground') && { p: ['Try the answer again with edits', trial] }), f: ['Fork here', () => run.dialog('fork')],
    ...(run.retry && may('operate') && { r: ['Retry…', () => askRetry(run)] }), ...(run.asked() && { d: ['Decide', run.decide] }),
    Escape: ['Leave the selection, or the run', () => (view.selected == null ? go('/runs') : run.select(model.nodes[view.selected]))],
  };
}
