// A map of the whole run beside its rows: where it failed, where it waited, and where it spent tokens. A click goes there.
import { tags } from '../lib/dom.js';
import { compact } from '../lib/format.js';
import { isError, isWait } from './model.js';

const { div, i } = tags;
const PARTS = 120;
const maps = new WeakMap();

const spent = ({ kind: { type, outcome } }) => {
  const { usage } = (outcome?.answer ?? outcome)?.metadata ?? {};
  return type === 'answer' && usage ? (usage.input ?? 0) + (usage.output ?? 0) : 0;
};

/** Sums the nodes by their place in the log. A long run is summed at most once in two seconds. */
function summed(model) {
  const known = maps.get(model);
  if (known?.head === model.head || (model.nodes.length > 5000 && performance.now() - known?.at < 2000)) return known.parts;
  const parts = Array.from({ length: Math.min(PARTS, model.head + 1) }, () => ({ tokens: 0 }));
  for (const node of model.nodes) {
    if (!node || node.status === 'not_started' || node.kind.type === 'brain') continue;
    const part = parts[Math.min(parts.length - 1, Math.floor((node.seq / (model.head + 1)) * parts.length))];
    if (isError(node)) part.error ??= node;
    if (isWait(node)) part.wait ??= node;
    part.tokens += spent(node);
    if (spent(node)) part.cost ??= node;
  }
  maps.set(model, { head: model.head, at: performance.now(), parts });
  return parts;
}

const WORDS = { error: () => 'Error', wait: () => 'Wait', cost: ({ tokens }) => `${compact(tokens)} tokens` };

export function minimap(model, reveal) {
  const parts = summed(model);
  const most = Math.max(...parts.map(({ tokens }) => tokens));
  const marks = parts.flatMap((part, at) => Object.keys(WORDS).filter((kind) => part[kind]).map((kind) => [kind, part, at]));
  // The keys `e` and `w` reach the same places, so that the marks are no stops of the tab key.
  return marks.length > 0 && div.minimap({ key: 'map', 'aria-hidden': 'true' }, marks.map(([kind, part, at]) => i({
    key: `${kind}${at}`, class: kind, title: `${WORDS[kind](part)} at event ${part[kind].seq}`, onclick: () => reveal(part[kind]),
    style: { top: `${(at / parts.length) * 100}%`, width: kind === 'cost' ? `${Math.ceil((part.tokens / most) * 14)}px` : null },
  })));
}
