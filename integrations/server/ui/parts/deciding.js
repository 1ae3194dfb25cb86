// The pane beside a run that waits for people: what they are asked, until something else is selected.
import { tags } from '../lib/dom.js';
import { plural } from '../lib/format.js';
import batch from './batch.js';
import { batches } from './batches.js';
import { draftOf, isOver } from './drafts.js';

const { div, h2, header, span } = tags;

/** Draws the items. `several` decides some of them at once; the item of the call that is selected in the transcript is marked. */
export default function deciding(items, several, call) {
  const open = items.filter((item) => !isOver(draftOf(item))).length;
  const drawnAs = (item) => ({ pick: several?.picker(item), selected: item.call === call });
  return [
    header(div.paneTitle(h2(open ? `${plural(open, 'decision')} to make` : 'Decided elsewhere'), span.grow())),
    div.paneBody({ key: 'deciding', tabindex: '0', role: 'region', 'aria-label': 'What waits for you' }, batches(items).map((group) => batch(group, { draw: drawnAs }))),
    several?.bar(),
  ];
}
