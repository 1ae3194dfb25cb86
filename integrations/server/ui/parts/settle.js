// When an item may be decided: it has been at its place, in a window with the focus, for long enough to be seen.
import { redraw } from '../lib/dom.js';
import { main } from '../lib/page.js';

/** For how long, in milliseconds, an item cannot be decided after it has moved or the window got the focus: a click or a key that
 *  was meant for something else must not hit what has just come to its place. */
const SETTLES = 500;
let settling = 0;
/** Begins this wait for all items: the page has scrolled by itself, or has come to the front. */
export function settle() {
  settling = performance.now();
  redraw();
  setTimeout(redraw, SETTLES + 50);
}
addEventListener('focus', settle);
document.addEventListener('visibilitychange', settle);
export const isMoving = ({ movedAt = 0 }) => performance.now() - Math.max(movedAt, settling) < SETTLES;
/** Notes whether an item has another place than when this was last called, or has just come. A list that becomes shorter also moves
 *  what a reader at its end sees. */
export function place(node, draft) {
  const { scrollTop, scrollHeight, clientHeight } = main();
  const top = node.getBoundingClientRect().top + scrollTop;
  const isPushed = scrollHeight < draft.height && scrollTop + clientHeight >= scrollHeight - 2;
  if (!(Math.abs(top - draft.top) <= 4) || isPushed) {
    draft.movedAt = performance.now();
    redraw();
    setTimeout(redraw, SETTLES + 50);
  }
  Object.assign(draft, { top, height: scrollHeight });
}
/** Whether none of the items moves. Otherwise the wait begins again: a person who keeps pressing a key has read nothing yet. */
export function isSettled(drafts) {
  const moves = drafts.some(isMoving);
  if (moves) settle();
  return !moves;
}
