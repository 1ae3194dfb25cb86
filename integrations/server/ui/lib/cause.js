// Why a run stands as it does, in words: the cause first, the place after it.
import { tags } from './dom.js';
import { number, plural, sentenceCase } from './format.js';

const { code, span } = tags;

/** A text of the server, with what it quotes in backticks as code. */
export const quoted = (text) => String(text ?? '').split('`').map((part, i) => (i % 2 ? code({ key: i }, part) : part));

/** A path in words: `Chat/3.0` is `Chat, iteration 4`, and `Research/Read` is `Research › Read`. */
export function placeWords(path) {
  const names = [];
  const parts = String(path ?? '').split('/');
  for (const [index, part] of parts.entries()) {
    const [, iteration] = /^(\d+)(?:[.~]\d+)*$/.exec(part) ?? [];
    if (iteration === undefined) names.push(part);
    // What a group runs has the number of the group and its own, and a stage after it.
    else if (/^0\.\d+$/.test(part) && index < parts.length - 1) continue;
    else if (names.length) names.push(`${names.pop()}, iteration ${Number(iteration) + 1}`);
  }
  return names.join(' › ');
}

/** Where a limit has cut off a run, in words. */
export const cutOff = ({ cut_off: path }) => `Cut off at a limit of ${placeWords(path) || 'the run'}`;

/** What a run has done last, by the type of its last event or the end of that type; `…` is the tool of a call, the model that is asked, or else the stage. */
const DOES = {
  START: '… started', COMPLETE: '… completed', RETRY: '… failed and retries', RESULT: '… returned', WAIT: '… waits', RESUME: '… resumed', LIMIT: '… reached a limit', LOOP_MAX_ITERATIONS: '… reached a limit',
  BRAIN_MIGRATED: '… was migrated', BRAIN_ERROR: '… failed', BRAIN_CANCELLED: '… was cancelled', BRAIN_PAUSED: '… was paused', BRAIN_RESUMED: '… was resumed', UNDO_START: '… undoes what it has done', UNDO_FAILED: '… failed',
  BRANCH_CHOSEN: '… chose an arm', GROUP_START: '… runs its brains', REPEAT_ROUND: '… ended a round', GUARD_CHECKED: '… was checked', LOOP_MESSAGE: 'a message arrived', LOOP_EXIT: 'a tool ended …', LOOP_STOPPED: '… stopped',
  LOOP_MODEL_CALL: 'asked …', LOOP_MODEL_RESULT: 'the model answered', LOOP_MODEL_RETRY: 'the model failed and is asked again', LOOP_ANSWER_BROKEN: 'an answer broke after it had used tokens', LOOP_ANSWER_REFUSED: 'an answer was refused',
  LOOP_TOOL_CALL: 'called …', LOOP_APPROVAL_REQUESTED: '… needs an approval', LOOP_APPROVAL_DECIDED: 'a person decided about …', LOOP_APPROVAL_WITHDRAWN: 'the approval of … was withdrawn', LOOP_APPROVAL_EXPIRED: 'the approval of … expired',
  BUDGET_REQUESTED: 'more of a limit was requested', BUDGET_DECIDED: 'a person decided about more of a limit', BUDGET_EXPIRED: 'the request for more of a limit expired', LOOP_GUARD_REPLACED: 'a guard replaced what it checked',
  LOOP_PLUGIN_UPDATE: 'an update of a plugin arrived', LOOP_PLUGIN_FAILED: 'a plugin failed or refused an update', LOOP_COMPACTED: 'the transcript was compacted',
};
/** Why a run stands as it does, or what it has done last if nothing says why. */
export function whyOf({ why, last_event: last }) {
  if (why || !last) return why;
  const words = DOES[last.type] ?? DOES[last.type.split('_').at(-1)] ?? last.type.toLowerCase().replaceAll('_', ' ');
  const stage = last.path.split('/').findLast((part) => !/^\d+(?:[.~]\d+)*$/.test(part));
  // A call whose iteration is over has no name.
  const isCall = /^LOOP_.*\/\d+\.\d+$/.test(`${last.type} ${last.path}`);
  return words.replace('…', () => (last.name ? `\`${last.name}\`` : isCall ? 'a call' : stage || 'the run'));
}

/** What stands before the cause of a failure: the brains, loops and steps around it, which are its place. */
const AROUND = /^the (?:model of the )?(?:brain|loop|step|stage|group|map|race|branch|tool|call|guard)(?: loop)? `([^`]+)`(?: at `([^`]+)`)? failed(?: (\d+) times)?: /;
/** One of several decisions in a waiting run's text. */
const DECISION = /a person's decision about (`[^`]+`)(?: at `([^`]+)`)?(?: \(([^)]*)\))?/g;
/** Several decisions in words: of one tool, with the reason that all of them share. */
function several(text) {
  const all = [...text.matchAll(DECISION)];
  const [tools, reasons] = [new Set(all.map(([, tool]) => tool)), new Set(all.map(([, , , reason]) => reason))];
  const [[reason], what] = [[...reasons], [...tools].slice(0, 3).join(', ')];
  return `${tools.size === 1 ? `${all.length} calls of ${what}` : `${all.length} calls (${what}${tools.size > 3 ? ', …' : ''})`} need an approval${reasons.size === 1 && reason ? `: ${reason}` : ''}`;
}
/** Numbers in words of the server, with their thousands apart. */
const grouped = (text) => text.replace(/\b\d{4,}\b/g, (digits) => number(Number(digits)));
/** What the text of a run that waits, is paused or has used up a limit says, as `[pattern, words, place]`. */
const WAITS = [
  [/^(?:for )?a person's decision about more ([\w ]+) for [^(]+ \((.+) used, (.+) allowed\)\.?$/s, ([, kind, used, limit]) => grouped(`Asks for more ${kind}: ${used} used, ${limit} allowed`)],
  [/^The run is paused since event \d+, until a person resumes it\.$/, () => 'Paused until a person resumes it'],
  [/^.{1,200} used up its budget of ([\w ]+) in the loop `([^`]+)`: (.+)$/s, ([, kind, , limit]) => (limit.startsWith('…') ? `Budget of ${kind} used up` : grouped(`Budget of ${limit} used up`)), 2],
  [/a person's decision about .* a person's decision about /s, ({ input }) => several(input)],
  [/^(?:for )?a person's decision about (`[^`]+`)(?: at `([^`]+)`)?(?: \((.*)\))?\.?$/s, ([, tool, , reason]) => `${tool} needs an approval${reason ? `: ${reason}` : ''}`],
  [/^for a person's reply(?: \((.*)\))? at `([^`]+)`\.?$/s, ([, prompt]) => (prompt ? `Asks: ${prompt}` : 'Asks a person')],
];

/** A cause in one sentence: without its advice, without further sentences, and without the address that a model was asked at. The status of the answer stays. */
export function inShort(text) {
  const known = saysItself(text);
  if (known) return known.words;
  const bare = text.replace(/ \(https?:[^)]*\)/, '');
  const [advice, next] = [bare.indexOf('; '), /^.{15,}?[^\s.]{2}(?=[.!] \p{Lu})/su.exec(bare)?.[0].length ?? -1];
  const end = Math.min(...[advice, next].filter((at) => at >= 15));
  if (end === Infinity) return bare;
  const status = / \(HTTP \d+\)/.exec(bare)?.[0] ?? '';
  return bare.slice(0, end) + (bare.slice(0, end).includes(status) ? '' : status);
}
/** What a text says that has words of its own here, if it has. */
function saysItself(text) {
  for (const [pattern, words, place] of WAITS) {
    const found = pattern.exec(text);
    if (found) return { words: words(found), place: place ? found[place] : / at `([^`]+)`/.exec(text)?.[1] };
  }
  return null;
}

/** Divides a text of the server into its cause and its place; `{ text, brief, place }`. The brief text has no advice. */
export function causeOf(why) {
  let [text, place, tries] = [String(why ?? '').replace(/^The run has been waiting since event \d+ /, ''), '', 0];
  for (let found; (found = AROUND.exec(text));) {
    const [, name, at, times] = found;
    // The inner one's path begins with that of the outer one, or is a name of its own.
    const next = at ?? name;
    place = place && !next.startsWith(place) ? `${place}/${next}` : next;
    tries = Number(times ?? tries);
    text = text.slice(found[0].length);
  }
  const known = saysItself(text);
  if (known) return { text: known.words, brief: known.words, place: placeWords(known.place) };
  const [brief, after] = [inShort(text), tries > 1 ? `, after ${plural(tries, 'attempt')}` : ''];
  if (tries > 1) text = `${text.replace(/\.$/, '')}, after ${plural(tries, 'attempt')}`;
  const at = place ? '' : / at `([^`/]+\/\d[^`]*)`\.?$/.exec(text)?.[1];
  if (at) [text, place] = [text.slice(0, text.lastIndexOf(' at `')), at];
  text = text.replace(/^for /, 'Waits for ').replace(/ (at|the end of) `([^`]+)`/g, (_, words, path) => ` ${words} ${placeWords(path)}`);
  return { text: sentenceCase(text), brief: sentenceCase(at || text.startsWith('Waits for ') ? text.replace(/\.$/, '') : brief + after), place: placeWords(place) };
}

/** Draws a cause with its place. */
export const cause = (why) => {
  const { brief, place } = causeOf(why);
  return [span({ dir: 'auto' }, quoted(brief)), place && [' ', span.quiet(place)]];
};

/** The first line of a text of a model or a person, without the signs of its Markdown. */
export const plain = (text) => String(text ?? '').replace(/\*\*|^#+ /g, '');

/** How a completed run has ended: the guard that ended it early, and its result. */
export const endOf = ({ why, result }) => [sentenceCase(why), plain(result)].filter(Boolean).join(': ');

/** What a run does now, in the words that the search knows, too: its status, but `stuck` if no living worker has it or can claim it, `queued` before the first one, and `limited` if a limit has cut off a loop of it. */
export function standing({ status, parked, refused, worker, why, cut_off: cut }) {
  if (parked) return 'parked';
  if (status === 'completed' && cut != null) return 'limited';
  if (['running', 'waiting'].includes(status) && refused) return 'stuck';
  if (status === 'running' && worker && !worker.live) return 'stuck';
  if (status === 'running' && !worker) return 'queued';
  if (status === 'waiting' && /^until /.test(why ?? '')) return 'sleeping';
  return status;
}
