// The rows of a run's nodes in reading order, for the views that list nodes.
import { List } from '../lib/windowed_list.js';

/** The ids of the nodes that a view shows, depth first. They stay sorted, so that a change costs a search and not a walk. */
class Rows {
  constructor(model, shows, folded) {
    Object.assign(this, { model, shows, folded });
    this.sort();
    model.rows.add(this);
  }

  sort() {
    this.ids = [];
    const walk = (id) => {
      if (this.shows(this.model.nodes[id], this.model)) this.ids.push(id);
      if (!this.folded.has(id)) this.model.children.get(id)?.forEach(walk);
    };
    if (this.model.nodes[0]) walk(0);
  }

  /** The ids from the root to a node. A child's id is greater than those of the children before it. */
  chain(id) {
    const chain = [];
    for (let at = id; at != null; at = this.model.nodes[at].parent) chain.unshift(at);
    return chain;
  }

  /** Finds the place of a node, or of the first row after it. */
  place(id) {
    const chain = this.chain(id);
    const precedes = (other) => {
      const one = this.chain(other);
      const at = one.findIndex((part, i) => part !== chain[i]);
      return at < 0 ? one.length < chain.length : one[at] < chain[at];
    };
    let [low, high] = [0, this.ids.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (precedes(this.ids[middle])) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  take(node) {
    const last = this.ids.length - 1;
    const at = this.ids[last] === node.id ? last : this.place(node.id);
    const is = this.ids[at] === node.id;
    const shows = this.shows(node, this.model) && !this.chain(node.parent).some((id) => this.folded.has(id));
    if (is !== shows) this.ids.splice(at, is ? 1 : 0, ...(shows ? [node.id] : []));
  }
}

/** A windowed list of nodes. `row(node, depth, index)` draws one that `shows`; what is below one that `nests` is deeper. */
export function nodeList({ model, view, select }, { shows, nests, row, folded = new Set(), ...options }) {
  const rows = new Rows(model, shows, folded);
  const depth = ({ parent }) => (parent == null ? 0 : depth(model.nodes[parent]) + Number(nests(model.nodes[parent])));
  const draw = (index) => {
    const node = model.nodes[rows.ids[index]];
    return row(node, depth(node), index);
  };
  const list = new List({ count: () => rows.ids.length, row: draw, ...options });
  const sortAnew = () => {
    rows.sort();
    list.forget(0);
  };
  return {
    list, rows,
    /** Lists the nodes again, once other ones are shown. */
    sort: sortAnew,
    keys: list.keys('row', () => (view.selected == null ? -1 : rows.place(view.selected)), (index) => select(model.nodes[rows.ids[index]], true)),
    /** Scrolls a node into view, and unfolds what it is in. */
    reveal(node) {
      const inside = rows.chain(node.parent).filter((id) => folded.delete(id));
      if (inside.length) sortAnew();
      list.show(Math.min(rows.place(node.id), rows.ids.length - 1), 'center');
    },
    fold(node) {
      if (!folded.delete(node.id)) folded.add(node.id);
      sortAnew();
    },
    close() {
      model.rows.delete(rows);
      list.close();
    },
  };
}
