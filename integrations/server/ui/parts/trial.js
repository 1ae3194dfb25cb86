// An answer of the playground as a card, marked where it differs from the recorded one.
import { tags } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { quoted } from '../lib/cause.js';
import { brief, duration, money, number } from '../lib/format.js';
import { likeness, valueDiff, words } from './change.js';
import markdown from './markdown.js';

const { b, button, details, div, footer, h2, header, p, section, small, span, summary } = tags;

/** From which share of common words on the differences of two texts are marked; below it, one reads the other text by itself. */
const ALIKE = 0.3;
/** A text without the marks of emphasis, which would stand in a comparison as they are. */
const plainOf = (text) => text.replace(/\*\*|__|`/g, '');
const prose = (text) => div.prose({ dir: 'auto' }, text);

function figures({ usage = {}, cost, duration_ms: took }, ...more) {
  return footer(span({ title: 'tokens in + out' }, `${number(usage.input ?? 0)} + ${number(usage.output ?? 0)}`), span(cost ? money(cost.amount, cost.currency) : 'cost unknown'), span(duration(took)), span.grow(), more);
}
const callOf = ({ tool, arguments: given }, key, ...more) => div.proposed({ key }, icon('tool'), ' ', b.mono(tool), ' ', span.soft({ dir: 'auto' }, brief(given) || 'no arguments'), more);

function parts(answer, text) {
  return [answer.reasoning && details.reasoning(summary('Reasoning'), prose(answer.reasoning)), text, answer.refusal && p.bad({ dir: 'auto' }, 'Refused: ', answer.refusal),
    answer.files?.length > 0 && p.soft(answer.files.join(', ')), answer.finish === 'length' && p.wait(icon('warn'), ' Cut off at its maximum of tokens.')];
}

/** The recorded answer. */
export function recorded({ answer, model, answer_seq: seq }) {
  return section.panel.trial({ key: 'recorded', 'aria-label': 'Recorded answer' }, header(h2('Recorded'), span.grow(), small(answer?.model ?? model)),
    div.said(answer ? [parts(answer, answer.text && markdown(answer.text)), answer.calls.map((call, i) => callOf(call, i))] : p.soft(seq == null ? 'The log has no answer to it yet.' : 'The recorded request got no valid answer.')),
    answer && figures(answer));
}

const written = (calls) => JSON.stringify(calls.map(({ tool, arguments: given }) => [tool, given]));
/** How the calls of an answer differ from the recorded ones, in words. */
function callsVerdict(old, now) {
  if (!old.length && !now.length) return null;
  if (written(old) === written(now)) return span.good(old.length > 1 ? 'same calls' : 'same call');
  const names = (calls) => calls.map(({ tool }) => tool).join();
  if (names(old) === names(now)) return span.wait('other arguments');
  return span.wait(!now.length ? 'no call' : old.length ? 'other call' : 'a call more');
}

/** An answer of the playground, while it streams or after it. */
export function trialOf(trial, { answer: old }, marks) {
  const { n, item, failed, text, began, stop, model } = trial;
  const answer = item?.answer;
  const error = item?.error ? [item.error.message, item.error.status && ` (HTTP ${item.error.status})`].filter(Boolean).join('') : failed;
  const isMarked = marks && answer?.text && old?.text && likeness(old.text, answer.text) > ALIKE;
  const changed = Object.keys(trial.edits).map((name) => name.replaceAll('_', ' '));
  return section.panel.trial({ key: n, 'aria-label': `Answer ${n}` },
    header(h2(String(n)), small(changed.length ? `other ${changed.join(', ')}` : 'no edits'), span.grow(), small(answer?.model ?? model)),
    div.said(answer ? [parts(answer, answer.text && (isMarked ? prose(words(plainOf(old.text), plainOf(answer.text))) : markdown(answer.text))),
      answer.calls.map((call, i) => {
        const before = old?.calls[i];
        const isOther = before?.tool === call.tool && written([before]) !== written([call]);
        return callOf(call, i, isOther && div.edits(valueDiff(before.arguments, call.arguments)));
      }), !answer.text && !answer.calls.length && !answer.refusal && p.soft('An answer without text.')]
      : error ? div.note.failed({ role: 'alert' }, icon('cross'), div(quoted(error), p.soft('It was not tried again.'))) : [text ? div.streaming({ dir: 'auto' }, text) : p.soft('The model answers…')]),
    answer ? figures(answer, callsVerdict(old?.calls ?? [], answer.calls)) : !error && footer(span.busy(`streams, ${duration(performance.now() - began)}`), span.grow(), button.small({ onclick: () => stop.abort() }, 'Stop')));
}
