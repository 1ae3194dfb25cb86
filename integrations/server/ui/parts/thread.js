// The turns of a conversation: what people and models have said in a run, its calls folded, and what waits for a decision in place.
import { tags } from '../lib/dom.js';
import { runUrl } from '../lib/page.js';
import { icon, status } from '../lib/icons.js';
import { causeOf, quoted, standing } from '../lib/cause.js';
import { brief, clock, compact, costText, costTitle, date, money, plural, shortId } from '../lib/format.js';
import batch from './batch.js';
import { batches } from './batches.js';
import { isHeld, withDrafts } from './drafts.js';
import { readable } from './json.js';
import markdown from './markdown.js';
import { answerOf, costOf, isLastAttempt, isQuestion } from './model.js';

const { a, b, code, details, div, p, small, span, summary, ul, li } = tags;

const hour = (time) => small({ title: date(time) }, clock(time).slice(0, 5));
const face = (text) => span.face({ 'aria-hidden': 'true' }, text);

/** Sums the known costs of runs. */
export function costOfRuns(runs) {
  const costs = runs.map(({ cost }) => cost).filter((cost) => cost?.currency);
  if (!costs.length) return null;
  return (runs.some(({ cost }) => cost?.partial) ? 'at least ' : '') + money(String(costs.reduce((sum, { amount }) => sum + Number(amount), 0)), costs[0].currency);
}

/** What a model has said in an answer. Structured answers are read as fields. */
function saidOf(parts) {
  return parts.filter(({ type, text }) => ['text', 'refusal'].includes(type) && text?.trim()).map(({ type, text }, i) => {
    if (type === 'refusal') return p.bad({ key: i, dir: 'auto' }, text);
    try {
      if (/^\s*[{[]/.test(text)) return div({ key: i }, readable(JSON.parse(text)));
    } catch { /* It is no JSON, and read as it is. */ }
    return div({ key: i }, markdown(text));
  });
}

const callLine = ({ id, status: state, kind: { tool, arguments: given, result } }) => li({ key: id }, status({ done: 'done', failed: 'failed', running: 'running', waiting: 'waiting' }[state] ?? state, ''), code(tool), ' ', span.soft({ dir: 'auto' }, brief(given, 80)),
  result && result.type !== 'denied' && span.soft({ dir: 'auto' }, ' → ', brief(result.output ?? result.message ?? '', 120)));

/** Draws the turns of a run in their order. */
export function turnsOf(model) {
  const { run, nodes } = model;
  const list = model.select(({ kind, status: state }) => ['message', 'answer', 'call', 'widget', 'file'].includes(kind.type) && state !== 'not_started');
  const pending = withDrafts(run.pending ?? [], model.id).filter((item) => run.pending?.includes(item) || isHeld(item));
  const turns = [];
  let calls = [];
  const flush = () => {
    const [group, key] = [calls, `calls ${calls[0]?.id}`];
    if (group.length) turns.push(details.turnCalls({ key }, summary(icon('chevron'), span(`${plural(group.length, 'call')}: `, [...new Set(group.map(({ kind }) => kind.tool))].slice(0, 5).map((tool, i) => [i > 0 && ', ', code(tool)]))), ul(group.map(callLine))));
    calls = [];
  };
  let isNamed = false;
  for (const node of list) {
    const { kind } = node;
    if (kind.type === 'call') {
      calls.push(node);
      continue;
    }
    if (kind.type === 'answer') {
      // What a guard asks a model is not said to the person.
      if (isQuestion(node) || !isLastAttempt(node, model)) continue;
      const answer = answerOf(kind);
      const said = answer?.parts ? saidOf(answer.parts) : [];
      const stream = !answer?.parts && node.status === 'running' && kind.stream?.parts.filter((part) => part.kind === 'text').map(({ text }) => text).join('');
      if (!said.length && !stream) continue;
      flush();
      turns.push(div.turn({ key: node.id }, face(icon('model')), div(p.turnHead(b(run.brain), hour(node.started), headOf(node, model), !isNamed && a({ href: runUrl(run.id, 'transcript', node.seq) }, `run ${shortId(run.id)}`)), said.length ? said : div.streaming({ dir: 'auto' }, stream))));
      isNamed = true;
      continue;
    }
    if (kind.type !== 'message') continue;
    flush();
    isNamed = false;
    // What the code of a brain makes of its options has no author.
    const name = kind.from === 'engine' ? 'the engine' : kind.from === 'child' ? 'a run in the background' : kind.actor?.user ?? kind.actor?.by ?? run.user ?? 'person';
    turns.push(div.turn.person({ key: node.id }, face(kind.from !== 'person' ? icon('flag') : name.slice(0, 1).toUpperCase()), div(p.turnHead(b(name), hour(node.started ?? nodes[0]?.started)), div.prose({ dir: 'auto' }, kind.text),
      kind.files?.length > 0 && p.soft(kind.files.map((file) => file.name).join(', ')))));
  }
  flush();
  const name = standing(run);
  const failed = ['failed', 'parked', 'stuck'].includes(name);
  return [turns, batches(pending).map((group) => div.turn({ key: group.key }, face(icon('clock')), batch(group))),
    failed && div.turn({ key: 'failed' }, face(icon('cross')), div.note.failed(icon('cross'), div(status(name), ' ', quoted(causeOf(run.why).brief), ' ', a({ href: runUrl(run.id) }, 'Open the run')))),
    ['running', 'sleeping', 'queued', 'paused', 'cancelled'].includes(name) && p.turnState({ key: 'state' }, status(name), name === 'running' && !pending.length && span.soft(' works on an answer'))];
}

function headOf(node, model) {
  const answer = answerOf(node.kind);
  const { input = 0, output = 0 } = answer?.metadata?.usage ?? {};
  const costs = [costOf(answer, model)];
  return [input + output > 0 && small(`${compact(input + output)} tokens`), costText(costs) ? small({ title: costTitle(costs) }, costText(costs)) : input + output > 0 && small('cost unknown')];
}
