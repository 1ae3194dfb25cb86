// The rows of the transcript: stages, messages, answers and calls in reading order.
import { tags } from '../lib/dom.js';
import { apiUrl, at, later } from '../lib/page.js';
import { icon, status } from '../lib/icons.js';
import { brief, bytes, date, decided, limitText, line, micros, plural, tokens, who } from '../lib/format.js';
import { took, when } from './common.js';
import { isHeld, withDrafts } from './drafts.js';
import { readable } from './json.js';
import { answerOf } from './model.js';

const { a, b, button, code, details, div, h3, img, li, p, small, span, summary, ul } = tags;

const [valueDiff, decide] = [later('change'), later('decide')];

/** Whether a node has a row. An answer with nothing to read but its calls has none: the calls follow. */
export function shows({ kind, status: state, parent }) {
  if (kind.type === 'answer') return ['running', 'failed'].includes(state) || Boolean(kind.question) || tells(kind.outcome);
  if (kind.type === 'stage') return state !== 'not_started' || parent === 0;
  return !['brain', 'iteration'].includes(kind.type);
}
const tells = (outcome) => outcome?.type !== 'answered'
  || outcome.parts.some((part) => !['call', 'opaque'].includes(part.type) && (part.text ?? 'x').trim());

/** Whether what is below a node is one step deeper. */
export const nests = ({ kind }) => ['stage', 'call'].includes(kind.type);

/** Draws one row. `view` has the run, and how its rows fold. */
export function row(node, depth, view) {
  const { model: { run, id }, view: { selected }, isFolded } = view;
  const { kind: { type }, path } = node;
  const isSelected = node.id === selected;
  const isAsked = (item) => item.call === path && (item.kind === 'budget') === (type === 'budget') && (node.status === 'waiting' || isHeld(item));
  const pending = ['call', 'budget'].includes(type) ? withDrafts(run.pending ?? [], id).filter(isAsked) : [];
  return div.row({
    key: node.id, role: 'listitem', class: `${type} ${isSelected ? 'selected' : ''} ${node.status}`, 'data-seq': node.seq,
    style: depth ? { '--depth': Math.min(depth, 8) } : {},
    // Relative times are drawn again every ten seconds.
    memo: pending.length ? null : [node, isSelected, isFolded, valueDiff.isLoaded(), Math.floor(Date.now() / 10000)],
    onclick: ({ target }) => !target.closest('a, button, input, textarea, select, summary, .decide') && String(getSelection()) === '' && view.select(node),
  }, () => {
    const stamp = node.status !== 'not_started' && a.seq({ href: view.url('events', node.seq), title: `Event ${node.seq}`, 'aria-label': `Event ${node.seq}` }, node.seq);
    const words = LINES[type]?.(node.kind, id, node);
    const [tone, shape, ...content] = words ?? [];
    return [words ? div.eventLine({ class: tone }, icon(shape), content, stamp) : BLOCKS[type]?.(node, view, stamp) ?? div.eventLine(type, stamp),
      pending.map((item) => decide(item))];
  });
}

const auto = (tag, value) => tag({ dir: 'auto' }, value);
const prose = (value) => auto(p.prose, value);
const text = (value) => auto(span, value);
const output = ({ output: { kind, fallback }, replaced_by: later }) => ['', 'file', span.tag(kind), text(fallback), later?.length > 0 && span.soft('replaced later')];
const used = ({ kind, used: amount, limit }) => `${limitText(kind, amount)} of ${limitText(kind, limit)} are used`;

/** Nodes of one line: its tone, its icon, its words. */
const LINES = {
  retry: ({ attempt, message, due }) => ['bad', 'retry', text(`attempt ${attempt + 1} failed: ${message}`), span.soft('again ', when(due))],
  file: ({ file }, run) => ['', 'file', fileChip(file, run)],
  widget: output,
  custom: output,
  limit: (kind) => ['wait', 'warn', `${used(kind)}: the loop ended.`],
  budget: (kind) => ['', 'person', `more ${kind.kind}? ${used(kind)} —`, b(decided(kind) ?? 'waits for a person')],
  compaction: ({ keep, summary: short }) => ['', 'file', short ? details(summary(`Earlier messages are summarised; the last ${keep} stay`), prose(short))
    : 'All messages are sent in full again'],
  plugin_failure: ({ plugin, message }) => ['bad', 'warn', text(`plugin ${plugin} failed: ${message}`)],
  guard_replaced: ({ guard }) => ['wait', 'flag', text(`the guard ${guard} replaced it`)],
  stopped: ({ message }) => ['bad', 'warn', text(message)],
  blocked: () => ['wait', 'warn', 'The step asked a model beyond a limit; it reruns after a grant.'],
  trigger: ({ change: { set, deleted } }) => ['', 'clock', set ? [text(`trigger set: ${set.what}`), when(set.due)] : `trigger deleted: ${deleted}`],
  pause: ({ actor, failure, resumed }, _, node) => ['', 'pause', `${failure ? `parked: ${failure.message}` : `paused by ${who(actor)}`}${resumed ? `, resumed by ${who(resumed)} after ${took(node)}` : ''}`],
  migration: ({ version }) => ['', 'fork', `continues with version ${version} of the brain`],
  claim_refused: ({ owner, message }) => ['wait', 'warn', text(`worker ${owner} cannot continue the run: ${message}`)],
};

/** A call's status by its result, or by its state with words for it. */
const RESULT = { success: 'done', error: 'failed' };
const STATE = { pending: ['waiting', 'waits for a person'], waiting: ['waiting', 'waits'], deferred: ['not_started', 'waits for calls before it'], running: ['running', 'running'] };

const BLOCKS = {
  stage(node, view, stamp) {
    const { name, stage, iteration, max_iterations: most, brain, usage, arm, group, waited, stopped } = node.kind;
    const { isFolded } = view;
    return [h3.stageHead(
      button.twist({ 'aria-expanded': String(!isFolded), 'aria-label': `${isFolded ? 'Show' : 'Hide'} ${name}`, onclick: () => view.fold(node) }, icon('chevron')),
      span(name), span.tag(kindOf(stage, arm, brain)), span.meta(node.status !== 'done' && status(node.status),
        iteration != null && span(plural(iteration + 1, 'iteration'), most && node.status === 'running' && ` of at most ${most}`),
        group && span(`${group.done} of ${plural(group.count, stage === 'repeat' ? 'round' : 'brain')}`), group?.failed > 0 && span(`${group.failed} failed`),
        span(tokens(usage)), span(took(node))), stamp),
      waited && waitLine(waited),
      stopped !== undefined && div.eventLine(icon('flag'), 'did not pass: the rest is skipped', stopped !== null && auto(b, brief(stopped)))];
  },
  message: ({ kind: { text: said, files = [], from, actor } }, view, stamp) => [
    div.label(from === 'engine' ? [icon('flag'), 'the engine'] : [icon('person'), who(actor)], stamp),
    div.bubble({ class: from }, prose(said), files.map((file) => fileChip(file, view.model.id)))],
  answer({ kind }, view, stamp) {
    const { outcome, stream, question, model, attempt } = kind;
    const answer = answerOf(kind);
    const meta = [model, attempt > 0 && `attempt ${attempt + 1}`, tokens(answer?.metadata?.usage), answer?.duration != null && micros(answer.duration)];
    const ends = { refused: () => p.problem(icon('warn'), outcome.guard ? `refused by the guard ${outcome.guard}: ` : 'not a valid action: ', outcome.message),
      failed: () => p.problem(icon('retry'), outcome.error.message, ' Asked again ', when(outcome.due), '.'),
      abandoned: () => p.soft('Abandoned: the request was sent again after a crash, or its loop ended.') };
    return [
      div.label(icon('model'), question ? 'question to the model' : 'the model', span.meta(meta.map((item) => item && span(item))), !outcome && status('running', 'answers…'), stamp),
      question && details(summary(line(question.text, 120)), question.system && prose(question.system), prose(question.text)),
      stream?.parts.map((part) => div.streaming(STREAMED[part.kind]?.(part), text(part.text))),
      stream?.gap && p.soft('Some streamed text is missing; the whole answer follows.'),
      ends[outcome?.type]?.(), answer?.parts?.map((part) => PARTS[part.type]?.(part, view.model.id)),
    ];
  },
  call(node, _, stamp) {
    const { tool, arguments: given, result, approval, waits = [], state, progress, brain, exited, flags, repair } = node.kind;
    const made = approval?.outcome;
    const edited = made?.decision === 'approved' && made.arguments !== undefined;
    const [name, word] = result ? [RESULT[result.type] ?? result.type] : STATE[state] ?? ['not_started', 'queued'];
    return [
      div.callHead(span.callIcon({ class: brain && 'brain' }, icon(brain ? 'brain' : 'tool')), b.mono(tool), brain && span.tag(`brain ${brain.title}`),
        flags?.destructive && span.tag.warn('destructive'), exited && span.tag('ends the loop'), repair && span.tag('repaired'), auto(span.args, brief(edited ? made.arguments : given)), span.grow(),
        name !== 'done' && status(name, word), span.meta(took(node)), stamp),
      made && div.eventLine(icon('person'), text(approval.reason), ' — ', b(decided(approval)), when(made.at)),
      edited && div.edits(valueDiff(given, made.arguments)),
      waits.map(waitLine),
      progress && !result && auto(p.soft, progress),
      result?.type === 'success' ? outputOf(result.output) : result && result.type !== 'denied' && auto(p.problem, result.message ?? result.reason),
    ];
  },
};

/** What a call or a stage waits for, and how that ended. */
function waitLine({ since, waits: any, resumed, due }) {
  const ends = due ?? any[0]?.expires;
  const what = any.length ? ` for ${any.map(awaited).join(' or ')}` : '';
  return div.eventLine(icon(any.some((wait) => wait.person) ? 'person' : any.length ? 'hook' : 'clock'),
    text(`${resumed ? `waited ${micros(resumed.at - since)}` : 'waits'}${what}`),
    resumed ? any.length > 0 && ['—', auto(b, resumed.cause === 'expired' ? 'expired' : brief(resumed.payload)),
      resumed.received && span.tag.warn({ title: date(resumed.received) }, 'older than its question')]
      : ['since', when(since), ends && [any.length ? 'expires' : 'until', when(ends)]]);
}

/** The kind of a stage in words, with what it runs. */
const kindOf = (stage, arm, brain) => (stage === 'brain' ? `brain ${brain?.title ?? ''}` : arm ? `${stage} → ${arm}` : stage.replace('_', ' a '));

const awaited = (wait) => (wait.person ? wait.prompt ?? 'a person' : `${wait.webhook} ${wait.identifier}`);
const STREAMED = { reasoning: () => span.soft('thinks: '), arguments: ({ tool }) => code(tool ?? 'call', ' ') };

/** The parts of an answer. Its calls are nodes of their own. */
const PARTS = {
  text: ({ text: said }) => said.trim() && (structured(said) ?? prose(said)),
  refusal: ({ text: said }) => div(span.tag.warn('refusal'), prose(said)),
  reasoning: ({ text: said }) => said && details.reasoning(summary('Reasoning: ', line(said, 100)), prose(said)),
  citations: ({ citations }) => ul.sources({ 'aria-label': 'Sources' }, citations.map(({ title, url }) => li(title ?? url, url && title && small(` ${url}`)))),
  provider_tool: ({ tool, input, error }) => div.eventLine(icon('tool'), code(tool), text(line(input)), error && span.bad(error)),
  file: ({ file }, run) => fileChip(file, run),
};

/** A structured answer is read as its fields. */
function structured(said) {
  try {
    return /^\s*[{[]/.test(said) ? readable(JSON.parse(said)) : null;
  } catch {
    return null;
  }
}

function outputOf(value) {
  if (value == null || value === '') return null;
  const isText = typeof value === 'string';
  const isLong = isText ? value.length > 400 : JSON.stringify(value).length > 300;
  return div.result(isLong ? details(auto(summary, brief(value)), readable(value)) : prose(isText ? value : brief(value, 400)));
}

function fileChip({ uri, sha256, name, media_type: type, size }, run) {
  const href = uri?.startsWith('blob:') && apiUrl(at('runs', run, 'files', sha256));
  return span.file({ key: sha256 ?? uri }, href && /^image\/(png|jpeg|gif|webp)$/.test(type) ? img({ src: href, alt: name, loading: 'lazy' }) : icon('file'),
    href ? a({ href, download: name }, name) : span(name || uri), small(`${type} ${bytes(size)}`));
}
