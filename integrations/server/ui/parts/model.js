// A run as the page has it: the server's fold of its log, kept current by one stream. The page folds no events.
import { get, at, follow } from '../lib/api.js';

export class RunModel {
  constructor(id, onchange, onlink) {
    Object.assign(this, { id, onchange, onlink, run: null, nodes: [], children: new Map(), head: -1, state: 'loading', trouble: null, version: 0 });
  }

  async load() {
    this.trouble = null;
    try {
      const [run, { head, timeline }] = await Promise.all([get(`/runs${at(this.id)}`), get(`/runs${at(this.id, 'timeline')}`)]);
      if (this.closed) return;
      this.run = run;
      this.fields(timeline);
      this.nodes = timeline.nodes;
      this.head = head;
      this.index();
      this.follow();
    } catch (error) {
      this.trouble = error;
    }
    this.onchange();
  }

  fields({ costs, currency, usage, worker, answers }) {
    Object.assign(this, { costs: costs ?? this.costs, currency: currency ?? this.currency, usage: usage ?? this.usage, worker, answers: answers ?? this.answers });
  }

  follow() {
    this.stop?.();
    if (this.isOver()) {
      this.state = 'ended';
      return this.onlink('live');
    }
    this.stop = follow(`/runs${at(this.id, 'timeline')}`, {
      after: this.head,
      events: {
        nodes: (change) => this.merge(change),
        delta: (delta) => this.delta(delta),
        settled: () => this.refresh(),
      },
      onstate: (state) => {
        this.state = state;
        this.refresh();
        this.onlink(state === 'lost' ? 'lost' : 'live');
      },
    });
  }

  index() {
    this.children = new Map();
    for (const node of this.nodes) {
      if (node?.parent == null) continue;
      if (!this.children.has(node.parent)) this.children.set(node.parent, []);
      this.children.get(node.parent).push(node.id);
    }
    this.version++;
  }

  merge(change) {
    if (change.seq <= this.head) return;
    for (const node of change.nodes) this.nodes[node.id] = node;
    this.fields(change);
    this.head = change.seq;
    this.index();
    this.refresh();
    this.onchange();
  }

  /** Appends a streamed piece to the open answer, or sets a call's progress. The event of the whole answer replaces it. */
  delta(delta) {
    for (let i = this.nodes.length - 1; i >= 0; i--) {
      const node = this.nodes[i];
      if (!node || node.path !== delta.path) continue;
      if (delta.kind === 'progress' && node.kind.type === 'call') {
        this.nodes[i] = { ...node, kind: { ...node.kind, progress: delta.text } };
      } else if (node.kind.type === 'answer' && node.status === 'running') {
        const stream = piece(node.kind.stream, delta);
        if (!stream) return;
        this.nodes[i] = { ...node, kind: { ...node.kind, stream } };
      } else continue;
      this.version++;
      this.onchange();
      return;
    }
  }

  /** Reads the run's row again: its status and what waits come from the server only. */
  refresh() {
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      try {
        this.run = await get(`/runs${at(this.id)}`);
        if (this.isOver() && this.state !== 'ended') this.follow();
        this.onchange(true);
      } catch (error) {
        // The stream reports a lost connection.
        if (error.status === 401) this.onlink('out');
      }
    }, 80);
  }

  /** Returns whether the run has ended and the page has all of it, so that nothing follows. */
  isOver() {
    return ['completed', 'failed', 'cancelled'].includes(this.run.status) && this.head >= this.run.head;
  }

  of(id) {
    return (this.children.get(id) ?? []).map((child) => this.nodes[child]);
  }

  /** Finds the node that an event began, or the last one before it. */
  nodeAt(seq) {
    let best = null;
    for (const node of this.nodes) if (node && node.status !== 'not_started' && node.seq <= seq && (!best || node.seq >= best.seq)) best = node;
    return best;
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.stop?.();
  }
}

function piece(stream, delta) {
  const begins = [delta.attempt ?? 0, delta.generation ?? 0];
  const order = stream ? begins[0] - stream.attempt || begins[1] - stream.generation : 1;
  if (order < 0) return null;
  const now = order > 0 ? { attempt: begins[0], generation: begins[1], pieces: 0, parts: [] } : stream;
  if (delta.n < now.pieces) return null;
  const same = (part) => part.part === delta.part && part.call === delta.call && part.kind === delta.kind;
  const parts = now.parts.some(same) ? now.parts.map((part) => (same(part) ? { ...part, text: part.text + delta.text } : part)) : [...now.parts, { ...delta }];
  return { ...now, gap: now.gap || delta.n > now.pieces, pieces: delta.n + 1, parts };
}

/** The known cost of a run, and how many answers have no known cost. */
export function costOf({ costs }) {
  const known = (costs?.calls ?? []).flatMap(({ cost }) => (cost?.known === undefined ? [] : Number(cost.known)));
  return known.length ? { sum: known.reduce((a, b) => a + b), unknown: costs.calls.length - known.length, currency: costs.currency } : null;
}
