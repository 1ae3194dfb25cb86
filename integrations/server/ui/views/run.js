// One run: what it did in a sentence, its stages, and its log in five readings.
import { tags, redraw } from '../lib/dom.js';
import { post } from '../lib/api.js';
import { openDialog } from '../lib/keys.js';
import { apiUrl, at, go, load, may, query, runUrl, say, TABS, ui } from '../lib/page.js';
import { icon, status, STATUS } from '../lib/icons.js';
import { compact, date, duration, millis, money, plural, shortId, who } from '../lib/format.js';
import { idsOf } from '../parts/ids.js';
import { RunModel, isError, isWait } from '../parts/model.js';
import { readable } from '../parts/json.js';
import { copyButton, facts, failure, loading, took, when } from '../parts/common.js';

const { a, article, button, code, details, div, h1, h2, header, li, nav, ol, p, section, small, span, summary, time, ul } = tags;

export default function runView(route, frame) {
  const model = new RunModel(route.id, frame.setLink, frame.countPending);
  /** What the tabs share: the run, the address, and the node that is selected in all of them. */
  const run = {
    model, view: { route, selected: null },
    url: (tab, seq) => runUrl(model.id, tab, seq),
    go: (tab, seq, replace) => go(at('runs', model.id, tab, seq) + location.search.replace(/^\?since.*/, ''), replace),
    /** Selects a node, or no node if it is the selected one and need not `stay`. */
    select(node, stay) {
      run.view.selected = run.view.selected === node.id && !stay ? null : node.id;
      run.go(run.view.route.tab, run.view.selected == null ? null : node.seq, true);
    },
    reveal(node) {
      run.select(node, true);
      tab?.reveal?.(node);
    },
    dialog: (name, seq = run.view.route.rest[0] ?? model.head) => load('actions').then((dialogs) => dialogs[name](model, Number(seq)), frame.fail),
  };
  let [tab, shown] = [null, ''];
  const openTab = async () => {
    const name = run.view.route.tab;
    const module = await load(name).catch(frame.fail);
    if (!module || model.closed || name !== run.view.route.tab) return;
    tab?.close?.();
    const [seq] = run.view.route.rest;
    if (seq != null) run.view.selected = model.nodeAt(Number(seq))?.id ?? null;
    [tab, shown] = [module.default(run), name];
    redraw();
  };
  const open = async () => {
    await model.load();
    if (model.run && !model.closed) return openTab();
    // The short form of an id, as the page prints it, leads to the run.
    if (model.trouble?.status !== 404) return null;
    const found = await idsOf(model.id).catch(() => []);
    if (found.length === 1 && !model.closed) go(at('runs', found[0], route.tab === 'transcript' && !route.rest.length ? null : route.tab, route.rest[0]), true);
    else if (found.length) model.trouble = { status: 404, message: `${found.length} runs end with ${model.id}: ${found.join(', ')}` };
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
      else if (to.rest[0] != null && shown === to.tab) tab.route?.(Number(to.rest[0]));
      return true;
    },
    keys: () => (tab ? { ...keys(run), ...tab.keys() } : {}),
    render: () => (model.trouble ? failure(model.trouble, open) : tab ? page(run, tab, shown) : loading('Loading the run…')),
    hide: () => model.stop?.(),
    change: () => model.run && model.follow(),
    close() {
      tab?.close?.();
      model.close();
    },
  };
}

function keys(run) {
  const { model, view } = run;
  const to = (test, step) => () => {
    const list = model.select(test);
    const seq = model.nodes[view.selected]?.seq ?? (step > 0 ? -1 : Infinity);
    const next = step > 0 ? list.find((node) => node.seq > seq) ?? list[0] : list.findLast((node) => node.seq < seq) ?? list.at(-1);
    if (next) run.reveal(next);
  };
  const isIteration = ({ kind }) => kind.type === 'iteration';
  const parent = model.run.forked_from;
  return {
    ...Object.fromEntries(Object.entries(TABS).map(([tab, text], i) => [i + 1, [text, () => run.go(tab)]])),
    '[': ['Iteration before', to(isIteration, -1)], ']': ['Next iteration', to(isIteration, 1)],
    e: ['Next error', to(isError, 1)], w: ['Next wait', to(isWait, 1)], t: ['The whole run', () => run.go('transcript')],
    ...(parent && { p: ['The run it was forked from', () => go(`/runs/${parent.run}`)] }), f: ['Fork here', () => run.dialog('fork')],
    Escape: ['Leave the selection, or the run', () => (view.selected == null ? go('/runs') : run.select(model.nodes[view.selected]))],
  };
}

function page(run, tab, shown) {
  const { model, view: { route } } = run;
  return article({ 'aria-label': `Run of ${model.run.brain}`, 'data-tab': shown }, head(run),
    nav.tabs({ 'aria-label': 'Views of the run' }, Object.entries(TABS).map(([name, text]) =>
      a({ key: name, href: run.url(name), 'aria-current': route.tab === name && 'page' }, text)),
    span.grow(), span.soft.headSeq(['live', 'lost'].includes(model.state) && span.dot({ class: model.state }), plural(model.head + 1, 'event'))),
    div.tab({ key: shown }, tab.render()));
}

/** A text of the server, with what it quotes in backticks as code. */
const quoted = (text) => text.split('`').map((part, i) => (i % 2 ? code(part) : part));

/** What the run did, counted. */
function sentence({ run, counts, answers }) {
  const list = [[answers, 'model answer'], [counts.call, 'call'], [counts.person, 'decision by a person', 'decisions by people'],
    [counts.file, 'file'], [counts.retry, 'retry', 'retries']].filter(([count]) => count).map((count) => plural(...count));
  const did = new Intl.ListFormat('en-GB').format(list) || 'no model answers';
  const ended = { completed: 'Completed in', failed: 'Failed after', cancelled: 'Cancelled after' }[run.status];
  return ended ? `${ended} ${duration(millis(run.updated) - millis(run.started))}, with ${did}.` : `${run.status[0].toUpperCase()}${run.status.slice(1)}; so far ${did}.`;
}

function head(view) {
  const { model } = view;
  const { run, nodes, usage, spent, currency } = model;
  const { ending, options } = nodes[0]?.kind ?? {};
  const { budget, forked_from: parent, worker } = run;
  const note = (tone, shape, text, ...more) => text && p.why({ class: tone }, icon(shape), span({ dir: 'auto' }, quoted(text)), more);
  // The first item that waits, and the place of its call in the transcript.
  const asked = run.pending?.[0] && nodes.find((node) => node?.path === run.pending[0].call && node.status === 'waiting');
  const value = (title, given) => given != null && (typeof given !== 'object' || Object.keys(given).length > 0) && section({ 'aria-label': title }, h2(title), readable(given));
  const link = (id) => id && a({ key: id, href: runUrl(id) }, shortId(id), ' ');
  const amount = (given) => money(String(given), currency);
  const [shape, tone] = STATUS[run.status];
  return header.runHead(
    p.crumb(a({ href: ui('/runs') }, 'Runs'), ' / ', code({ title: run.id }, shortId(run.id)), copyButton(run.id, 'Copy id'), copyButton(() => location.href, 'Copy link')),
    div.title(h1(run.brain), status(run.parked ? 'parked' : run.status), span.grow(), actions(view)),
    p.lead(sentence(model)),
    ending?.type === 'cancelled' && note(tone, shape, `Cancelled by ${who(ending.actor)}${ending.reason ? `: ${ending.reason}` : '.'}`),
    ending?.type === 'failed' ? note('bad', 'cross', `${ending.code}: ${ending.message}`) : !['completed', 'cancelled'].includes(run.status) && note(tone, shape, run.why, asked && button.small({ onclick: () => view.reveal(asked) }, 'Show')),
    retry(view),
    note('wait', 'warn', run.refused?.message ?? run.refused), note('wait', 'warn', run.changed),
    div.inout(value('Started with', options), ending?.type === 'completed' && value('Result', run.result ?? ending.result)),
    stages(view),
    facts({
      started: time({ datetime: run.started }, date(run.started)), user: run.user,
      tokens: (usage?.input || usage?.output) && `${compact(usage.input ?? 0)} in, ${compact(usage.output ?? 0)} out${usage.cached ? `, ${compact(usage.cached)} cached` : ''}`,
      cost: spent?.calls > spent?.unpriced && `${amount(spent.known)}${spent.unpriced ? `, ${plural(spent.unpriced, 'answer')} unpriced` : ''}`,
      limit: budget?.max_money && amount(budget.max_money), 'token limit': budget?.max_tokens && compact(budget.max_tokens),
      worker: worker?.live && `${worker.owner}, epoch ${worker.epoch}`, wakes: run.wake && when(run.wake),
      conversation: run.conversation && a({ href: ui(`/runs${query({ conversation: run.conversation })}`) }, shortId(run.conversation)),
      'previous run': link(run.previous),
      'forked from': parent && [a({ href: runUrl(parent.run, 'transcript', parent.seq) }, `${shortId(parent.run)} at event ${parent.seq}`), ' ',
        a({ href: ui(`/diff${query({ a: parent.run, b: run.id })}`) }, 'compare')],
      forks: run.forks?.length > 0 && run.forks.map(link),
    }));
}

/** The stages in order, each with its status; a click goes to it. */
const stages = ({ model, reveal }) => ol.stages({ 'aria-label': 'Stages' }, model.stages().map((node) => {
  const { name, iteration } = node.kind;
  const [shape, tone, word] = STATUS[node.status];
  return li({ key: node.id, class: tone }, button({ disabled: node.status === 'not_started', onclick: () => reveal(node) }, icon(shape, word), span(name),
    small(iteration != null ? plural(iteration + 1, 'iteration') : took(node) || (word !== 'done' && word))));
}));

/** Says why an action was refused. */
function refused({ message }) {
  say(message, true);
  openDialog('The action failed', (close) => [h2('The action failed'), p(message), button({ onclick: close }, 'Close')]);
}

/** What a retry does, by the state of a run. */
const RETRIES = { failed: 'A new run continues from the place of the failure.', parked: 'The run continues from where it was parked.' };
function retry({ model, view }) {
  const { run } = model;
  const does = RETRIES[run.parked ? 'parked' : run.status];
  async function send({ detail }) {
    if (view.retrying || detail > 1) return;
    view.retrying = true;
    const answer = await post(`${model.path}/retry`).catch(refused);
    view.retrying = false;
    if (answer?.forked) go(at('runs', answer.run));
    else model.refresh();
  }
  return does && may('operate') && p.retry(button({ 'aria-disabled': view.retrying ? 'true' : null, onclick: send }, icon('retry'), 'Retry'),
    span.soft(`${does} What has a result is not repeated.`));
}

function actions({ model, dialog }) {
  const { run } = model;
  const signal = (type) => post(`${model.path}/signals`, { type }).catch(refused);
  const list = {
    pause: ['Pause', () => signal('pause')], resume: ['Resume', () => signal('resume')],
    message: ['Send a message…', () => dialog('message')], fork: ['Fork…', () => dialog('fork')],
    rerun: ['Rerun from a stage…', () => dialog('rerun')], cancel: ['Cancel…', () => dialog('cancel')],
  };
  const onclick = ({ target, currentTarget }) => { if (target.closest('button')) currentTarget.open = false; };
  let before = '';
  return details.menu({ onclick }, summary('Actions', icon('chevron')), ul(Object.entries(list).map(([name, [text, act]]) => {
    const { allowed = true, reason } = run.actions?.[name] ?? {};
    const isNew = reason !== before;
    before = reason;
    return li({ key: name }, button({ disabled: !allowed, title: reason, onclick: act }, text), !allowed && isNew && small(reason));
  }), li(a({ href: apiUrl(`${model.path}/events?limit=500`), target: '_blank' }, 'Events as JSON'))));
}
