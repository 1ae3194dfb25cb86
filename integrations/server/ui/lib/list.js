// The windowed list: the document has only the rows near the view, between two blocks as high as the rows before and after.
import { tags, render, perFrame } from './dom.js';

const { div } = tags;

/** Rows stand in chunks, which are drawn and measured together. */
const CHUNK = 10;
/** How far beyond the view rows are drawn, in pixels. */
const MARGIN = 300;

/** A list of `count` rows. `row(index)` makes a row; all have the given height, or with `measured` one of their own. */
export class List {
  constructor({ scroller, host, row, height, measured = false, onwindow }) {
    Object.assign(this, { scroller, row, height, measured, onwindow, count: 0, heights: [], tops: [0] });
    this.draw = perFrame(() => this.paint());
    scroller.addEventListener('scroll', this.draw, { passive: true });
    this.sizes = new ResizeObserver(this.draw);
    this.sizes.observe(scroller);
    this.attach = (to) => { this.host = to; };
    this.host = host;
  }

  setCount(count) {
    if (count !== this.count) this.forget(Math.floor(Math.min(count, this.count) / CHUNK));
    this.count = count;
    this.paint();
  }

  /** Drops the heights from a chunk on. */
  forget(chunk) {
    this.heights.length = Math.min(this.heights.length, chunk);
    this.tops.length = Math.min(this.tops.length, chunk + 1);
  }

  /** Returns where a chunk begins. The sums of heights are kept up to the first chunk whose height has changed. */
  top(chunk) {
    const { tops, heights } = this;
    for (let i = tops.length - 1; i < chunk; i++) {
      tops.push(tops[i] + (heights[i] ?? Math.min(CHUNK, this.count - i * CHUNK) * this.height));
    }
    return tops[chunk];
  }

  /** Finds the chunk at a place, by halves. */
  at(y, chunks) {
    let [low, high] = [0, chunks];
    this.top(chunks);
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.tops[middle] <= y) low = middle;
      else high = middle;
    }
    return low;
  }

  paint() {
    if (!this.host?.isConnected) return;
    const chunks = Math.ceil(this.count / CHUNK);
    const y = this.scroller.getBoundingClientRect().top - this.host.getBoundingClientRect().top;
    const first = this.at(y - MARGIN, chunks);
    const end = Math.min(chunks, this.at(y + this.scroller.clientHeight + MARGIN, chunks) + 1);
    const drawn = [];
    for (let chunk = first; chunk < end; chunk++) {
      const rows = [];
      for (let i = chunk * CHUNK; i < Math.min(this.count, (chunk + 1) * CHUNK); i++) rows.push(this.row(i));
      drawn.push(div.chunk({ key: chunk, role: 'presentation' }, rows));
    }
    const space = (key, height) => div({ key, role: 'presentation', style: { height: `${height}px` } });
    render(this.host, space('before', this.top(first)), drawn, space('after', this.top(chunks) - this.top(end)));
    this.onwindow?.(first * CHUNK, Math.min(this.count, end * CHUNK));
    if (this.measured) this.measure(first, end);
  }

  measure(first, end) {
    let changed = end;
    for (let chunk = end - 1; chunk >= first; chunk--) {
      const height = this.node(chunk, first).offsetHeight;
      if (this.heights[chunk] !== height) changed = chunk;
      this.heights[chunk] = height;
    }
    if (changed === end) return;
    this.tops.length = Math.min(this.tops.length, changed + 1);
    this.draw();
  }

  node(chunk, first = this.host.children[1]?.$v.key) {
    return this.host.children[chunk - first + 1];
  }

  /** Scrolls a row into view. Rows on the way get their heights, so that it takes several tries. */
  show(index, block = 'nearest') {
    if (!this.host?.isConnected || !(index >= 0 && index < this.count)) return;
    const chunk = Math.floor(index / CHUNK);
    for (let tries = 0; tries < 4; tries++) {
      const row = this.node(chunk)?.children[index % CHUNK];
      if (row) row.scrollIntoView({ block });
      else this.scroller.scrollTop += this.host.getBoundingClientRect().top + this.top(chunk) - this.scroller.clientHeight / 2;
      this.paint();
    }
  }

  close() {
    this.scroller.removeEventListener('scroll', this.draw);
    this.sizes.disconnect();
  }
}
export { List as FixedList };
