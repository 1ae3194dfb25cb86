// The calls of one answer that need approvals, as one card: a decision for each of them, and one for all.
import { tags } from '../lib/dom.js';
import { runUrl } from '../lib/page.js';
import { icon } from '../lib/icons.js';
import { placeWords } from '../lib/cause.js';
import { date, line, plural, shortId } from '../lib/format.js';
import { MOVING, isMoving, isSettled, place } from '../lib/settle.js';
import { toolsOf } from './batches.js';
import { when } from './common.js';
import decide, { approve, asks, contextOf, foldedOf, isEdited, isOpen, reject } from './decide.js';
import { draftOf } from './drafts.js';

const { a, button, code, div, footer, h2, header, input, label, p, section, span } = tags;

/** What a person has entered in the foot of a card. */
const drafts = new Map();

/** What a batch asks, in words. */
export const asksAll = (list) => `${toolsOf(list).map(([tool, n]) => (n > 1 ? `${tool} ×${n}` : tool)).join(', ')}: ${plural(list.length, 'call')} of one answer`;

/** The reasons of all calls, each once. */
export const reasonsOf = (list) => line([...new Set(list.map(asks))].join(', '), 160);

/** Draws the calls of an answer, or another item alone. `draw(item)` gives the options of an item's own part. What was alone keeps its element when
 *  other calls of its answer come, so that a person can type on. */
export default function batch({ key, list, isBatch }, { inbox = false, draw = () => ({}) } = {}) {
  if (!isBatch) return section({ key, class: 'alone' }, list.map((item) => decide(item, { ...draw(item), inbox })));
  const open = list.filter(isOpen);
  const [first] = list;
  const expires = list.map((item) => item.expires).filter(Boolean).toSorted()[0];
  return section({ key, class: 'batch', role: 'group', 'aria-label': asksAll(list) },
    header(span.status.wait(icon('clock'), span(plural(list.length, 'approval'))), span.grow(), span.soft({ title: date(first.since) }, 'asked ', when(first.since)), expires && span.soft({ title: date(expires) }, 'expires ', when(expires)),
      h2({ dir: 'auto' }, toolsOf(list).map(([tool, n], i) => [i > 0 && ', ', code({ key: tool }, tool), n > 1 && ` ×${n}`]), ' ', reasonsOf(list))),
    p.meta(span(`${plural(list.length, 'call')} of one answer`), inbox && a({ href: runUrl(first.run) }, first.brain, ' ', shortId(first.run)), span(placeWords(first.call)), first.user && span(`for ${first.user}`)),
    inbox && contextOf(first, true),
    list.map((item) => decide(item, { ...draw(item), inbox, part: true })),
    (open.length > 1 || (open.length && drafts.get(key)?.isRejecting)) && foot(key, open));
}

/** The decisions about all calls that are still open. While a person writes why, the others may be decided elsewhere. */
function foot(key, open) {
  const all = open.length > 1 ? `all ${open.length}` : 'the last one';
  const draft = drafts.get(key) ?? {};
  drafts.set(key, draft);
  const folded = open.reduce((all, item) => all + foldedOf(draftOf(item)), 0);
  const [waits, edits] = [isMoving(draft) || open.some((item) => isMoving(draftOf(item))), open.filter((item) => isEdited(item, draftOf(item))).length];
  /** Ignores the second click of a double click, and a click on a foot that has moved. */
  const once = (act) => ({ detail, currentTarget }) => {
    place(currentTarget.closest('footer'), draft);
    if (detail && isMoving(draft)) currentTarget.blur();
    if (detail < 2 && isSettled([draft])) act();
  };
  const rejectAll = () => {
    for (const item of open) draftOf(item).reason ??= draft.reason;
    reject(open);
  };
  const off = { 'aria-disabled': waits ? 'true' : null, title: waits ? MOVING : null };
  return footer({ key: 'all', drawn: (node) => place(node, draft) },
    draft.isRejecting && div.field(label({ for: `reason-${key}` }, 'Reason for all, which the model reads', span.soft(' (optional)')), input({ id: `reason-${key}`, value: draft.reason, ref: (node) => node.focus(), oninput: ({ target }) => { draft.reason = target.value || undefined; },
      onkeydown: (event) => {
        if (event.key !== 'Escape' || event.isComposing) return;
        event.preventDefault();
        draft.isRejecting = false;
      } })),
    button.primary.large({ ...off, onclick: once(() => approve(open)) }, icon('check'), folded ? `Show ${plural(folded, 'folded part')} first` : `Approve ${all}${edits ? `, ${edits} as edited` : ''}`),
    button.large.danger({ ...off, onclick: draft.isRejecting ? once(rejectAll) : () => { draft.isRejecting = true; } }, icon('cross'), draft.isRejecting ? `Reject ${all}` : `Reject ${all}…`));
}
