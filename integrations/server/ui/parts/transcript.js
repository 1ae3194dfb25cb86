// The transcript: stages, messages, answers and calls in reading order, as rows.
import { tags } from '../lib/dom.js';
import { ui, apiUrl, at } from '../lib/api.js';
import { icon, status } from '../lib/icons.js';
import { brief, bytes, line, micros, plural, tokens, who } from '../lib/format.js';
import { took, when } from './common.js';
import { readable } from './json.js';
import { valueDiff } from './change.js';
import { decide, decided, limitText } from './decide.js';

const { a, b, button, code, details, div, h3, img, li, p, small, span, summary, ul } = tags;

/** Whether a node has a row. An answer with nothing to read but its calls has none: the calls follow. */
export function shows({ kind, status: state, parent }) {
  if (kind.type === 'answer') return state === 'running' || state === 'failed' || Boolean(kind.question) || tells(kind.outcome);
  if (kind.type === 'stage') return state !== 'not_started' || parent === 0;
  return !['brain', 'iteration'].includes(kind.type);
}
const tells = (outcome) => outcome?.type !== 'answered'
  || outcome.parts.some((part) => !['call', 'opaque'].includes(part.type) && (part.text ?? 'x').trim());

/** Whether what is below a node is one step deeper. */
export const nests = ({ kind }) => ['stage', 'call'].includes(kind.type);

/** Draws one row. `view` has the model, the selection, and what the page can do. */
export function row(node, depth, view) {
  const { type } = node.kind;
  const selected = view.isSelected(node);
  const pending = view.pendingOf(node);
  const isControl = (target) => target.closest('a, button, input, textarea, select, summary, .decide');
  return div.row({
    key: node.id, role: 'listitem', class: `${type} ${selected ? 'selected' : ''} ${node.status}`, 'data-seq': node.seq,
    style: depth ? { '--depth': Math.min(depth, 8) } : {}, memo: pending ? null : [node, selected, view.folded.has(node.id), view.version()],
    onclick: ({ target }) => !isControl(target) && String(getSelection()) === '' && view.select(node),
  }, () => {
    const to = ui(`/runs/${view.model.id}/events/${node.seq}`);
    const stamp = a.seq({ href: to, title: `Event ${node.seq}`, 'aria-label': `Event ${node.seq}` }, node.seq);
    const [tone, shape, ...content] = LINES[type]?.(node.kind, node, view) ?? [];
    return [tone != null ? div.eventLine({ class: tone }, icon(shape), content, stamp) : (BLOCKS[type] ?? other)(node, view, stamp),
      pending && decide(pending, view.context)];
  });
}

const other = (node, view, stamp) => div.eventLine(node.kind.type, stamp);
const prose = (text, extra) => p.prose({ dir: 'auto', ...extra }, text);
const text = (value) => span({ dir: 'auto' }, value);
const soft = (...content) => span.soft(content);
const output = ({ output: { kind, fallback }, replaced_by: later }) =>
  ['', 'file', span.tag(kind), text(fallback), later?.length > 0 && soft('replaced later')];
const of = (kind, used, limit) => `${limitText(kind, used)} of ${limitText(kind, limit)} are used`;
const granted = ({ outcome }) => (outcome?.type === 'expired' ? 'expired' : outcome ? `${outcome.decision} by ${who(outcome.actor)}` : 'waits for a person');

/** Nodes of one line: its tone, its icon, its words. */
const LINES = {
  retry: ({ attempt, message, due }) => ['bad', 'retry', text(`attempt ${attempt + 1} failed: ${message}`), soft('again ', when(due))],
  file: ({ file }, _, view) => ['', 'file', fileChip(file, view)],
  widget: output,
  custom: output,
  limit: ({ kind, used, limit }) => ['wait', 'warn', `${of(kind, used, limit)}: the loop ended.`],
  budget: (kind) => ['', 'person', `more ${kind.kind}? ${of(kind.kind, kind.used, kind.limit)} —`, b(granted(kind))],
  compaction: ({ keep, summary: short }) => ['', 'file', short ? details(summary(`Earlier messages are summarised; the last ${keep} stay`),
    prose(short)) : 'All messages are sent in full again'],
  plugin_failure: ({ plugin, message }) => ['bad', 'warn', text(`plugin ${plugin} failed: ${message}`)],
  stopped: ({ message }) => ['bad', 'warn', text(message)],
  blocked: () => ['wait', 'warn', 'The step asked a model beyond a limit; it reruns after a grant.'],
  trigger: ({ change: { set, deleted } }) => ['', 'clock', set ? [text(`trigger set: ${set.what}`), when(set.due)] : `trigger deleted: ${deleted}`],
  pause: ({ actor, resumed }, node) => ['', 'pause', `paused by ${who(actor)}${resumed ? `, resumed by ${who(resumed)} after ${took(node)}` : ''}`],
  migration: ({ version }) => ['', 'fork', `continues with version ${version} of the brain`],
  claim_refused: ({ owner, message }) => ['wait', 'warn', text(`worker ${owner} cannot continue the run: ${message}`)],
};

const CALL_STATUS = { error: 'failed', denied: 'denied', skipped: 'skipped', interrupted: 'interrupted', success: 'done',
  pending: 'waiting', waiting: 'waiting', running: 'running' };
const CALL_STATE = { pending: 'waits for a person', waiting: 'waits', deferred: 'waits for calls before it', running: 'running' };

const BLOCKS = {
  stage(node, view, stamp) {
    const { name, stage, iteration, max_iterations: most, brain, usage } = node.kind;
    const isFolded = view.folded.has(node.id);
    const count = iteration != null && plural(iteration + 1, 'iteration') + (most && node.status === 'running' ? ` of at most ${most}` : '');
    return h3.stageHead(
      button.twist({ 'aria-expanded': String(!isFolded), 'aria-label': `${isFolded ? 'Show' : 'Hide'} ${name}`, onclick: () => view.fold(node) },
        icon('chevron')),
      span.name(name), span.tag(stage === 'brain' ? `brain ${brain?.title ?? ''}` : stage),
      span.meta(node.status !== 'done' && status(node.status), span(count), span(tokens(usage)), span(took(node))), stamp);
  },
  message({ kind: { text: said, files = [], from, actor } }, view, stamp) {
    const sender = from === 'engine' ? [icon('flag'), 'the engine']
      : [icon('person'), actor?.by ?? 'a person', actor?.channel && soft(`via ${actor.channel}`)];
    return [div.label(sender, stamp), div.bubble({ class: from }, prose(said), files.map((file) => fileChip(file, view)))];
  },
  answer({ kind: { outcome, stream, question, model, attempt } }, view, stamp) {
    const answer = outcome?.answer ?? outcome;
    const meta = [model, attempt > 0 && `attempt ${attempt + 1}`, tokens(answer?.metadata?.usage), answer?.duration != null && micros(answer.duration)];
    const ends = { refused: () => p.problem(icon('warn'), 'not a valid action: ', outcome.message),
      failed: () => p.problem(icon('retry'), outcome.error.message, ' Asked again ', when(outcome.due), '.'),
      abandoned: () => p.soft('Abandoned: the request was sent again after a crash, or its loop ended.') };
    return [
      div.label(icon('model'), question ? 'question to the model' : 'the model', span.meta(meta.map((item) => item && span(item))),
        !outcome && status('running', 'answers…'), stamp),
      question && details(summary(line(question.text, 120)), question.system && prose(question.system, { class: 'system' }), prose(question.text)),
      stream?.parts.map((part) => div.streaming(STREAMED[part.kind]?.(part), text(part.text))),
      stream?.gap && p.soft('Some streamed text is missing; the whole answer follows.'),
      ends[outcome?.type]?.(), answer?.parts?.map((part) => PARTS[part.type]?.(part, view)),
    ];
  },
  call(node, view, stamp) {
    const { tool, arguments: given, result, approval, waits = [], state, progress, brain, exited, flags } = node.kind;
    const made = approval?.outcome;
    const edited = made?.decision === 'approved' && made.arguments !== undefined;
    const outcome = CALL_STATUS[result?.type ?? state] ?? 'not_started';
    return [
      div.callHead(span.callIcon({ class: brain && 'brain' }, icon(brain ? 'brain' : 'tool')), b.mono(tool), brain && span.tag(`brain ${brain.title}`),
        flags?.destructive && span.tag.warn('destructive'), exited && span.tag('ends the loop'),
        span.args({ dir: 'auto' }, brief(edited ? made.arguments : given)), span.grow(),
        outcome !== 'done' && status(outcome, result ? undefined : CALL_STATE[state] ?? 'queued'), span.meta(took(node)), stamp),
      made && div.eventLine(icon('person'), text(approval.reason), ' — ', b(decided(approval)), when(made.at)),
      edited && div.edits(valueDiff(given, made.arguments)),
      waits.map(waitLine),
      progress && !result && p.soft({ dir: 'auto' }, progress),
      result?.type === 'success' ? outputOf(result.output) : result && result.type !== 'denied' && p.problem({ dir: 'auto' }, result.message ?? result.reason),
    ];
  },
};

const STREAMED = { reasoning: () => soft('thinks: '), arguments: ({ tool }) => code(tool ?? 'call', ' ') };

/** The parts of an answer. Its calls are nodes of their own. */
const PARTS = {
  text: ({ text: said }) => said.trim() && (structured(said) ?? prose(said)),
  refusal: ({ text: said }) => div(span.tag.warn('refusal'), prose(said)),
  reasoning: ({ text: said }) => said && details.reasoning(summary('Reasoning: ', line(said, 100)), prose(said)),
  citations: ({ citations }) => ul.sources({ 'aria-label': 'Sources' }, citations.map(({ title, url }) =>
    li(title ?? url, url && title && small(` ${url}`)))),
  provider_tool: ({ tool, input, error }) => div.eventLine(icon('tool'), code(tool), text(line(input ?? '')), error && span.bad(error)),
  file: ({ file }, view) => fileChip(file, view),
};

/** A structured answer is read as its fields. */
function structured(said) {
  try {
    return /^\s*[{[]/.test(said) ? readable(JSON.parse(said)) : null;
  } catch {
    return null;
  }
}

const target = (wait) => (wait.person ? wait.prompt ?? 'a person' : `${wait.webhook} ${wait.identifier}`);
const waitLine = ({ since, waits, resumed }) => div.eventLine(
  icon(waits.some((wait) => wait.person) ? 'person' : 'hook'),
  text(`${resumed ? `waited ${micros(resumed.at - since)}` : 'waits'} for ${waits.map(target).join(' or ')}`),
  resumed ? ['—', b({ dir: 'auto' }, resumed.cause === 'expired' ? 'expired' : brief(resumed.payload))]
    : ['since', when(since), waits[0].expires && ['expires', when(waits[0].expires)]]);

function outputOf(value) {
  if (value == null || value === '') return null;
  const isText = typeof value === 'string';
  const isLong = isText ? value.length > 400 : JSON.stringify(value).length > 300;
  return div.result(isLong ? details(summary({ dir: 'auto' }, brief(value)), readable(value)) : prose(isText ? value : brief(value, 400)));
}

function fileChip({ uri, sha256, name, media_type: type, size }, view) {
  const href = uri?.startsWith('blob:') ? apiUrl(`/runs${at(view.model.id, 'files', sha256)}`) : null;
  const isImage = href && /^image\/(png|jpeg|gif|webp)$/.test(type);
  return span.file({ key: sha256 ?? uri }, isImage ? img({ src: href, alt: name, loading: 'lazy' }) : icon('file'),
    href ? a({ href, download: name }, name) : span(name || uri), small(`${type} ${bytes(size)}`));
}
