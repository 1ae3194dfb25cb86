// Windowed lists: only rows in view are in the document. Both read the scroll position once per frame.
import { tags, render, perFrame } from './dom.js';

const { div } = tags;

/** A list of rows of one fixed height. `row(index)` makes a row's virtual node. */
export class FixedList {
  constructor({ scroller, host, height, row, onwindow }) {
    Object.assign(this, { scroller, host, height, row, onwindow, count: 0, first: 0, last: -1 });
    this.draw = perFrame(() => this.paint());
    scroller.addEventListener('scroll', this.draw, { passive: true });
    this.sizes = new ResizeObserver(this.draw);
    this.sizes.observe(scroller);
  }

  setCount(count) {
    this.count = count;
    this.paint();
  }

  top() {
    return this.host.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top + this.scroller.scrollTop;
  }

  paint() {
    if (!this.host.isConnected) return;
    const from = this.scroller.scrollTop - this.top();
    const first = Math.max(0, Math.floor(from / this.height) - 8);
    const last = Math.min(this.count, Math.ceil((from + this.scroller.clientHeight) / this.height) + 8);
    Object.assign(this, { first, last });
    this.host.style.setProperty('height', `${this.count * this.height}px`);
    const rows = [];
    for (let i = first; i < last; i++) rows.push(this.row(i));
    // Rows are laid out normally below one offset, so that they need no style of their own.
    render(this.host, div.window({ style: { transform: `translateY(${first * this.height}px)` }, role: 'presentation' }, rows));
    this.onwindow?.(first, last);
  }

  show(index) {
    const y = this.top() + index * this.height;
    const { scrollTop, clientHeight } = this.scroller;
    if (y < scrollTop + 120 || y > scrollTop + clientHeight - 80) this.scroller.scrollTop = y - clientHeight / 3;
    this.paint();
  }

  close() {
    this.scroller.removeEventListener('scroll', this.draw);
    this.sizes.disconnect();
  }
}

const CHUNK = 30;

/** A list of rows of any height. Rows stand in chunks; a chunk out of view is an empty block of the height it had. */
export class FlowList {
  constructor({ scroller, host, row, estimate = 46 }) {
    Object.assign(this, { scroller, host, row, estimate, items: [], heights: [] });
    this.draw = perFrame(() => this.paint());
    scroller.addEventListener('scroll', this.draw, { passive: true });
    this.sizes = new ResizeObserver(this.draw);
    this.sizes.observe(scroller);
  }

  set(items) {
    this.items = items;
    this.paint();
  }

  paint() {
    if (!this.host.isConnected) return;
    const offset = this.host.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top;
    const view = this.scroller.clientHeight;
    const blocks = [];
    const seen = [];
    let y = offset;
    for (let from = 0, index = 0; from < this.items.length; from += CHUNK, index++) {
      const count = Math.min(CHUNK, this.items.length - from);
      const height = this.heights[index] ?? count * this.estimate;
      const near = y < view + 600 && y + height > -600;
      y += height;
      if (near) seen.push(index);
      const rows = near ? this.items.slice(from, from + count).map(this.row) : null;
      blocks.push(div.chunk({ key: index, 'data-chunk': index, role: 'presentation', style: near ? {} : { height: `${height}px` }, memo: near ? null : ['far', height] }, rows));
    }
    render(this.host, blocks);
    for (const index of seen) {
      const node = this.host.children[index];
      if (node) this.heights[index] = node.offsetHeight;
    }
  }

  /** Scrolls an item into view. */
  show(index, block = 'center') {
    const chunk = Math.floor(index / CHUNK);
    for (let tries = 0; tries < 3; tries++) {
      const host = this.host.children[chunk];
      if (!host) return;
      const node = host.children[index % CHUNK];
      (node ?? host).scrollIntoView({ block: node ? block : 'start' });
      this.paint();
      if (node) return;
    }
  }

  close() {
    this.scroller.removeEventListener('scroll', this.draw);
    this.sizes.disconnect();
  }
}
