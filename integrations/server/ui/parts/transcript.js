// The rows of the transcript: stages, messages, answers and calls in reading order.
import { tags } from '../lib/dom.js';
import { apiUrl, at, later, runUrl } from '../lib/page.js';
import { icon, status, STATUS } from '../lib/icons.js';
import { causeOf, quoted } from '../lib/cause.js';
import { brief, bytes, clock, compact, costText, costTitle, date, decided, limitText, line, micros, millis, moment, number, plural, sentenceCase, shortId, who } from '../lib/format.js';
import attemptList from './attempts.js';
import { batchOf, batches, lastCall } from './batches.js';
import { took, when } from './common.js';
import { isHeld, withDrafts } from './drafts.js';
import { readable } from './json.js';
import { answerOf, attempts, continuedAs, costOf, failureOf, isFailure, isLastAttempt, isNoAnswer, isQuestion, iterationOf, retriesOf, stageName, standingOf, sumsOf } from './model.js';

const { a, b, button, code, details, div, h2, img, li, p, small, span, summary, ul } = tags;

const [valueDiff, decide, batch, markdown] = [later('change'), later('decide'), later('batch'), later('markdown')];
/** A text of a model. Until its Markdown can be drawn, it is shown as it is. */
const said = (value) => (markdown.isLoaded() ? markdown(value) : [prose(value), markdown('')]);

/** Whether a node has a row. Of several attempts the last one has it, which names the others, and of retries for one reason too. */
export function shows(node, model) {
  const { kind, status: state, parent } = node;
  if (kind.type === 'answer') return isLastAttempt(node, model);
  if (kind.type === 'retry') return retriesOf(node, model).next?.kind.message !== kind.message;
  if (kind.type === 'stage') return state !== 'not_started' || parent === 0;
  return !['brain', 'iteration'].includes(kind.type);
}

/** Whether what is below a node is one step deeper. */
export const nests = ({ kind }) => ['stage', 'call'].includes(kind.type);

const siblings = ({ parent }, model) => (model.children.get(parent) ?? []).map((id) => model.nodes[id]);
/** The calls of an answer that ran at the same time, if a call is one of them. */
function together(node, model) {
  if (node.kind.type !== 'call') return [];
  const calls = siblings(node, model).filter(({ kind }) => kind.type === 'call');
  const begins = (call) => call.started ?? call.kind.proposed ?? Infinity;
  const isBeside = (one, other) => begins(one) < (other.ended ?? Infinity) && begins(other) < (one.ended ?? Infinity);
  return calls.length > 1 && calls.every((call) => call === node || isBeside(call, node)) ? calls : [];
}

/** The stage that a node is part of, and the model of a stage's first answer: where it stays the same, it is not said again. */
const stageOf = (node, model) => (!node || node.kind.type === 'stage' ? node : stageOf(model.nodes[node.parent], model));
function modelOf(stage, model) {
  const first = model.children.get(stage?.id)?.find((id) => model.nodes[id].kind.type === 'iteration');
  return first === undefined ? null : siblings({ parent: first }, model).find((node) => node.kind.type === 'answer' && !isQuestion(node))?.kind.model;
}

/** The tokens, the cost and the time of a node. */
function figures(node, model) {
  const { usage } = node.kind;
  const answer = answerOf(node.kind);
  const whole = node.kind.type === 'stage' ? sumsOf(node, model) : null;
  const used = answer?.metadata?.usage ?? usage ?? whole?.usage;
  const spent = (used?.input ?? 0) + (used?.output ?? 0);
  const costs = whole ? whole.costs : [costOf(answer, model)];
  return span.fig(span({ title: spent ? `${number(used.input ?? 0)} tokens in, ${number(used.output ?? 0)} out` : null }, spent ? compact(spent) : ''), span({ title: costTitle(costs) }, costText(costs)),
    span(timeOf(node, model)));
}
function timeOf(node, model) {
  // The others stand for a moment.
  if (!['stage', 'answer', 'call', 'retry', 'pause', 'budget'].includes(node.kind.type)) return '';
  if (isNoAnswer(node, model)) return micros((node.ended ?? model.nodes[node.parent].ended ?? node.started) - attempts(node, model)[0].started);
  // The time of an answer is that of its request, without that of its events.
  const { duration } = answerOf(node.kind) ?? {};
  return duration != null ? micros(duration) : node.ended != null ? took({ ...node, started: node.started == null ? null : beginOf(node, model) }) : ['running', 'waiting'].includes(node.status) && node.started != null ? micros(Date.now() * 1000 - beginOf(node, model)) : '';
}

/** When a node has begun in this run: a fork has the times of its origin up to where it begins. */
function beginOf({ started, ended }, { run: { started: begun } }) {
  const own = millis(begun) * 1000;
  return ended != null && ended <= own ? started : Math.max(started, own);
}

/** Draws one row. `view` has the run, and how its rows fold. */
export function row(node, depth, view) {
  const { model, model: { run, id }, view: { selected }, isFolded } = view;
  const { kind: { type }, path } = node;
  const isSelected = node.id === selected;
  const isAsked = (item) => item.call === path && (item.kind === 'budget') === (type === 'budget') && (node.status === 'waiting' || isHeld(item));
  const asked = ['call', 'budget', 'stage'].includes(type) ? withDrafts(run.pending ?? [], id).filter((item) => !view.toDecide.includes(item)) : [];
  // The approvals of one answer stand below its last call, also a single one: another may follow it.
  const card = type === 'call' ? batches(asked).find(({ key }) => key === batchOf({ run: id, call: path, kind: 'approval' })) : null;
  const pending = asked.filter((item) => isAsked(item) && !card?.list.includes(item));
  const parts = card && lastCall(node, model) === node ? card.list.filter((item) => isHeld(item) || siblings(node, model).some((call) => call.path === item.call && call.status === 'waiting')) : [];
  const beside = together(node, model);
  const place = beside.indexOf(node);
  const part = place < 0 ? '' : place === 0 ? 'parallel first' : place === beside.length - 1 ? 'parallel last' : 'parallel';
  const isBad = isNoAnswer(node, model) || (type === 'stage' && isFailure(node, model));
  const step = iterationOf(node, model);
  return div.row({
    key: node.id, role: 'listitem', class: `${type} ${isSelected ? 'selected' : ''} ${node.status} ${isBad ? 'no-answer' : ''} ${part}`, 'data-seq': node.seq,
    style: depth ? { '--depth': Math.min(depth, 8) } : {},
    // Relative times are drawn again every ten seconds.
    memo: pending.length || parts.length ? null : [node, isSelected, view.toDecide.length > 0, isFolded, part, beside.map((call) => call.status + call.ended).join(), model.nodes[node.parent]?.status, type === 'stage' && run.status, valueDiff.isLoaded(), markdown.isLoaded(), Math.floor(Date.now() / 10000)],
    // What unfolds is selected too, where the pane does not cover it.
    onclick: ({ target }) => {
      const isFold = target.closest('summary');
      if (target.closest('a, button, input, textarea, select, .decide, .batch') || String(getSelection()) !== '' || (isFold && !matchMedia('(min-width: 1100px)').matches)) return;
      if (isFold) view.selectNode(node);
      else view.select(node);
    },
  }, () => {
    const stamp = node.status !== 'not_started' && a.seq({ href: view.url('events', node.seq), title: `Event ${node.seq}`, 'aria-label': `Event ${node.seq}` }, node.seq);
    const words = LINES[type]?.(node.kind, id, node, model);
    const [tone, shape, ...content] = words ?? [];
    return [place === 0 && p.parallelNote(togetherWords(beside)), step != null && span.n({ title: `Iteration ${step}` }, step), stamp, figures(node, model),
      words ? eventLine({ class: tone }, shape && icon(shape), content) : BLOCKS[type]?.(node, view) ?? eventLine({}, type), pending.map((item) => decide(item, { pick: view.picker(item) })), parts.length > 0 && batch({ ...card, list: parts }, { draw: (item) => ({ pick: view.picker(item) }) })];
  });
}

/** What is said of calls that run at the same time. */
function togetherWords(calls) {
  const [done, waiting] = [calls.filter(({ ended }) => ended != null), calls.filter(({ kind }) => kind.state === 'pending')];
  const all = done.length === calls.length && micros(Math.max(...calls.map(({ ended }) => ended)) - Math.min(...calls.map(({ started, kind }) => started ?? kind.proposed)));
  return [`${calls.length} calls in parallel`, all && `${all} together`, !all && done.length > 0 && `${done.length} done`, waiting.length > 0 && `${waiting.length} wait for a person`].filter(Boolean).join(', ');
}

/** After how many milliseconds without a text an answer says why there may be none. */
const SILENT = 5000;
const auto = (tag, value) => tag({ dir: 'auto' }, value);
const prose = (value) => auto(p.prose, value);
const text = (value) => auto(span, value);
/** When a failed attempt is followed by the next one. */
const again = (due) => span.soft(millis(due) > Date.now() ? 'Tries again ' : 'Tried again ', when(due));
const output = ({ output: { kind, fallback }, replaced_by: later }) => ['', 'file', span.tag(kind), text(fallback), later?.length > 0 && span.soft('replaced later')];
const used = ({ kind, used: amount, limit }) => `${limitText(kind, amount)} of ${limitText(kind, limit)} are used`;

/** One line with an icon: its parts are a sentence, which wraps. */
const eventLine = (props, ...parts) => div.eventLine(props, parts.flat(Infinity).map((part) => part != null && part !== false && [part, ' ']));

/** Nodes of one line: its tone, its icon, its words. */
const LINES = {
  retry: ({ attempt, message, due }, _, node, model) => {
    const { length } = retriesOf(node, model).alike;
    return ['bad', 'retry', text(`${length > 1 ? `${length} attempts` : `Attempt ${attempt + 1}`} failed: ${message}`), again(due)];
  },
  file: ({ file }, run) => ['', null, fileChip(file, run)],
  widget: output,
  custom: output,
  limit: (kind) => ['wait', 'warn', `${used(kind)}: the loop ended.`],
  budget: (kind) => ['', 'person', `more ${kind.kind}? ${used(kind)} —`, b(decided(kind) ?? 'waits for a person')],
  compaction: ({ keep, summary: short }) => ['', 'lines', short ? details(summary(`Earlier messages are summarised; the last ${keep} stay`), prose(short))
    : 'All messages are sent in full again'],
  plugin_failure: ({ plugin, message }) => ['bad', 'warn', text(`plugin ${plugin} failed: ${message}`)],
  plugin_update: ({ plugin, update, actor, refused }) => [refused ? 'bad' : '', refused ? 'warn' : 'person', text(`${who(actor)} updated the plugin ${plugin}:`), auto(b, brief(update)), refused && text(refused)],
  guard_replaced: ({ guard }) => ['wait', 'flag', text(`the guard ${guard} replaced it`)],
  stopped: ({ message }) => ['bad', 'warn', text(message)],
  blocked: () => ['wait', 'warn', 'The step asked a model beyond a limit; it reruns after a grant.'],
  trigger: ({ change: { set, deleted } }) => ['', 'clock', set ? [text(`trigger set: ${set.what}`), when(set.due)] : `trigger deleted: ${deleted}`],
  child_run: ({ name, run, title, link }) => ['', 'fork', text(`started ${title} as ${name}`), link && span.tag(link), a({ href: runUrl(run) }, shortId(run))],
  pause: ({ actor, failure, resumed }, _, node) => ['', 'pause', `${failure ? `parked: ${failure.message}` : `paused by ${who(actor)}`}${resumed ? `, resumed by ${who(resumed)} after ${took(node)}` : ''}`],
  migration: ({ version }) => ['', 'fork', `continues with version ${version} of the brain`],
  claim_refused: ({ owner, message }) => ['wait', 'warn', text(`worker ${owner} cannot continue the run: ${message}`)],
};

/** A call's status by its result, or by its state with words for it. */
const RESULT = { success: 'done', error: 'failed' };
const STATE = { pending: ['waiting', 'waits for a person'], waiting: ['waiting', 'waits'], deferred: ['not_started', 'waits for calls before it'], running: ['running', 'running'] };

const BLOCKS = {
  stage(node, view) {
    const { stage, iteration, max_iterations: most, brain, arm, group, waited, stopped, outcome } = node.kind;
    const { isFolded, model } = view;
    const isReached = !['not_started', 'skipped'].includes(node.status);
    // A step has no words of its own for the failure that ends the run.
    const failed = isFailure(node, model) && (outcome?.message ?? node.kind.error ?? (failureOf(model) === node && model.nodes[0].kind.ending?.message));
    const [shape, tone, word] = STATUS[standingOf(node, model)] ?? ['skip', 'quiet', node.status];
    const steps = iteration != null && (standingOf(node, model) === 'waiting' ? `waits in iteration ${iteration + 1}${most ? ` of at most ${most}` : ''}` : `${plural(iteration + 1, 'iteration')}${most && node.status === 'running' ? ` of at most ${most}` : ''}`);
    return [h2.stageHead({ class: isReached ? '' : 'off' },
      !model.children.get(node.id)?.length ? span.twist() : button.twist({ 'aria-expanded': String(!isFolded), 'aria-label': `${isFolded ? 'Show' : 'Hide'} ${stageName(node, model)}`, onclick: () => view.fold(node) }, icon('chevron')),
      span.mark({ class: tone }, icon(shape, word)), span(stageName(node, model)), span.tag(kindOf(stage, arm, brain)), /^#/.test(node.kind.name) && auto(span.args, brief(ownOptions(node, model), 80)), span.meta(
        !isReached ? span(STATUS[node.status][2] === 'skipped' ? 'not reached' : 'not started') : !['done', 'failed', 'waiting', 'running'].includes(node.status) && span(STATUS[node.status]?.[2] ?? node.status),
        [modelOf(node, model), steps].filter(Boolean).length > 0 && span([modelOf(node, model), steps].filter(Boolean).join(' · ')),
        group && span(`${group.done} of ${plural(group.count, stage === 'repeat' ? 'round' : 'brain')}`), group?.failed > 0 && span(`${group.failed} failed`))),
    failed && errorBox(failed, [], view),
    waited && waitLine(waited, node),
    stopped !== undefined && eventLine({}, icon('flag'), 'did not pass: the rest is skipped', stopped !== null && auto(b, brief(stopped)))];
  },
  message: ({ kind: { text: message, files = [], from, actor, opening, message_id: sender } }, view) => [
    div.label(icon(from === 'person' ? 'person' : 'flag')),
    div.bubble({ class: from === 'person' ? from : 'engine' }, from === 'child' ? prose(quoted(message.replace(` (${sender})`, ''))) : prose(message), files.map((file) => fileChip(file, view.model.id))),
    // What the code of a brain makes of its options has no author, and neither has what an unnamed owner of the server starts.
    p.author(from === 'engine' ? 'the engine' : from === 'child' ? ['the run in the background ', sender && a({ href: runUrl(sender) }, shortId(sender))] : opening ? `${actor?.by && actor.by !== 'local' ? `${actor.by}, ` : ''}the message that the loop begins with` : who(actor))],
  answer(node, view) {
    const { kind } = node;
    const { outcome, stream, question, model } = kind;
    const answer = answerOf(kind);
    const before = attempts(node, view.model).slice(0, -1);
    if (isNoAnswer(node, view.model)) return noAnswer(node, view);
    const ends = { refused: () => p.problem(icon('warn'), outcome.guard ? `refused by the guard ${outcome.guard}: ` : 'not a valid action: ', outcome.message),
      failed: () => p.problem(icon('retry'), outcome.error.message, ' ', again(outcome.due)),
      abandoned: () => p.soft('No answer: the request was sent again after a crash, or its loop ended.') };
    const parts = answer?.parts?.map((part) => PARTS[part.type]?.(part, view.model.id)) ?? [];
    const calls = answer?.parts?.filter(({ type }) => type === 'call').length;
    const isSilent = outcome?.type === 'answered' && !answer.parts.some((part) => !['call', 'opaque'].includes(part.type) && (part.text ?? 'x').trim());
    return [
      div.label(icon('model'), isSilent ? span(`No text, ${plural(calls, 'call')}`) : question && span(asker(node, view.model)), (question || modelOf(stageOf(node, view.model), view.model) !== model) && span.meta(model), !outcome && status('running', 'answers…')),
      before.length > 0 && details(summary(`${plural(before.length + 1, 'attempt')}: `, quoted(before.at(-1).kind.outcome?.error?.message ?? before.at(-1).kind.outcome?.message ?? 'no answer')), attemptList([...before, node])),
      question && details(summary(line(question.text, 120)), question.system && prose(question.system), prose(question.text)),
      question && answer?.parts && verdict(answer.parts),
      !outcome && !stream?.parts.length && Date.now() - millis(node.started) > SILENT && p.soft('No text yet. From a worker in another process, the answer comes whole.'),
      stream?.parts.map((part) => div.streaming(STREAMED[part.kind]?.(part), text(part.text))),
      stream?.gap && p.soft('Some streamed text is missing; the whole answer follows.'),
      ends[outcome?.type]?.(), !question && parts,
    ];
  },
  call(node, view) {
    const { tool, arguments: given, result, approval, waits = [], state, progress, brain, exited, flags, repair } = node.kind;
    const made = approval?.outcome;
    const edited = made?.decision === 'approved' && made.arguments !== undefined;
    const isBeside = state === 'pending' && !result && approval && !made && view.toDecide.length > 0;
    const [name, word] = result ? [RESULT[result.type] ?? result.type] : STATE[state] ?? ['not_started', 'queued'];
    return [
      div.callHead(span.callIcon({ class: brain && 'brain' }, icon(brain ? 'brain' : 'tool')), b.mono(tool), brain && span.tag(`brain ${brain.title}`),
        flags?.destructive && span.tag.warn('destructive'), exited && span.tag('ends the loop'), repair && span.tag('repaired'), auto(span.args, brief(edited ? made.arguments : given)),
        name !== 'done' && !isBeside && status(name, word)),
      isBeside && eventLine({ class: 'wait' }, icon('clock'), text(`needs an approval: ${approval.reason}`)),
      made && eventLine({}, icon('person'), text(approval.reason), ' — ', b(decided(approval)), when(made.at)),
      edited && div.edits(valueDiff(given, made.arguments)),
      waits.map((wait) => waitLine(wait, node)),
      progress && !result && auto(p.soft, progress),
      result?.type === 'success' ? outputOf(result.output) : result && result.type !== 'denied' && p.problem(auto(span, quoted(result.message ?? result.reason))),
    ];
  },
};

/** The answer to a question: fields in one line, or a text. */
function verdict(parts) {
  return parts.filter(({ type }) => type === 'text').map(({ text: words }, i) => {
    const fields = structured(words, (value, short = brief(value, 300)) => (isCut(value, short) ? div.result(details(auto(summary, short), readable(value))) : auto(p.result, short)));
    return fields ? div({ key: i }, fields) : div({ key: i }, said(words));
  });
}

/** Who asks a question: in a loop it is no part of its own iterations. */
const asker = (node, model) => (node.path.includes('~') || stageOf(node, model)?.kind.stage === 'loop' ? 'A guard or a plugin asks' : 'The step asks');

/** An iteration without an answer: the cause, each attempt once, and how to go on. */
function noAnswer(node, view) {
  const list = attempts(node, view.model);
  const said = list.findLast(({ kind }) => kind.outcome?.error ?? kind.outcome?.message)?.kind.outcome;
  const whole = said?.error?.message ?? said?.message ?? view.model.nodes[0]?.kind.ending?.message ?? 'the model gave no answer';
  const { brief: cause } = causeOf(whole);
  return [div.label.bad(icon('cross'), b('No answer: ', quoted(cause))), errorBox(whole, list, view)];
}

/** The text of a failure where it happened. The ways on stand at the failure of the run only. */
function errorBox(message, list, { model, retry, dialog, selectNode }) {
  const seq = list.at(-1)?.seq;
  const { text: whole, brief: cause } = causeOf(message);
  // The cause stands above it already; what is left is the advice.
  const rest = list.length && whole.startsWith(cause) ? whole.slice(cause.length).replace(/^[;,.]\s*/, '').replace(/^ ?\((https?:[^)]*)\)/, 'asked at $1') : whole;
  return div.errorBox(rest && p({ dir: 'auto' }, quoted(sentenceCase(rest))), list.length > 1 && attemptList(list),
    model.run.status === 'failed' && div.buttons(retry && button({ class: continuedAs(model.run) ? '' : 'primary', onclick: retry }, icon('retry'), 'Retry'), seq != null && button({ onclick: () => dialog('fork', seq - 1) }, icon('fork'), 'Fork with another model'),
      seq != null && button({ onclick: () => selectNode(list.at(-1)) }, icon('lines'), 'Show the request')));
}

/** What a call or a stage waits for, and how that ended. */
function waitLine({ since, waits: any, resumed, due }, { status: now }) {
  const ends = due ?? any[0]?.expires;
  const isOver = now === 'interrupted';
  const what = any.length ? ` for ${any.map(awaited).join(' or ')}` : '';
  return eventLine({}, icon(any.some((wait) => wait.person) ? 'person' : any.length ? 'hook' : 'clock'),
    text(`${resumed ? `waited ${micros(resumed.at - since)}` : isOver ? 'waited' : 'waits'}${what}`),
    resumed ? any.length > 0 && ['—', auto(b, resumed.cause === 'expired' ? 'expired' : brief(resumed.payload)),
      resumed.received && span.tag.warn({ title: date(resumed.received) }, 'older than its question')]
      : isOver ? `from ${moment(since)} on, until it was interrupted` : [`since ${moment(since)}`, ends && [any.length ? 'expires' : 'until', when(ends)]]);
}

/** The options of a member of a group, without those that the others have, too. */
function ownOptions(node, model) {
  const own = node.kind.brain?.options;
  if (own === null || typeof own !== 'object' || Array.isArray(own)) return own ?? '';
  const other = siblings(node, model).find(({ id }) => id !== node.id)?.kind.brain?.options;
  const isOwn = ([name, value]) => value !== null && JSON.stringify(value) !== JSON.stringify(other?.[name]);
  return Object.fromEntries(Object.entries(own).filter(isOwn));
}

/** The kind of a stage in words, with what it runs. */
const kindOf = (stage, arm, brain) => (stage === 'brain' ? `brain ${brain?.title ?? ''}` : arm ? `${stage} → ${arm}` : stage.replace('_', ' a '));

const awaited = (wait) => (wait.person ? wait.prompt ?? 'a person' : `${wait.webhook} ${wait.identifier}`);
const STREAMED = { reasoning: () => span.soft('thinks: '), arguments: ({ tool }) => code(tool ?? 'call', ' ') };

/** The parts of an answer. Its calls are nodes of their own. */
const PARTS = {
  text: ({ text: words }) => words.trim() && (structured(words) ?? said(words)),
  refusal: ({ text: said }) => div(span.tag.warn('refusal'), prose(said)),
  reasoning: ({ text: words }) => {
    const first = line(words, 100);
    // What stands in its line does not unfold.
    return words && (first === words.trim() ? p.reasoning({ dir: 'auto' }, 'Reasoning: ', quoted(first)) : details.reasoning(summary('Reasoning', span.first(': ', quoted(first))), prose(words)));
  },
  citations: ({ citations }) => ul.sources({ 'aria-label': 'Sources' }, citations.map(({ title, url }) => li(title ?? url, url && title && small(` ${url}`)))),
  provider_tool: ({ tool, input, error }) => eventLine({}, icon('tool'), code(tool), text(line(input)), error && span.bad(error)),
  file: ({ file }, run) => fileChip(file, run),
};

/** Whether a value in one line has lost something. */
const isCut = (value, short) => short.split('…').length > JSON.stringify(value).split('…').length;

/** A structured answer is read as its fields. */
function structured(said, draw = readable) {
  try {
    return /^\s*[{[]/.test(said) ? draw(JSON.parse(said)) : null;
  } catch {
    return null;
  }
}

function outputOf(value) {
  if (value == null) return null;
  // Something that has nothing in it is an answer, too.
  if (value === '' || (typeof value === 'object' && !Object.keys(value).length)) return div.result(p.quiet(value === '' ? 'empty text' : Array.isArray(value) ? 'empty list' : 'no fields'));
  const isText = typeof value === 'string';
  const whole = isText ? value : brief(value, 400);
  // What is cut unfolds, and has the mark of it.
  const isLong = isText ? value.length > 400 : JSON.stringify(value).length > 300 || isCut(value, whole);
  return div.result(isLong ? details(auto(summary, brief(value)), readable(value)) : prose(whole));
}

function fileChip({ uri, sha256, name, media_type: type, size }, run) {
  const href = uri?.startsWith('blob:') && apiUrl(at('runs', run, 'files', sha256));
  return span.file({ key: sha256 ?? uri }, href && /^image\/(png|jpeg|gif|webp)$/.test(type) ? img({ src: href, alt: name, loading: 'lazy' }) : icon('file'),
    href ? a({ href, download: name }, name) : span(name || uri), small(`${type} ${bytes(size)}`));
}
