// JSON patches as lines: what goes, and what comes.
import { tags } from '../lib/dom.js';
import { brief, line } from '../lib/format.js';
import { some, text } from './change.js';

const { div, p } = tags;

const MOST = 200;
const shown = (value) => line(value !== null && typeof value === 'object' && Object.keys(value).length ? brief(value, MOST) : text(value), MOST);
const names = (path) => path.split('/').slice(1).map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
/** The value at a path of a document, or `undefined`. */
const valueAt = (document, path) => names(path).reduce((value, name) => value?.[name], document);

/** The lines of one operation. What a replaced value was stands in the document `before`, if that is known. */
function linesOf({ op, path, from, value }, before) {
  const place = names(path).join(' › ') || 'whole state';
  if (op === 'move' || op === 'copy') return [['kept', `${place}: ${op === 'move' ? 'moved' : 'copied'} from ${names(from).join(' › ')}`]];
  // The first state comes field by field.
  if (!path && op !== 'remove' && before == null && value !== null && typeof value === 'object') return Object.entries(value).map(([name, one]) => ['come', `+ ${name}: ${shown(one)}`]);
  // Before the first state there is none.
  const isNew = op === 'add' || before === null;
  const was = isNew ? undefined : valueAt(before, path);
  const isKnown = isNew || was !== undefined;
  return [op !== 'add' && was !== undefined ? ['out', `− ${place}: ${shown(was)}`] : op === 'remove' && ['out', `− ${place}`],
    op !== 'remove' && [isKnown ? 'come' : 'kept', `${isKnown ? '+' : '~'} ${place}: ${shown(value)}`]].filter(Boolean);
}

/** Draws a JSON Patch (RFC 6902) of the document `before`, which may be unknown. */
export function patchList(patch, before) {
  if (!patch?.length) return p.soft('The state does not change.');
  return some(patch, 80, (list) => div.linesDiff({ tabindex: '0', role: 'group', 'aria-label': 'What is changed', dir: 'auto' },
    list.flatMap((one, i) => linesOf(one, before).map(([kind, words], n) => div({ key: `${i} ${n} ${kind}`, class: kind }, words)))));
}
