// The head of a run: its name, how it stands with the cause first, one main action, its figures, and its tabs with its stages.
import { tags } from '../lib/dom.js';
import { post } from '../lib/api.js';
import { ends, openDialog } from '../lib/keys.js';
import { apiUrl, at, go, may, query, runUrl, say, TABS, ui } from '../lib/page.js';
import { icon, status, STATUS } from '../lib/icons.js';
import { causeOf, endOf, placeWords, plain, quoted, standing } from '../lib/cause.js';
import { brief, compact, costText, date, duration, limitText, line, millis, moment, money, number, plural, runCost, runCostTitle, sentenceCase, shortId, who } from '../lib/format.js';
import { copyButton, facts, when } from './common.js';
import { isForPerson } from './drafts.js';
import { addUp, continuedAs, costsOf, failureOf, placeOf, standingOf } from './model.js';
import { noModel } from './next_model.js';

const { a, button, code, details, div, h1, h2, kbd, li, nav, ol, p, small, span, summary, time, ul } = tags;

/** What the run did, counted. */
function sentence({ counts, answers }) {
  const list = [[answers, 'model answer'], [counts.call, 'call'], [counts.person, 'decision by a person', 'decisions by people'],
    [counts.file, 'file'], [counts.retry, 'retry', 'retries']].filter(([count]) => count).map((count) => plural(...count));
  return new Intl.ListFormat('en-GB').format(list) || 'no model answers';
}

/** Whether a path is that of a frame or of something in it. The run's own brain has the empty path. */
const isWithin = (path, frame) => frame === '' || path === frame || path.startsWith(`${frame}/`);

/** What has become of a run that is completed: its result in a line, or that it has none, and whether a limit has cut off a loop. */
function outcome(view) {
  const { model } = view;
  const { run, nodes } = model;
  const result = plain(run.result_text);
  const said = result ? line(result, 300) : run.result == null ? `No result, ${sentence(model)}` : brief(run.result, 300);
  const cut = run.cut_off;
  if (cut == null) return span.lead({ dir: 'auto', title: result }, run.why ? quoted(endOf({ ...run, result: said })) : said);
  const limit = nodes.findLast((node) => node?.kind.type === 'limit' && isWithin(node.path, cut));
  const loop = nodes.find((node) => node?.kind.type === 'stage' && node.path === cut);
  const place = loop ? placeOf(loop, model) : placeWords(cut);
  return span.lead({ dir: 'auto', title: result }, `Cut off at its limit${limit ? ` of ${limitText(limit.kind.kind, limit.kind.limit)}` : ''} `,
    limit ? a({ href: view.url('transcript', limit.seq) }, place) : place, result && [' ', span.quiet(`The result is what there was: ${said}`)]);
}

/** Why no worker continues a run whose last one has left no words for it. */
const STUCK = { no_brain: 'No worker knows its brain', changed: 'The code of its brain has changed', prices: 'A price is missing for one of its limits', no_model: 'No worker has a model for it' };
/** What lets a worker continue it. */
const HELPS = { no_brain: 'Start a worker whose program has the brain.', changed: 'Start a worker with the code of its start, or fork it.', prices: 'Start a worker whose price table has it.', no_model: 'Start a worker with the key of its provider: it continues by itself.' };
/** How the run stands, in one line. */
function stands(view) {
  const { model } = view;
  const { run, nodes } = model;
  const { ending } = nodes[0]?.kind ?? {};
  if (ending?.type === 'cancelled') return span.lead({ dir: 'auto' }, `Cancelled by ${who(ending.actor)}${ending.reason ? `: ${ending.reason}` : '.'}`);
  const why = run.refused?.message ?? (ending?.type === 'failed' ? ending.message : run.why) ?? STUCK[run.refused];
  if (run.status === 'completed') return outcome(view);
  if (!why && run.missing_model) return span.lead({ dir: 'auto' }, 'No worker of this server has a model for it: ', quoted(run.missing_model), ' ', span.quiet(HELPS.no_model));
  if (!why && ['stuck', 'queued'].includes(standing(run))) return span.lead(`No worker has claimed it yet. So far ${sentence(model)}.`);
  if (!why) return span.lead(`${{ failed: 'Failed after', cancelled: 'Cancelled after' }[run.status] ?? 'So far'} ${sentence(model)}.`);
  const { text, brief: cause, place } = causeOf(why);
  const node = view.place();
  // The path of the node says the iteration, which the cause may not. What waits for several things is at several places.
  return span.lead({ dir: 'auto', title: text }, quoted(cause), ' ', node && (place || run.status === 'failed') ? a({ href: view.url('transcript', node.seq) }, placeOf(node, model)) : place && span.quiet(place), standing(run) === 'stuck' && HELPS[run.refused] && [' ', span.quiet(HELPS[run.refused])]);
}

/** Says that a failed run was continued well, so that nobody does it again. */
function retried(run) {
  const done = continuedAs(run);
  return done && span.retried({ role: 'status' }, icon('check'), ' Continued as ', a({ href: runUrl(done.id) }, shortId(done.id)), ', completed');
}

/** What the run has cost, as the list says it, and what the answers without a price then are worth today. */
function costFact(model) {
  const { cost } = model.run;
  const own = cost.partial ? costsOf(model) : [];
  const today = own.some((one) => one?.isEstimate) && costText(addUp(own));
  return span({ title: runCostTitle(cost) }, runCost(cost), today && span.quiet(` when it ran, ${today} by the prices of today`));
}

/** Draws the head of a run. */
export function runHead(view) {
  const { model } = view;
  const { run, currency } = model;
  const { budget, forked_from: parent, usage, worker } = run;
  const shared = parent && costText(addUp(costsOf(model, true)));
  const link = (id) => id && a({ key: id, href: runUrl(id) }, shortId(id), ' ');
  const amount = (given) => money(String(given), currency);
  const ended = ['completed', 'failed', 'cancelled'].includes(run.status);
  const waits = run.status === 'waiting';
  const last = ended ? millis(run.updated) : run.status === 'running' ? Date.now() : millis(run.since);
  // What is neither active nor still waits: times without a worker are among it.
  const rest = run.status !== 'running' && run.active_ms > 0 ? last - millis(run.started) - run.active_ms : 0;
  const [waited, active] = rest >= 1000 ? [rest, run.active_ms] : [0, last - millis(run.started)];
  const [does, refusal] = [RETRIES[stateOf(run)], refusalOf(run)];
  return [div.runHead(
    div.title(a.wide({ href: ui('/runs') }, 'Runs'), span.wide.quiet('/'), h1(run.brain), code.quiet({ title: run.id }, shortId(run.id)), status(standing(run), waits && run.pending.some(isForPerson) ? 'Waits for you' : null), stands(view), retried(run), span.grow(), actions(view)),
    div.line(facts({
      started: time({ datetime: run.started, title: date(run.started) }, moment(run.started)), [ended && !waited ? 'took' : ['stuck', 'queued'].includes(standing(run)) ? 'open for' : 'active']: duration(active), [waits ? 'waited before' : 'waited']: waited && duration(waited), waits: waits && duration(Date.now() - millis(run.since)),
      tokens: (usage?.input || usage?.output) && span({ title: `${number(usage.input ?? 0)} in, ${number(usage.output ?? 0)} out${usage.cached ? `, ${number(usage.cached)} cached` : ''}` }, compact((usage.input ?? 0) + (usage.output ?? 0))),
      cost: run.cost && costFact(model),
      'shared, not paid again': shared && span({ title: 'What the answers have cost that the fork shares: it counts in the sums of the run that asked for them' }, shared),
      did: ended && run.status !== 'failed' && (run.result_text || run.result != null) && sentence(model), user: run.user, limit: budget?.max_money && amount(budget.max_money), 'token limit': budget?.max_tokens && compact(budget.max_tokens),
      worker: !ended && worker?.live && span({ title: `epoch ${worker.epoch}` }, worker.owner), [run.pending.some(({ expires }) => expires && millis(expires) === millis(run.wake)) ? 'expires' : 'wakes']: run.wake && when(run.wake),
      conversation: run.conversation && a({ href: ui(`/runs${query({ conversation: run.conversation })}`) }, shortId(run.conversation)), 'previous run': link(run.previous), 'started by': link(run.parent),
      'forked from': parent && [a({ href: runUrl(parent.run, 'transcript', parent.seq) }, `${shortId(parent.run)} after event ${parent.seq}`), ' ', a({ href: ui(`/diff${query({ a: parent.run, b: run.id })}`) }, 'compare')],
      forks: run.forks?.length > 0 && run.forks.map(({ id, status: now }) => span({ key: id }, link(id), span.quiet(STATUS[now]?.[2] ?? now), ' ')),
    }), retriable(run) && (refusal ? span.quiet({ dir: 'auto' }, 'No retry: ', quoted(refusal)) : lacksModel(run) ? span.wait({ dir: 'auto' }, icon('warn'), ' No worker has a model for a retry: ', quoted(run.missing_model), '.') : may('operate') && !continuedAs(run) && span.wide.quiet(`${does} What has a result is not repeated.`)), run.changed && span.wait(icon('warn'), ' ', quoted(run.changed)))),
  nav.tabs({ 'aria-label': 'Views of the run' }, Object.entries(TABS).map(([name, text]) => a({ key: name, href: view.url(name, view.kept(name)), 'aria-current': view.view.route.tab === name && 'page' }, text,
    name === 'events' && span.count.headSeq({ 'aria-label': plural(model.head + 1, 'event') }, number(model.head + 1)))),
  span.grow(), stages(view))];
}

/** The stages in order, each with its status; a click goes to it. */
const stages = ({ model, reveal }) => ol.stages({ 'aria-label': 'Stages' }, model.stages().map((node) => {
  const { name, iteration } = node.kind;
  const [shape, tone, word] = STATUS[standingOf(node, model)];
  return li({ key: node.id, class: tone }, button({ disabled: node.status === 'not_started', onclick: () => reveal(node) }, icon(shape, word), span(name),
    iteration != null && small(plural(iteration + 1, 'iteration'))));
}));

/** Says why an action was refused. */
function refused({ message }) {
  say(message, true);
  openDialog('The action failed', (close) => [h2('The action failed'), p(message), button({ onclick: close }, 'Close')]);
}

/** What a retry does, by the state of a run. */
const RETRIES = { failed: 'Retry starts a new run at the place of the failure.', parked: 'Retry continues the run from where it was parked.' };
const stateOf = ({ parked, status: now }) => (parked ? 'parked' : now);
const retriable = (run) => Boolean(RETRIES[stateOf(run)]);
const lacksModel = (run) => retriable(run) && run.missing_model;
/** Why the run cannot be retried, without its failure, which stands above. */
const refusalOf = ({ why, actions }) => actions?.retry?.allowed === false && actions.retry.reason?.replace(`${why}; `, '');
/** Returns how to retry a run, if it can be. What would wait for a model is asked about first. */
export function retryOf(view, isAsked) {
  const { model, view: shared } = view;
  const { run } = model;
  if (!retriable(run) || refusalOf(run) || !may('operate')) return null;
  return async ({ detail } = {}) => {
    if (shared.retrying || detail > 1) return null;
    if (lacksModel(run) && !isAsked) return askRetry(view);
    shared.retrying = true;
    const answer = await post(`${model.path}/retry`).catch(refused);
    shared.retrying = false;
    if (answer?.forked) go(at('runs', answer.run));
    else model.refresh();
    return null;
  };
}
/** Says what a retry does before it does it, since a key is pressed by mistake. */
export function askRetry(view) {
  const { run } = view.model;
  openDialog('Retry', (close) => [h2('Retry'), p(`${RETRIES[stateOf(run)]} What has a result is not repeated.`), noModel({ missing: lacksModel(run) }, null, run.parked ? 'It' : 'The new run'),
    ends(close, button.primary({ onclick: () => { close(); retryOf(view, true)?.(); } }, icon('retry'), lacksModel(run) ? 'Retry, and wait for a model' : 'Retry'))]);
}
/** A retry, named by the iteration that it repeats. */
function retryWords({ model }) {
  const { number: n } = model.nodes[model.run.status === 'failed' ? failureOf(model)?.parent : -1]?.kind ?? {};
  return n === undefined ? 'Retry' : `Retry iteration ${n + 1}`;
}

/** One main action, the fork, and the others in a menu. */
function actions(view) {
  const { model, dialog } = view;
  const { run } = model;
  const [retry, asked] = [retryOf(view), view.asked()];
  const signal = (type) => post(`${model.path}/signals`, { type }).catch(refused);
  const list = {
    pause: ['Pause', () => signal('pause')], resume: ['Resume', () => signal('resume')],
    message: ['Send a message…', () => dialog('message')], fork: ['Fork…', () => dialog('fork')],
    rerun: ['Rerun from a stage…', () => dialog('rerun')], cancel: ['Cancel…', () => dialog('cancel')],
  };
  const onclick = ({ target, currentTarget }) => { if (target.closest('button')) currentTarget.open = false; };
  const isOffered = ([name]) => run.actions?.[name]?.allowed !== false;
  const refusals = Map.groupBy(Object.entries(list).filter((one) => !isOffered(one)), ([name]) => run.actions[name].reason);
  const mayFork = run.actions?.fork?.allowed !== false;
  return div.actions(mayFork && button.wide({ onclick: () => dialog('fork') }, icon('fork'), 'Fork'), details.menu({ onclick }, summary({ title: 'Actions' }, icon('dots'), span.unseen('Actions')), ul(Object.entries(list).filter(isOffered).map(([name, [text, act]]) => li({ key: name }, button({ onclick: act }, text))),
    li(copyButton(run.id, 'Copy id')), li(copyButton(() => location.href, 'Copy link')), li(a({ href: apiUrl(`${model.path}/events?limit=500`), target: '_blank' }, 'Events as JSON')),
    [...refusals].map(([reason, names]) => names.map(([name, [text]], i) => li({ key: name }, button({ disabled: true, title: reason }, text), i === names.length - 1 && small(sentenceCase(reason))))))),
  retry ? button({ class: continuedAs(run) ? '' : 'primary', 'aria-disabled': view.view.retrying ? 'true' : null, title: 'r says first what a retry does', onclick: retry }, icon('retry'), retryWords(view), kbd.wide('R'))
    : run.status === 'paused' && may('operate') && isOffered(['resume']) ? button.primary({ key: 'resume', onclick: list.resume[1] }, icon('run'), 'Resume')
    : asked && run.pending.some(isForPerson) && button.primary({ onclick: view.decide }, run.pending.length > 1 ? `Decide ${run.pending.length}` : 'Decide', kbd('D')));
}
