// A map of the whole run beside its rows: where it failed, where it waited, and where it spent tokens. A click goes there.
import { tags } from '../lib/dom.js';
import { tokens } from '../lib/format.js';
import { answerOf, isError, isWait } from './model.js';

const { div, i } = tags;
const PARTS = 120;
const maps = new WeakMap();

/** Sums the nodes by their place in the log. A long run is summed at most once in two seconds. */
function summed(model) {
  const known = maps.get(model);
  if (known?.head === model.head || (model.nodes.length > 5000 && performance.now() - known?.at < 2000)) return known.parts;
  const parts = Array.from({ length: Math.min(PARTS, model.head + 1) }, () => ({ spent: 0 }));
  for (const node of model.nodes) {
    if (!node || node.status === 'not_started' || node.kind.type === 'brain') continue;
    const part = parts[Math.min(parts.length - 1, Math.floor((node.seq / (model.head + 1)) * parts.length))];
    const { input = 0, output = 0 } = (node.kind.type === 'answer' && answerOf(node.kind)?.metadata?.usage) || {};
    if (isError(node)) part.error ??= node;
    if (isWait(node)) part.wait ??= node;
    if (input + output) part.cost ??= node;
    part.spent += input + output;
  }
  maps.set(model, { head: model.head, at: performance.now(), parts });
  return parts;
}

const WORDS = { error: () => 'Error', wait: () => 'Wait', cost: (spent) => tokens({ input: spent }) };

export default function minimap({ model, reveal }) {
  const parts = summed(model);
  const most = Math.max(...parts.map(({ spent }) => spent));
  // The keys `e` and `w` reach the same places, so that the marks are no stops of the tab key.
  return div.minimap({ key: 'map', 'aria-hidden': 'true' }, parts.map((part, at) => Object.keys(WORDS).map((kind) => part[kind] && i({
    key: kind + at, class: kind, title: `${WORDS[kind](part.spent)} at event ${part[kind].seq}`, onclick: () => reveal(part[kind]),
    style: { top: `${(at / parts.length) * 100}%`, width: kind === 'cost' ? `${Math.ceil((part.spent / most) * 14)}px` : '' },
  }))));
}
