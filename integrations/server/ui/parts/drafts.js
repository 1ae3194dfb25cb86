// What a person has entered for items that wait. An item that is decided elsewhere stays on the page with it, and says who decided,
// until the person dismisses it: whoever types must not lose the field, and with it the focus.
import { get, Problem } from '../lib/api.js';
import { at, say } from '../lib/page.js';
import { who } from '../lib/format.js';

const drafts = {};
/** What a person has entered for an item, and what became of it. */
export const draftOf = (item) => Object.assign(drafts[item.id] ??= { mode: 'view', open: new Map() }, { item });
export const nodeOf = ({ id }) => document.getElementById(`item-${id}`);
export const dismiss = ({ id }) => delete drafts[id];

const CLOSED = ['already-decided', 'expired', 'run-closed', 'not-waiting', 'unknown-call', 'unknown-run'];
/** Whether nothing can be decided about an item any more, as far as this page knows. */
export const isOver = ({ sent, problem }) => sent || CLOSED.includes(problem?.slug);

/** Whether a person is at work on an item, or has not read yet why it is closed. */
const isInUse = ({ item, mode, value, reason, wait, problem }) => mode !== 'view' || problem || [value, reason, wait].some((entered) => entered !== undefined)
  || nodeOf(item)?.contains(document.activeElement);
/** Whether an item is shown although it does not wait any more. The log says so before the list of what waits does. */
export function isHeld(item) {
  const draft = draftOf(item);
  return !draft.sent && (draft.stays || isInUse(draft));
}

/** Compares the drafts with a fresh list of what waits, of all runs or of one, and asks what became of those that are not in it. */
export function follow(list, run) {
  const waiting = new Set(list.map(({ id }) => id));
  for (const draft of Object.values(drafts)) {
    if (run && draft.item.run !== run) continue;
    const isMissing = !waiting.has(draft.item.id);
    draft.stays = isMissing && (draft.stays || Boolean(isInUse(draft)));
    if (draft.stays && !draft.busy && !isOver(draft)) ask(draft);
  }
}

async function ask(draft) {
  const { run, id } = draft.item;
  const answer = await get(`/runs${at(run)}/calls${at(id)}/decision`).catch((problem) => ({ problem }));
  // Without a connection it is asked again with the next list.
  if (answer.problem?.status === 0 || draft.busy || isOver(draft)) return;
  if (answer.problem) draft.problem = answer.problem instanceof Problem ? answer.problem : new Problem(answer.problem.status, answer.problem);
  if (!draft.problem) return;
  // A click that was meant for another button must not dismiss it.
  draft.movedAt = performance.now();
  const { decision } = draft.problem.body;
  say(decision ? `${who(decision)} ${decision.verdict} the item that you were deciding. Your draft stays.` : draft.problem.message, true);
}

/** Whether an item waits for a person, and not for a webhook only. */
export const isForPerson = ({ kind, waits = [] }) => kind !== 'answer' || waits.some(({ person }) => person);

/** A list of what waits, after the items that stay only for their drafts. */
export const withDrafts = (list, run) => [...Object.values(drafts).filter(({ item, stays, sent }) => stays && !sent && (!run || item.run === run)).map(({ item }) => item), ...list];
