// One run: what it did in a sentence, its stages, and its log in five readings.
import { tags } from '../lib/dom.js';
import { post, at, ui, apiUrl } from '../lib/api.js';
import { openDialog } from '../lib/keys.js';
import { icon, status, STATUS } from '../lib/icons.js';
import { compact, date, duration, micros, millis, money, plural, shortId } from '../lib/format.js';
import { RunModel, costOf } from '../parts/model.js';
import { counts } from '../parts/transcript.js';
import { readable } from '../parts/json.js';
import { copyButton, failure, facts, loading, when } from '../parts/common.js';
import { transcriptTab } from './transcript.js';
import { waterfallTab } from './waterfall.js';
import { eventsTab } from './events.js';
import { stateTab } from './state.js';
import { requestsTab } from './requests.js';
import { forkDialog, rerunDialog } from './fork.js';

const { a, article, button, code, details, div, footer, form, h1, h2, header, input, label, li, nav, ol,
  p, section, small, span, summary, textarea, time, ul } = tags;

const TABS = { transcript: ['Transcript', transcriptTab], waterfall: ['Waterfall', waterfallTab], events: ['Events', eventsTab], state: ['State', stateTab], requests: ['Model requests', requestsTab] };

export function runView(context, route) {
  const view = { route, tab: null, selected: null, search: null, folded: new Set() };
  const model = new RunModel(route.id, (row) => {
    if (!row) view.tab?.changed?.();
    context.redraw();
    if (row) context.refreshPending();
  }, context.setLink);
  const tools = {
    ...view, model, context, view, fork: (seq) => forkDialog(model, seq, context),
    go: (tab, ...rest) => context.go(`/runs/${model.id}/${[tab, ...rest].join('/')}`),
    select: (node) => {
      view.selected = view.selected === node.id ? null : node.id;
      context.go(`/runs/${model.id}/${view.route.tab}${view.selected == null ? '' : `/${node.seq}`}`, { replace: true });
    },
  };
  const openTab = () => {
    view.tab?.close?.();
    view.tab = (TABS[view.route.tab] ?? TABS.transcript)[1](tools);
    view.tab.changed?.();
  };
  model.load().then(() => {
    if (model.trouble) return;
    const seq = view.route.rest[0];
    if (seq != null && ['transcript', 'waterfall'].includes(view.route.tab)) view.selected = model.nodeAt(Number(seq))?.id ?? null;
    openTab();
    context.redraw();
  });
  return {
    follows: true,
    title: () => (model.run ? `${model.run.brain} ${model.run.status}` : 'Run'),
    update(to) {
      if (to.name !== 'run' || to.id !== route.id) return false;
      const changed = to.tab !== view.route.tab;
      view.route = to;
      if (model.run && changed) openTab();
      else view.tab?.route?.(to);
      return true;
    },
    keys: () => (model.run ? { ...runKeys(model, view, tools), ...view.tab?.keys?.() } : {}),
    render: () => (model.trouble ? failure(model.trouble, () => model.load()) : !model.run ? loading('Loading the run…') : page(model, view, tools)),
    drawn: () => view.tab?.drawn?.(),
    onhide: () => { model.stop?.(); },
    onchange: () => { if (model.run) model.follow(); },
    tick: () => (model.run?.status === 'running' ? view.tab?.tick?.() : null),
    close() {
      view.tab?.close?.();
      model.close();
    },
  };
}

function runKeys(model, view, tools) {
  const steps = (test, step) => () => {
    const seq = model.nodes[view.selected]?.seq ?? (step > 0 ? -1 : Infinity);
    const list = model.nodes.filter((node) => node && node.status !== 'not_started' && test(node)).sort((a, b) => a.seq - b.seq);
    const next = step > 0 ? list.find((node) => node.seq > seq) ?? list[0] : list.findLast((node) => node.seq < seq) ?? list.at(-1);
    if (!next) return;
    view.selected = null;
    tools.select(next);
    view.tab?.reveal?.(next);
  };
  const has = (type) => (node) => node.kind.type === type;
  return {
    ...Object.fromEntries(Object.entries(TABS).map(([tab, [text]], i) => [String(i + 1), [text, () => tools.go(tab)]])),
    '[': ['Iteration before', steps(has('iteration'), -1)], ']': ['Next iteration', steps(has('iteration'), 1)],
    e: ['Next error', steps((node) => node.status === 'failed' || node.kind.type === 'retry', 1)],
    w: ['Next wait', steps((node) => node.kind.approval || node.kind.waits?.length || node.kind.type === 'budget', 1)],
    p: model.run.forked_from ? ['The run it was forked from', () => tools.context.go(`/runs/${model.run.forked_from.run}`)] : [null, () => {}],
    f: ['Fork here', () => tools.fork(model.nodes[view.selected]?.seq ?? model.head)],
    Escape: [null, () => { if (view.selected != null) tools.select(model.nodes[view.selected]); else tools.context.go('/runs'); }],
  };
}

function page(model, view, tools) {
  const { run } = model;
  return article.run({ 'aria-label': `Run of ${run.brain}` },
    head(model, tools),
    nav.tabs({ 'aria-label': 'Readings of the run' }, Object.entries(TABS).map(([tab, [text]]) => a({ key: tab, href: ui(`/runs/${run.id}/${tab}`), 'aria-current': view.route.tab === tab ? 'page' : null }, text)),
      span.grow(), span.soft.headSeq(model.state === 'ended' || model.state === 'loading' ? null : span.dot({ class: model.state }), `${plural(model.head + 1, 'event')}`)),
    div.tab({ key: view.route.tab }, view.tab?.render()));
}

function sentence(model) {
  const { run } = model;
  const list = counts(model);
  const did = list.length > 1 ? `${list.slice(0, -1).join(', ')} and ${list.at(-1)}` : list[0] ?? 'no model answers';
  const took = duration(millis(run.updated) - millis(run.started));
  if (run.status === 'completed') return `Completed in ${took}, with ${did}.`;
  if (run.status === 'failed') return `Failed after ${took}, with ${did}.`;
  if (run.status === 'cancelled') return `Cancelled after ${took}, with ${did}.`;
  return `${run.status === 'running' ? 'Running' : run.status === 'paused' ? 'Paused' : 'Waiting'}; so far ${did}.`;
}

function head(model, tools) {
  const { run } = model;
  const root = model.nodes[0]?.kind ?? {};
  const cost = costOf(model);
  const { ending } = root;
  const options = root.options && Object.keys(root.options).length ? root.options : null;
  const result = ending?.type === 'completed' ? ending.result : null;
  return header.runHead(
    p.crumb(a({ href: ui('/runs') }, 'Runs'), ' / ', code({ title: run.id }, shortId(run.id)), copyButton(run.id, 'Copy id'), copyButton(() => location.href, 'Copy link')),
    div.title(h1(run.brain), status(run.status), span.grow(), actions(model, tools)),
    p.lead(sentence(model)),
    run.why && !['completed', 'cancelled'].includes(run.status) && p.why({ class: STATUS[run.status]?.[1] }, icon(STATUS[run.status]?.[0] ?? 'clock'), span({ dir: 'auto' }, run.why)),
    run.refused && p.why.wait(icon('warn'), typeof run.refused === 'string' ? run.refused : run.refused.message),
    run.changed && p.why.wait(icon('warn'), run.changed),
    ending?.type === 'failed' && p.why.bad(icon('cross'), span({ dir: 'auto' }, `${ending.code}: ${ending.message}`)),
    (options || result != null) && div.inout(
      options && section({ 'aria-label': 'Options' }, h2('Started with'), readable(options)),
      result != null && section({ 'aria-label': 'Result' }, h2('Result'), readable(result))),
    stages(model, tools),
    facts([
      ['started', time({ datetime: run.started, title: date(run.started) }, date(run.started))], ['user', run.user],
      ['tokens', model.usage && (model.usage.input || model.usage.output) ? `${compact(model.usage.input ?? 0)} in, ${compact(model.usage.output ?? 0)} out${model.usage.cached ? `, ${compact(model.usage.cached)} cached` : ''}` : null],
      ['cost', cost && `${money(String(cost.sum), cost.currency)}${cost.unknown ? `, ${plural(cost.unknown, 'answer')} unpriced` : ''}`],
      ['limit', run.budget?.max_money && `${run.budget.max_money} ${model.currency ?? ''}`], ['token limit', run.budget?.max_tokens && compact(run.budget.max_tokens)],
      ['worker', run.worker?.live && run.worker.owner], ['wakes', run.wake && when(run.wake)],
      ['conversation', run.conversation && a({ href: ui(`/runs?conversation=${encodeURIComponent(run.conversation)}`) }, shortId(run.conversation))],
      ['previous run', run.previous && a({ href: ui(`/runs/${run.previous}`) }, shortId(run.previous))],
      ['forked from', run.forked_from && [a({ href: ui(`/runs/${run.forked_from.run}/transcript/${run.forked_from.seq}`) }, `${shortId(run.forked_from.run)} at event ${run.forked_from.seq}`), ' ', a({ href: ui(`/diff?a=${run.forked_from.run}&b=${run.id}`) }, 'compare')]],
      ['forks', run.forks?.length ? run.forks.map((id) => [a({ key: id, href: ui(`/runs/${id}`) }, shortId(id)), ' ']) : null],
    ]));
}

/** The stages in order, each with its status; a click goes to it. */
function stages(model, tools) {
  const list = model.of(0).filter((node) => node.kind.type === 'stage');
  if (!list.length) return null;
  return ol.stages({ 'aria-label': 'Stages' }, list.map((node) => {
    const [shape, tone, word] = STATUS[node.status] ?? STATUS.not_started;
    const { iteration } = node.kind;
    return li({ key: node.id, class: tone }, button({ disabled: node.status === 'not_started', onclick: () => { tools.view.selected = null; tools.select(node); tools.view.tab?.reveal?.(node); } },
      icon(shape, word), span(node.kind.name), small(iteration == null ? node.started != null && node.ended != null ? micros(node.ended - node.started) : word === 'done' ? '' : word : plural(iteration + 1, 'iteration'))));
  }));
}

function actions(model, tools) {
  const { run } = model;
  const allowed = run.actions ?? {};
  const signal = (type, body) => async () => {
    try {
      await post(`/runs${at(run.id, 'signals')}`, { type, ...body });
    } catch (error) {
      tools.context.say(error.message, true);
      openDialog('The action failed', (close) => [h2('The action failed'), p(error.message), button({ onclick: close }, 'Close')]);
    }
  };
  const list = [['pause', 'Pause', signal('pause')], ['resume', 'Resume', signal('resume')], ['message', 'Send a message…', () => messageDialog(signal)],
    ['fork', 'Fork…', () => tools.fork(model.nodes[tools.view.selected]?.seq ?? model.head)], ['rerun', 'Rerun from a stage…', () => rerunDialog(model, tools.context)], ['cancel', 'Cancel…', () => cancelDialog(signal)]];
  return details.menu({ ref: (node) => { node.onclick = (event) => { if (event.target.closest('button')) node.open = false; }; } }, summary('Actions', icon('chevron')),
    ul(list.map(([name, text, act]) => {
      const no = allowed[name]?.allowed === false ? allowed[name].reason : null;
      return li({ key: name }, button({ disabled: Boolean(no), onclick: act }, text), no && small(no));
    }), li(a({ href: apiUrl(`/runs${at(run.id, 'events')}?limit=500`), target: '_blank' }, 'Events as JSON'))));
}

const messageDialog = (signal) => openDialog('Send a message', (close) => form({ onsubmit: (event) => { event.preventDefault(); signal('message', { text: new FormData(event.target).get('text') })(); close(); } },
  h2('Send a message'), div.field(label({ for: 'message' }, 'Text'), textarea({ id: 'message', name: 'text', rows: 4, required: true })), footer(button.primary('Send'), button.plain({ type: 'button', onclick: close }, 'Close'))));
const cancelDialog = (signal) => openDialog('Cancel the run', (close) => form({ onsubmit: (event) => { event.preventDefault(); signal('cancel', { reason: new FormData(event.target).get('reason') || undefined })(); close(); } },
  h2('Cancel the run?'), p.soft('Every open call gets a cancelled result. This cannot be undone.'), div.field(label({ for: 'reason' }, 'Reason'), input({ id: 'reason', name: 'reason' })), footer(button.danger('Cancel the run'), button.plain({ type: 'button', onclick: close }, 'Close'))));
