// One run: what it did in a sentence, its stages, and its log in five readings.
import { tags } from '../lib/dom.js';
import { post, at, ui, apiUrl } from '../lib/api.js';
import { openDialog } from '../lib/keys.js';
import { icon, status, STATUS } from '../lib/icons.js';
import { compact, date, duration, millis, money, plural, shortId } from '../lib/format.js';
import { RunModel, isError, isWait } from '../parts/model.js';
import { readable } from '../parts/json.js';
import { copyButton, failure, facts, loading, took, when } from '../parts/common.js';
import { transcriptTab } from './transcript.js';
import { waterfallTab } from './waterfall.js';
import { eventsTab } from './events.js';
import { stateTab } from './state.js';
import { requestsTab } from './requests.js';
import { forkDialog, rerunDialog } from './fork.js';

const { a, article, button, code, details, div, footer, form, h1, h2, header, label, li, nav, ol, p, section, small, span, summary,
  textarea, time, ul } = tags;

const TABS = { transcript: ['Transcript', transcriptTab], waterfall: ['Waterfall', waterfallTab], events: ['Events', eventsTab],
  state: ['State', stateTab], requests: ['Model requests', requestsTab] };
const toRun = (id, ...rest) => ui(`/runs/${[id, ...rest].join('/')}`);

export function runView(context, route) {
  const view = { route, tab: null, selected: null, folded: new Set() };
  const changed = (row) => {
    if (row) context.refreshPending();
    else view.tab?.changed?.();
    context.redraw();
  };
  const model = new RunModel(route.id, changed, context.setLink);
  const tools = {
    model, context, view,
    fork: (seq = model.nodes[view.selected]?.seq ?? model.head) => forkDialog(model, seq, context),
    go: (...rest) => context.go(`/runs/${[model.id, ...rest].join('/')}`),
    /** Selects a node, or no node if it is the selected one. */
    select(node) {
      view.selected = view.selected === node.id ? null : node.id;
      const path = [model.id, view.route.tab, ...(view.selected == null ? [] : [node.seq])];
      context.go(`/runs/${path.join('/')}`, { replace: true });
    },
    reveal(node) {
      view.selected = null;
      tools.select(node);
      view.tab?.reveal?.(node);
    },
  };
  const openTab = () => {
    view.tab?.close();
    view.tab = (TABS[view.route.tab] ?? TABS.transcript)[1](tools);
  };
  model.load().then(() => {
    if (model.trouble || model.closed) return;
    const [seq] = view.route.rest;
    if (seq != null && ['transcript', 'waterfall'].includes(view.route.tab)) view.selected = model.nodeAt(Number(seq))?.id ?? null;
    openTab();
    context.redraw();
  });
  return {
    follows: true,
    title: () => (model.run ? `${model.run.brain} ${model.run.status}` : 'Run'),
    update(to) {
      if (to.name !== 'run' || to.id !== route.id) return false;
      const isOther = to.tab !== view.route.tab;
      view.route = to;
      if (model.run && isOther) openTab();
      else view.tab?.route?.(to);
      return true;
    },
    keys: () => (model.run ? { ...keys(tools), ...view.tab?.keys() } : {}),
    render: () => (model.trouble ? failure(model.trouble, () => model.load()) : model.run ? page(tools) : loading('Loading the run…')),
    drawn: () => view.tab?.drawn?.(),
    onhide: () => model.stop?.(),
    onchange: () => model.run && model.follow(),
    tick: () => model.run?.status === 'running' && view.tab?.tick?.(),
    close() {
      view.tab?.close();
      model.close();
    },
  };
}

function keys(tools) {
  const { model, view, context } = tools;
  const to = (test, step) => () => {
    const list = model.select(test);
    const seq = model.nodes[view.selected]?.seq ?? (step > 0 ? -1 : Infinity);
    const next = step > 0 ? list.find((node) => node.seq > seq) ?? list[0] : list.findLast((node) => node.seq < seq) ?? list.at(-1);
    if (next) tools.reveal(next);
  };
  const isIteration = (node) => node.kind.type === 'iteration';
  const parent = model.run.forked_from;
  return {
    ...Object.fromEntries(Object.entries(TABS).map(([tab, [text]], i) => [String(i + 1), [text, () => tools.go(tab)]])),
    '[': ['Iteration before', to(isIteration, -1)], ']': ['Next iteration', to(isIteration, 1)],
    e: ['Next error', to(isError, 1)], w: ['Next wait', to(isWait, 1)], t: ['The whole run', () => tools.go('transcript')],
    ...(parent && { p: ['The run it was forked from', () => context.go(`/runs/${parent.run}`)] }),
    f: ['Fork here', () => tools.fork()],
    Escape: [null, () => (view.selected == null ? context.go('/runs') : tools.select(model.nodes[view.selected]))],
  };
}

function page(tools) {
  const { model, view } = tools;
  const { run } = model;
  return article.run({ 'aria-label': `Run of ${run.brain}` },
    head(tools),
    nav.tabs({ 'aria-label': 'Readings of the run' }, Object.entries(TABS).map(([tab, [text]]) =>
      a({ key: tab, href: toRun(run.id, tab), 'aria-current': view.route.tab === tab ? 'page' : null }, text)),
    span.grow(), span.soft.headSeq(['live', 'lost'].includes(model.state) && span.dot({ class: model.state }), plural(model.head + 1, 'event'))),
    div.tab({ key: view.route.tab }, view.tab?.render()));
}

/** What the run did, counted. */
function sentence({ run, counts, answers }) {
  const list = [[answers, 'model answer'], [counts.call, 'call'], [counts.person, 'decision by a person', 'decisions by people'],
    [counts.file, 'file'], [counts.retry, 'retry', 'retries']].filter(([count]) => count)
    .map(([count, one, many = `${one}s`]) => `${compact(count)} ${count === 1 ? one : many}`);
  const did = list.length > 1 ? `${list.slice(0, -1).join(', ')} and ${list.at(-1)}` : list[0] ?? 'no model answers';
  const lasted = duration(millis(run.updated) - millis(run.started));
  const ended = { completed: 'Completed in', failed: 'Failed after', cancelled: 'Cancelled after' }[run.status];
  return ended ? `${ended} ${lasted}, with ${did}.` : `${run.status[0].toUpperCase()}${run.status.slice(1)}; so far ${did}.`;
}

function head(tools) {
  const { model } = tools;
  const { run, nodes, usage, spent, currency } = model;
  const { ending, options } = nodes[0]?.kind ?? {};
  const { budget = {}, forked_from: parent, worker } = run;
  const isOpen = !['completed', 'cancelled'].includes(run.status);
  const note = (tone, shape, text) => text && p.why({ class: tone }, icon(shape), span({ dir: 'auto' }, text));
  const value = (title, given) => given != null && Object.keys(given).length > 0
    && section({ 'aria-label': title }, h2(title), readable(given));
  const link = (id) => id && a({ key: id, href: toRun(id) }, shortId(id));
  const isPriced = spent && spent.calls > spent.unpriced;
  const amount = (given) => money(String(given), currency);
  return header.runHead(
    p.crumb(a({ href: ui('/runs') }, 'Runs'), ' / ', code({ title: run.id }, shortId(run.id)), copyButton(run.id, 'Copy id'),
      copyButton(() => location.href, 'Copy link')),
    div.title(h1(run.brain), status(run.status), span.grow(), actions(tools)),
    p.lead(sentence(model)),
    ending?.type === 'failed' ? note('bad', 'cross', `${ending.code}: ${ending.message}`) : isOpen && note(STATUS[run.status][1], STATUS[run.status][0], run.why),
    note('wait', 'warn', run.refused?.message ?? run.refused), note('wait', 'warn', run.changed),
    div.inout(value('Started with', options), ending?.type === 'completed' && value('Result', ending.result)),
    stages(tools),
    facts([
      ['started', time({ datetime: run.started }, date(run.started))], ['user', run.user],
      ['tokens', (usage?.input || usage?.output) && `${compact(usage.input ?? 0)} in, ${compact(usage.output ?? 0)} out${
        usage.cached ? `, ${compact(usage.cached)} cached` : ''}`],
      ['cost', isPriced && `${amount(spent.known)}${spent.unpriced ? `, ${plural(spent.unpriced, 'answer')} unpriced` : ''}`],
      ['limit', budget?.max_money && amount(budget.max_money)], ['token limit', budget?.max_tokens && compact(budget.max_tokens)],
      ['worker', worker?.live && `${worker.owner}, epoch ${worker.epoch}`], ['wakes', run.wake && when(run.wake)],
      ['conversation', run.conversation && a({ href: ui(`/runs?conversation=${encodeURIComponent(run.conversation)}`) }, shortId(run.conversation))],
      ['previous run', link(run.previous)],
      ['forked from', parent && [a({ href: toRun(parent.run, 'transcript', parent.seq) }, `${shortId(parent.run)} at event ${parent.seq}`), ' ',
        a({ href: ui(`/diff?a=${parent.run}&b=${run.id}`) }, 'compare')]],
      ['forks', run.forks?.length > 0 && run.forks.map((id) => [link(id), ' '])],
    ]));
}

/** The stages in order, each with its status; a click goes to it. */
function stages({ model, reveal }) {
  const list = model.of(0).filter((node) => node.kind.type === 'stage');
  return list.length > 0 && ol.stages({ 'aria-label': 'Stages' }, list.map((node) => {
    const { name, iteration } = node.kind;
    const [shape, tone, word] = STATUS[node.status];
    const more = iteration == null ? took(node) || (word === 'done' ? '' : word) : plural(iteration + 1, 'iteration');
    return li({ key: node.id, class: tone }, button({ disabled: node.status === 'not_started', onclick: () => reveal(node) },
      icon(shape, word), span(name), small(more)));
  }));
}

/** Signals with a form: their button, the name of their text, and what to know before. */
const ASKED = {
  message: { title: 'Send a message', verb: 'Send', field: 'text', required: true },
  cancel: { title: 'Cancel the run', verb: 'Cancel the run', field: 'reason', danger: true,
    note: 'Every open call gets a cancelled result. This cannot be undone.' },
};

function actions(tools) {
  const { model: { run }, context } = tools;
  const signal = async (type, body) => {
    try {
      await post(`/runs${at(run.id, 'signals')}`, { type, ...body });
    } catch ({ message }) {
      context.say(message, true);
      openDialog('The action failed', (close) => [h2('The action failed'), p(message), button({ onclick: close }, 'Close')]);
    }
  };
  const asks = (type) => () => {
    const { title, verb, field, note, required = false, danger } = ASKED[type];
    openDialog(title, (close) => form({ onsubmit: (event) => {
      event.preventDefault();
      signal(type, { [field]: new FormData(event.target).get(field) || undefined });
      close();
    } }, h2(title), note && p.soft(note), div.field(label({ for: 'field' }, field), textarea({ id: 'field', name: field, rows: 3, required })),
    footer(button[danger ? 'danger' : 'primary'](verb), button.plain({ type: 'button', onclick: close }, 'Close'))));
  };
  const list = { pause: ['Pause', () => signal('pause')], resume: ['Resume', () => signal('resume')], message: ['Send a message…', asks('message')],
    fork: ['Fork…', () => tools.fork()], rerun: ['Rerun from a stage…', () => rerunDialog(tools.model, context)], cancel: ['Cancel…', asks('cancel')] };
  const close = (event) => { if (event.target.closest('button')) event.currentTarget.open = false; };
  return details.menu({ onclick: close }, summary('Actions', icon('chevron')),
    ul(Object.entries(list).map(([name, [text, onclick]]) => {
      const { allowed = true, reason } = run.actions?.[name] ?? {};
      return li({ key: name }, button({ disabled: !allowed, onclick }, text), !allowed && small(reason));
    }), li(a({ href: apiUrl(`/runs${at(run.id, 'events')}?limit=500`), target: '_blank' }, 'Events as JSON'))));
}
