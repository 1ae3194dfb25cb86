// The windowed list: the document has only the rows near the view, between two blocks as high as the rows before and after.
import { tags, render, perFrame } from './dom.js';
import { main } from './page.js';

const { div } = tags;
/** Rows are drawn and measured in chunks. They are siblings all the same: a row keeps its element if others come before it. */
const CHUNK = 10;
/** The keys of what stands in the place of other rows. */
const [BEFORE, AFTER] = [Symbol('before'), Symbol('after')];
/** How far beyond the view rows are drawn, in pixels. */
const MARGIN = 300;

export class List {
  /** `row(index)` makes one of `count()` rows of a height, or with `measured` one of their own; `heading()` makes what stands above them. */
  constructor({ name, count, row, height, measured, onwindow, heading }) {
    Object.assign(this, { name, count, row, height, measured, onwindow, heading, heights: [], tops: [0], size: 0, painted: 0 });
    this.paint = this.paint.bind(this);
    this.later = perFrame(this.paint);
    main().addEventListener('scroll', this.later, { passive: true });
    this.resized = new ResizeObserver(this.later);
    this.resized.observe(main());
  }

  /** The element of the list, whose active row is that of an id. */
  view(props, active) {
    return div[this.name]({ key: this.name, opaque: true, tabindex: '0', 'aria-rowcount': this.count(), 'aria-activedescendant': active,
      drawn: (host) => { this.host = host; this.paint(); }, ...props });
  }

  /** Returns where a chunk begins. The sums of heights are kept up to the first chunk whose height has changed. */
  top(chunk) {
    const { tops, heights } = this;
    for (let i = tops.length - 1; i < chunk; i++) tops.push(tops[i] + (heights[i] ?? Math.min(CHUNK, this.size - i * CHUNK) * this.height));
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
    const count = this.count();
    if (count !== this.size) this.forget(Math.floor(Math.min(count, this.size) / CHUNK));
    this.size = count;
    const chunks = Math.ceil(count / CHUNK);
    const y = main().getBoundingClientRect().top - this.host.getBoundingClientRect().top;
    const first = this.at(y - MARGIN, chunks);
    const end = Math.min(chunks, this.at(y + main().clientHeight + MARGIN, chunks) + 1);
    const block = (key, height) => div({ key, role: 'presentation', style: { height: `${height}px` } });
    const [from, to] = [first * CHUNK, Math.min(count, end * CHUNK)];
    [this.from, this.to] = [from, to];
    const painted = ++this.painted;
    render(this.host, this.heading?.(), block(BEFORE, this.top(first)), Array.from({ length: to - from }, (_, i) => this.row(from + i)), block(AFTER, this.top(chunks) - this.top(end)));
    // What is called once it is drawn may scroll, and has painted it anew.
    if (painted !== this.painted) return;
    this.onwindow?.(from, to);
    if (this.measured) this.measure(first, end);
  }

  /** The element of a row, if it is in the document. */
  drawn(index) {
    return index >= this.from && index < this.to ? this.host.children[index - this.from + (this.heading ? 2 : 1)] : null;
  }

  measure(first, end) {
    let changed = end;
    for (let chunk = end - 1; chunk >= first; chunk--) {
      const [top, last] = [this.drawn(chunk * CHUNK), this.drawn(Math.min(this.to, (chunk + 1) * CHUNK) - 1)];
      const height = last.offsetTop + last.offsetHeight - top.offsetTop;
      if (this.heights[chunk] !== height) changed = chunk;
      this.heights[chunk] = height;
    }
    if (changed === end) return;
    this.tops.length = Math.min(this.tops.length, changed + 1);
    this.later();
  }

  /** Drops the heights from a chunk on. */
  forget(chunk) {
    this.heights.length = Math.min(this.heights.length, chunk);
    this.tops.length = Math.min(this.tops.length, chunk + 1);
  }

  /** Scrolls a row into view. Rows on the way get their heights, so that it takes several tries. */
  show(index, block = 'nearest') {
    if (!this.host?.isConnected || !(index >= 0 && index < this.count())) return;
    for (let tries = 0; tries < 4; tries++) {
      const row = this.drawn(index);
      if (row) row.scrollIntoView({ block });
      else main().scrollTop += this.host.getBoundingClientRect().top + this.top(Math.floor(index / CHUNK)) - main().clientHeight / 2;
      this.paint();
    }
  }

  /** The keys that move from a row to another: `current()` is its index, `select(index)` selects one. */
  keys(noun, current, select) {
    const move = (to) => () => {
      const index = Math.max(0, Math.min(this.count() - 1, to(current())));
      select(index);
      this.show(index);
    };
    const [next, before] = [move((index) => index + 1), move((index) => index - 1)];
    return { j: [`Next ${noun}`, next], k: [`${noun[0].toUpperCase()}${noun.slice(1)} before`, before], ArrowDown: [null, next], ArrowUp: [null, before],
      End: [`Last ${noun}`, move(() => Infinity)], Home: [`First ${noun}`, move(() => 0)] };
  }

  close() {
    main().removeEventListener('scroll', this.later);
    this.resized.disconnect();
  }
}
