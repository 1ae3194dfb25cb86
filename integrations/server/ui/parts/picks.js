// Several approvals of one tool that are decided at once, in the inbox and in a run.
import { tags } from '../lib/dom.js';
import { plural } from '../lib/format.js';
import { settle } from '../lib/settle.js';
import { approve, isOpen, reject } from './decide.js';
import { draftOf } from './drafts.js';

const { button, div, input, label, span } = tags;

/** The chosen ones of the items that `items()` lists. */
export function picks(items) {
  const picked = new Set();
  let barred = false;
  const chosen = () => items().filter((item) => picked.has(item.id) && isOpen(item));
  /** Of the approvals of a tool that can be decided, those that are chosen or may still be. */
  const alike = (item) => items().filter((other) => other.kind === 'approval' && other.tool === item.tool && isOpen(other));
  const canPick = (item) => item.kind === 'approval' && isOpen(item) && chosen().every(({ tool }) => tool === item.tool) && alike(item).length > 1;
  const pick = ({ id }) => picked.delete(id) || picked.add(id);
  /** The bar covers items: a click on one of both must not hit the other one when the bar comes or goes. */
  function bar() {
    const list = chosen();
    const ofRun = alike(list[0] ?? {}).filter(({ run }) => list.every((one) => one.run === run));
    // A long run has not drawn all of them, and what a person has not seen must not be chosen.
    const seen = ofRun.filter((item) => draftOf(item).top !== undefined);
    if (barred !== list.length > 0) settle();
    barred = list.length > 0;
    return barred && div.bulk({ key: 'picks', role: 'region', 'aria-label': 'Chosen items' },
      span(`${plural(list.length, 'call')} of ${list[0].tool} chosen`), list.length < seen.length && button.plain({ onclick: () => seen.forEach(({ id }) => picked.add(id)) }, seen.length < ofRun.length ? `Choose the ${seen.length} seen so far` : `Choose all ${seen.length} of the run`), span.grow(),
      button.primary({ onclick: ({ detail }) => detail < 2 && approve(list) }, `Approve ${list.length}`), button({ onclick: ({ detail }) => detail < 2 && reject(list) }, `Reject ${list.length}`),
      button.plain({ onclick: () => picked.clear() }, 'Clear'));
  }
  return {
    canPick, pick, bar, clear: () => picked.clear(),
    /** The control that chooses an item. */
    picker: (item) => canPick(item) && label.check(input({ type: 'checkbox', checked: picked.has(item.id), 'aria-label': `Choose ${item.tool}`, onchange: () => pick(item) }), 'Choose'),
  };
}
