// When an item may be decided: it has been at its place, in a window with the focus, for long enough to be seen.
import { redraw } from './dom.js';
import { main, say } from './page.js';

/** For how long, in milliseconds, an item cannot be decided after it has moved or the window got the focus: a click or a key that
 *  was meant for something else must not hit what has just come to its place. */
const SETTLES = 500;
/** For how long, if the pointer rests since before it moved: whoever clicks on at the same place may not have seen that another item came. */
const RESTS = 1500;
/** How far a pointer moves by itself, in pixels. */
const SHAKES = 4;
let settling = 0;
/** When the pointer moved or a key was pressed last, and where the pointer was. */
let [attended, pointer] = [0, [-1, -1]];
const attend = ({ clientX, clientY }) => {
  const isRest = Math.hypot(clientX - pointer[0], clientY - pointer[1]) <= SHAKES;
  if (isRest) return;
  [attended, pointer] = [performance.now(), [clientX, clientY]];
  redraw();
};
addEventListener('pointermove', attend, true);
addEventListener('pointerdown', attend, true);
addEventListener('keydown', () => { attended = performance.now(); }, true);
/** Draws anew when an item may be decided. */
function redrawSettled() {
  for (const time of [SETTLES, RESTS]) setTimeout(redraw, time + 50);
}
/** Begins this wait for all items: the page has scrolled by itself or has come to the front, or what covered it has gone. */
export function settle() {
  settling = performance.now();
  redraw();
  redrawSettled();
}
addEventListener('focus', settle);
document.addEventListener('visibilitychange', settle);
export function isMoving({ movedAt = 0 }) {
  const moved = Math.max(movedAt, settling);
  return performance.now() - moved < (moved > attended ? RESTS : SETTLES);
}
/** What scrolls with a node: the pane that it is in, or the page. */
export const frameOf = (node) => node.closest('.pane-body') ?? main();
/** Notes whether the buttons of an item have another place than when this was last called, or the item has just come. A reader who
 *  scrolls moves them in the window only, what is added above only in the page; a list that becomes shorter pushes them down. */
export function place(node, draft) {
  const { scrollTop, scrollHeight, clientHeight } = frameOf(node);
  const { top } = (node.querySelector('footer') ?? node).getBoundingClientRect();
  const isMoved = Math.abs(top - draft.top) > 1 && Math.abs(top + scrollTop - draft.top - draft.scrolled) > 1;
  const isPushed = scrollHeight < draft.height && scrollTop + clientHeight >= scrollHeight - 2;
  if (draft.top === undefined || isMoved || isPushed) {
    draft.movedAt = performance.now();
    redraw();
    redrawSettled();
  }
  Object.assign(draft, { top, scrolled: scrollTop, height: scrollHeight });
}
/** Why an item cannot be decided now. */
export const MOVING = 'It has just come or moved. Look at it first.';
/** Whether none of the items moves. Otherwise the wait begins again: a person who keeps pressing a key has read nothing yet. */
export function isSettled(drafts) {
  const moves = drafts.some(isMoving);
  if (moves) {
    settle();
    say(MOVING, true);
  }
  return !moves;
}
