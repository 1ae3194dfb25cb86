// The transcript: stages, messages, answers and calls in reading order, as rows.
import { tags } from '../lib/dom.js';
import { ui, apiUrl, at } from '../lib/api.js';
import { icon, status } from '../lib/icons.js';
import { brief, bytes, compact, line, micros, plural, tokens, who } from '../lib/format.js';
import { took, when } from './common.js';
import { readable } from './json.js';
import { valueDiff } from './change.js';
import { decide, decided, limitText } from './decide.js';

const { a, b, button, code, details, div, h3, img, li, p, small, span, summary, ul } = tags;

/** Lists the rows of a run, depth first. Folded nodes hide what is below them. */
export function rows(model, folded) {
  const list = [];
  const walk = (node, depth) => {
    const { type } = node.kind;
    const shown = type !== 'brain' && !(type === 'iteration') && !(type === 'answer' && !tells(node)) && !(node.status === 'not_started' && type === 'stage' && depth > 0);
    if (shown) list.push({ node, depth });
    if (folded.has(node.id)) return;
    const deeper = ['stage', 'call'].includes(type) && (type === 'stage' ? depth > 0 : true);
    for (const child of model.of(node.id)) walk(child, shown && (deeper || type === 'stage') ? depth + 1 : depth);
  };
  if (model.nodes[0]) walk(model.nodes[0], 0);
  return list;
}

/** An answer with nothing to read but its calls has no row: the calls follow. */
function tells({ kind, status: state }) {
  if (state === 'running' || state === 'failed' || kind.question) return true;
  const { outcome } = kind;
  if (!outcome || outcome.type !== 'answered') return true;
  return outcome.parts.some((part) => !['call', 'opaque'].includes(part.type) && (part.text ?? 'x').trim());
}

/** Draws one row. `view` has the model, the selection, and what the page can do. */
export function row({ node, depth }, view) {
  const { kind } = node;
  const draw = ROWS[kind.type] ?? other;
  const selected = view.selected === node.id;
  const pending = kind.type === 'call' || kind.type === 'budget' ? view.pendingOf(node) : null;
  return div.row({
    key: node.id, id: `node-${node.id}`, role: 'listitem', class: `${kind.type}${selected ? ' selected' : ''}${node.status === 'failed' ? ' failed' : ''}`, 'data-seq': node.seq,
    style: depth ? { '--depth': Math.min(depth, 8) } : {}, memo: pending || view.model.run?.pending?.length ? null : [node, selected, view.folded.has(node.id), view.version],
    onclick: (event) => !event.target.closest('a, button, input, textarea, select, summary, .decide') && String(getSelection()) === '' && view.select(node),
  }, () => [draw(node, view), pending ? decide(pending, view.context) : null]);
}

const stamp = (node, view) => a.seq({ href: ui(`/runs/${view.model.id}/events/${node.seq}`), title: `Event ${node.seq}`, 'aria-label': `Event ${node.seq}` }, node.seq);
const prose = (text, extra) => p.prose({ dir: 'auto', ...extra }, text);

const ROWS = {
  stage(node, view) {
    const { name, stage, iteration, max_iterations: most, brain, usage } = node.kind;
    const count = iteration == null ? null : `${plural(iteration + 1, 'iteration')}${most && node.status === 'running' ? ` of at most ${most}` : ''}`;
    return h3.stageHead(
      button.twist({ 'aria-expanded': String(!view.folded.has(node.id)), 'aria-label': `${view.folded.has(node.id) ? 'Show' : 'Hide'} ${name}`, onclick: () => view.fold(node) }, icon('chevron')),
      span.name(name), span.tag(stage === 'brain' ? `brain ${brain?.title ?? ''}` : stage),
      span.meta(node.status === 'done' ? null : status(node.status), count && span(count), span(tokens(usage)), span(took(node))), stamp(node, view));
  },
  message(node, view) {
    const { text, files = [], from, actor } = node.kind;
    return [div.label(from === 'engine' ? [icon('flag'), 'the engine'] : [icon('person'), actor?.by ?? 'a person', actor?.channel && span.soft(`via ${actor.channel}`)], stamp(node, view)),
      div.bubble({ class: from }, prose(text), files.map((file) => fileChip(file, view)))];
  },
  answer(node, view) {
    const { outcome, stream, question, model, attempt } = node.kind;
    const answer = outcome?.answer ?? outcome;
    const meta = [span(model), attempt ? span(`attempt ${attempt + 1}`) : null, span(tokens(answer?.metadata?.usage)), answer?.duration != null ? span(micros(answer.duration)) : null];
    return [div.label(icon('model'), question ? 'question to the model' : 'the model', span.meta(meta), outcome ? null : status('running', 'answers…'), stamp(node, view)),
      question && details(summary(line(question.text, 120)), question.system && prose(question.system, { class: 'system' }), prose(question.text)),
      stream && [stream.parts.map((part, i) => div.streaming({ key: i }, part.kind === 'reasoning' ? span.soft('thinks: ') : part.kind === 'arguments' ? code(part.tool ?? 'call', ' ') : null, span({ dir: 'auto' }, part.text))), stream.gap && p.soft('Some streamed text is missing; the whole answer follows.')],
      outcome?.type === 'refused' && p.problem(icon('warn'), 'not a valid action: ', outcome.message),
      outcome?.type === 'failed' && p.problem(icon('retry'), outcome.error.message, ' Asked again ', when(outcome.due), '.'),
      outcome?.type === 'abandoned' && p.soft('Abandoned: the request was sent again after a crash, or its loop ended.'),
      answer?.parts?.map((part, i) => partOf(part, i, view))];
  },
  call(node, view) {
    const { tool, arguments: given, result, approval, waits = [], state, progress, brain, exited, flags } = node.kind;
    const run = approval?.outcome?.arguments;
    const edited = run !== undefined && approval.outcome.decision === 'approved';
    const outcome = { error: 'failed', denied: 'denied', skipped: 'skipped', interrupted: 'interrupted' }[result?.type] ?? (result ? 'done' : { pending: 'waiting', waiting: 'waiting', running: 'running' }[state] ?? 'not_started');
    const text = { not_started: state === 'deferred' ? 'waits for calls before it' : 'queued', waiting: state === 'pending' ? 'waits for a person' : 'waits' }[outcome];
    return [div.callHead(span.callIcon({ class: brain ? 'brain' : '' }, icon(brain ? 'brain' : 'tool')), b.mono(tool),
      brain && span.tag(`brain ${brain.title}`), flags?.destructive && span.tag.warn('destructive'), exited && span.tag('ends the loop'),
      span.args({ dir: 'auto' }, brief(edited ? run : given)), span.grow(), outcome === 'done' ? null : status(outcome, text), span.meta(took(node)), stamp(node, view)),
    approval?.outcome && p.eventLine(icon('person'), span(approval.reason), ' — ', b(decided(approval)), ' ', when(approval.outcome.at)),
    edited && div.edits(valueDiff(given, run)),
    waits.map((wait, i) => waitLine(wait, i)),
    progress && !result && p.soft({ dir: 'auto' }, progress),
    result && resultOf(result)];
  },
  retry: (node, view) => p.eventLine.bad(icon('retry'), span(`attempt ${node.kind.attempt + 1} failed: `, node.kind.message), span.soft('again ', when(node.kind.due)), stamp(node, view)),
  file: (node, view) => div.eventLine(fileChip(node.kind.file, view), stamp(node, view)),
  widget: (node, view) => div.eventLine(span.tag(node.kind.output.kind), span({ dir: 'auto' }, node.kind.output.fallback), node.kind.replaced_by?.length ? span.soft('replaced later') : null, stamp(node, view)),
  custom: (node, view) => div.eventLine(span.tag(node.kind.output.kind), span({ dir: 'auto' }, node.kind.output.fallback), stamp(node, view)),
  limit: (node, view) => p.eventLine.wait(icon('warn'), `${limitText(node.kind.kind, node.kind.used)} used, the limit is ${limitText(node.kind.kind, node.kind.limit)}: the loop ended.`, stamp(node, view)),
  budget(node, view) {
    const { kind, limit, used, outcome } = node.kind;
    return p.eventLine(icon('person'), `more ${kind}? ${limitText(kind, used)} of ${limitText(kind, limit)} are used`, ' — ', b(!outcome ? 'waits for a person' : outcome.type === 'expired' ? 'expired' : `${outcome.decision} by ${who(outcome.actor)}`), stamp(node, view));
  },
  compaction: (node, view) => details.eventLine(summary(node.kind.summary ? `Earlier messages are summarised; the last ${node.kind.keep} stay` : 'All messages are sent in full again', stamp(node, view)), node.kind.summary && prose(node.kind.summary)),
  plugin_failure: (node, view) => p.eventLine.bad(icon('warn'), `plugin ${node.kind.plugin} failed: `, node.kind.message, stamp(node, view)),
  stopped: (node, view) => p.eventLine.bad(icon('warn'), node.kind.message, stamp(node, view)),
  blocked: (node, view) => p.eventLine.wait(icon('warn'), 'The step asked a model beyond a limit; it reruns after a grant.', stamp(node, view)),
  trigger: (node, view) => p.eventLine(icon('clock'), node.kind.change.set ? [`trigger set: ${node.kind.change.set.what} `, when(node.kind.change.set.due)] : `trigger deleted: ${node.kind.change.deleted}`, stamp(node, view)),
  pause: (node, view) => p.eventLine(icon('pause'), `paused by ${who(node.kind.actor)}`, node.kind.resumed ? `, resumed by ${who(node.kind.resumed)} after ${took(node)}` : null, stamp(node, view)),
  migration: (node, view) => p.eventLine(icon('fork'), `continues with version ${node.kind.version} of the brain`, stamp(node, view)),
  claim_refused: (node, view) => p.eventLine.wait(icon('warn'), `worker ${node.kind.owner} cannot continue the run: `, node.kind.message, stamp(node, view)),
};
const other = (node, view) => p.eventLine(node.kind.type, stamp(node, view));

function partOf(part, i, view) {
  if (part.type === 'text' || part.type === 'refusal') {
    if (!part.text.trim()) return null;
    const value = structured(part.text);
    return div({ key: i, class: part.type }, part.type === 'refusal' && span.tag.warn('refusal'), value ? readable(value) : prose(part.text));
  }
  if (part.type === 'reasoning') return part.text && details.reasoning({ key: i }, summary('Reasoning: ', line(part.text, 100)), prose(part.text));
  if (part.type === 'citations') return ul.sources({ key: i, 'aria-label': 'Sources' }, part.citations.map((source, n) => li({ key: n }, source.title ?? source.url, source.url && source.title && small.soft(` ${source.url}`))));
  if (part.type === 'provider_tool') return p.eventLine({ key: i }, icon('tool'), code(part.tool), ' ', line(part.input ?? '', 160), part.error && span.bad(part.error));
  if (part.type === 'file') return div({ key: i }, fileChip(part.file, view));
  return null;
}

/** A structured answer is read as its fields. */
function structured(text) {
  if (!/^\s*[{[]/.test(text)) return null;
  try {
    const value = JSON.parse(text);
    return value && typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}

const target = (wait) => (wait.person ? wait.prompt ?? 'a person' : `${wait.webhook} ${wait.identifier}`);
function waitLine({ since, waits, resumed }, i) {
  const lasted = resumed ? ` ${micros(resumed.at - since)}` : '';
  return p.eventLine({ key: `w${i}` }, icon(waits.some((wait) => wait.person) ? 'person' : 'hook'), span(resumed ? `waited${lasted} for ` : 'waits for ', waits.map(target).join(' or ')),
    resumed ? [' — ', b({ dir: 'auto' }, resumed.cause === 'expired' ? 'expired' : brief(resumed.payload))] : ['since ', when(since), waits[0].expires && [', expires ', when(waits[0].expires)]]);
}

function resultOf(result) {
  if (result.type === 'success') {
    const { output } = result;
    if (output == null || output === '') return null;
    const long = typeof output === 'string' ? output.length > 400 : JSON.stringify(output).length > 300;
    return div.result(long ? details(summary({ dir: 'auto' }, brief(output)), readable(output)) : typeof output === 'string' ? prose(output) : p({ dir: 'auto' }, brief(output, 400)));
  }
  const text = result.message ?? result.reason;
  return result.type === 'denied' ? null : p.problem({ dir: 'auto' }, text);
}

function fileChip(file, view) {
  const href = file.uri?.startsWith('blob:') ? apiUrl(`/runs${at(view.model.id, 'files', file.sha256)}`) : null;
  const image = href && /^image\/(png|jpeg|gif|webp)$/.test(file.media_type);
  return span.file({ key: file.sha256 ?? file.uri }, image ? img({ src: href, alt: file.name, loading: 'lazy' }) : icon('file'),
    href ? a({ href, download: file.name }, file.name) : span(file.name || file.uri), small.soft(`${file.media_type} ${bytes(file.size)}`));
}

/** What the run did, counted. */
export function counts(model) {
  const by = {};
  for (const node of model.nodes) if (node) by[node.kind.type] = (by[node.kind.type] ?? 0) + (node.kind.type === 'call' && node.kind.result?.type === 'denied' ? 0 : 1);
  const people = model.nodes.filter((node) => node?.kind.approval?.outcome?.type === 'decided').length;
  const retries = (by.retry ?? 0) + model.nodes.filter((node) => node?.kind.outcome?.type === 'failed').length;
  return [[model.answers, 'model answer'], [by.call, 'call'], [people, 'decision by a person', 'decisions by people'], [by.file, 'file'], [retries, 'retry', 'retries']]
    .filter(([count]) => count).map(([count, one, many]) => (count > 9999 ? `${compact(count)} ${many ?? `${one}s`}` : plural(count, one, many)));
}
