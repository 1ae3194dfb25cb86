// A run as the page has it: the server's fold of its log, kept current by one stream. The page folds no events.
import { get, at, follow } from '../lib/api.js';

const OVER = ['completed', 'failed', 'cancelled'];

/** What is counted of the nodes, for the sentence about the run. */
const COUNTED = {
  call: ({ kind }) => kind.type === 'call' && kind.result?.type !== 'denied',
  person: ({ kind }) => (kind.approval ?? (kind.type === 'budget' && kind))?.outcome?.type === 'decided',
  file: ({ kind }) => kind.type === 'file',
  retry: (node) => node.kind.type === 'retry' || (node.kind.type === 'answer' && node.kind.outcome?.type === 'failed'),
};

export const isError = (node) => node.status === 'failed' || node.kind.type === 'retry';
export const isWait = ({ kind }) => Boolean(kind.approval || kind.waits?.length || kind.type === 'budget');

export class RunModel {
  constructor(id, onchange, onlink) {
    Object.assign(this, { id, onchange, onlink, run: null, head: -1, state: 'loading', trouble: null, rows: new Set() });
    this.clear();
  }

  clear() {
    Object.assign(this, { nodes: [], children: new Map(), open: new Map(), counts: { call: 0, person: 0, file: 0, retry: 0 } });
  }

  async load() {
    this.trouble = null;
    try {
      const [run, { head, timeline, spent }] = await Promise.all([get(`/runs${at(this.id)}`), get(`/runs${at(this.id, 'timeline')}`)]);
      if (this.closed) return;
      this.clear();
      for (const node of timeline.nodes) this.take(node);
      Object.assign(this, { run, head });
      this.fields({ ...timeline, spent });
      this.follow();
    } catch (error) {
      this.trouble = error;
    }
    this.onchange();
  }

  fields({ spent, currency, usage, worker, answers }) {
    Object.assign(this, { spent: spent ?? this.spent, currency: currency ?? this.currency, usage, worker, answers });
  }

  follow() {
    this.stop?.();
    if (this.isOver()) {
      this.state = 'ended';
      return this.onlink('live');
    }
    this.stop = follow(`/runs${at(this.id, 'timeline')}`, {
      after: this.head,
      events: { nodes: (change) => this.merge(change), delta: (delta) => this.delta(delta), settled: () => this.refresh() },
      onstate: (state) => {
        this.state = state;
        this.refresh();
        this.onlink(state === 'lost' ? 'lost' : 'live');
      },
    });
  }

  /** Replaces or adds one node; all that depends on it is brought up to date without a look at the others. */
  take(node) {
    const { nodes, children, open, counts } = this;
    const before = nodes[node.id];
    nodes[node.id] = node;
    for (const name in COUNTED) counts[name] += Number(COUNTED[name](node)) - Number(Boolean(before && COUNTED[name](before)));
    if (!before && node.parent != null) {
      if (!children.has(node.parent)) children.set(node.parent, []);
      const list = children.get(node.parent);
      list.push(node.id);
      if (list.at(-2) > node.id) list.sort((a, b) => a - b);
    }
    if (node.status === 'running') open.set(node.path, node.id);
    else if (open.get(node.path) === node.id) open.delete(node.path);
    for (const rows of this.rows) rows.take(node);
  }

  merge(change) {
    if (change.seq <= this.head) return;
    for (const node of change.nodes.sort((a, b) => a.id - b.id)) this.take(node);
    this.fields(change);
    this.head = change.seq;
    this.refresh();
    this.onchange();
  }

  /** Appends a streamed piece to the open answer, or sets a call's progress. The event of the whole answer replaces it. */
  delta(delta) {
    const node = this.nodes[this.open.get(delta.path)];
    const change = (fields) => {
      this.nodes[node.id] = { ...node, kind: { ...node.kind, ...fields } };
      this.onchange();
    };
    if (delta.kind === 'progress') {
      if (node?.kind.type === 'call') change({ progress: delta.text });
    } else if (node?.kind.type === 'answer') {
      const stream = piece(node.kind.stream, delta);
      if (stream) change({ stream });
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
    return OVER.includes(this.run.status) && this.head >= this.run.head;
  }

  of(id) {
    return (this.children.get(id) ?? []).map((child) => this.nodes[child]);
  }

  /** Lists the nodes that have begun and pass a test, by their events. */
  select(test) {
    return this.nodes.filter((node) => node && node.status !== 'not_started' && test(node)).sort((a, b) => a.seq - b.seq);
  }

  /** Finds the node that an event began, or the last one before it. */
  nodeAt(seq) {
    return this.select((node) => node.seq <= seq).at(-1);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.stop?.();
  }
}

/** Adds a piece to a stream. An older attempt's piece and one that is there already change nothing: `null`. */
function piece(stream, delta) {
  const { attempt = 0, generation = 0 } = delta;
  const order = stream ? attempt - stream.attempt || generation - stream.generation : 1;
  const now = order > 0 ? { attempt, generation, pieces: 0, parts: [] } : stream;
  if (order < 0 || delta.n < now.pieces) return null;
  const at = now.parts.findIndex((part) => part.part === delta.part && part.call === delta.call && part.kind === delta.kind);
  const parts = at < 0 ? [...now.parts, { ...delta }] : now.parts.with(at, { ...now.parts[at], text: now.parts[at].text + delta.text });
  return { ...now, gap: now.gap || delta.n > now.pieces, pieces: delta.n + 1, parts };
}
