// Where a search has found its words in a run, as a line that leads to the event.
import { tags } from '../lib/dom.js';
import { runUrl } from '../lib/page.js';

const { a, mark, small, span } = tags;

/** How many characters stand before the marked word of a hit. */
const BEFORE = 20;
/** What an event is, in words; another one has its type. */
const WORDS = { BRAIN_START: 'start', BRAIN_COMPLETE: 'result of the run', BRAIN_ERROR: 'failure', STEP_COMPLETE: 'state after a step', LOOP_START: 'first message', LOOP_MESSAGE: 'message', LOOP_ITERATION: 'request', LOOP_MODEL_RESULT: 'answer',
  LOOP_TOOL_CALL: 'call', LOOP_TOOL_RESULT: 'result of a call', LOOP_BRAIN_START: 'brain', LOOP_APPROVAL_REQUESTED: 'approval', LOOP_APPROVAL_DECIDED: 'decision' };

/** Draws a hit, if there is one, with the wanted texts marked. The event has one of them at least; the others may be in other events. */
export function hitLine(hit, wanted) {
  if (!hit) return null;
  const pattern = wanted.map((one) => one.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
  const found = pattern ? hit.text.split(new RegExp(`(${pattern})`, 'gi')) : [hit.text];
  // In one line there is room for few words before the marked one.
  if (found.length > 1 && found[0].length > BEFORE) found[0] = `…${found[0].slice(-BEFORE)}`;
  return span.hit({ dir: 'auto' }, a({ href: runUrl(hit.run, hit.type === 'LOOP_TOOL_CALL' ? 'transcript' : 'events', hit.seq), tabindex: '-1' }, `event ${hit.seq}`), ' ', small(WORDS[hit.type] ?? hit.type.toLowerCase().replaceAll('_', ' ')), ' ',
    hit.field && !['tool', 'type'].includes(hit.field) && [span.quiet(`${hit.field}:`), ' '], found.map((one, i) => (i % 2 ? mark({ key: i }, one) : one)));
}
