// The calls of one answer that wait for approvals belong together, wherever they are shown.

/** The answer whose call an item is; each other item stands for itself. */
export const batchOf = ({ run, call, kind, id }) => (kind === 'approval' ? `${run} ${call.replace(/\.\d+$/, '')}` : id);
/** The answers of which several calls have waited at once: their card stays one until the last call is decided. */
const several = new Set();

/** Groups items by their answers, each at the place of its first item. */
export function batches(items) {
  const groups = new Map();
  for (const item of items) {
    const key = batchOf(item);
    if (groups.has(key)) several.add(key);
    groups.set(key, [...groups.get(key) ?? [], item]);
  }
  return [...groups].map(([key, list]) => ({ key, list, isBatch: several.has(key) }));
}

/** The tools of some calls, each with how often it is called. */
export function toolsOf(list) {
  const counts = new Map();
  for (const { tool } of list) counts.set(tool, (counts.get(tool) ?? 0) + 1);
  return [...counts];
}

/** The last call of the answer that a call is part of: a run shows the card of the answer below it. */
export const lastCall = (node, model) => (model.children.get(node.parent) ?? []).map((id) => model.nodes[id]).findLast(({ kind }) => kind.type === 'call') ?? node;
