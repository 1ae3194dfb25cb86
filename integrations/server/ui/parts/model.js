// A run as the page has it: the server's fold of its log, kept current by one stream. The page folds no events.
import { get, follow } from '../lib/api.js';
import { standing } from '../lib/cause.js';
import { at } from '../lib/page.js';
import { hasEnded } from './common.js';
import { follow as followDrafts } from './drafts.js';

/** What is counted of the nodes, for the sentence about the run. */
const COUNTED = {
  call: ({ kind }) => kind.type === 'call' && kind.result?.type !== 'denied',
  person: ({ kind }) => (kind.approval ?? (kind.type === 'budget' && kind))?.outcome?.type === 'decided',
  file: ({ kind }) => kind.type === 'file',
  retry: ({ kind }) => kind.type === 'retry' || (kind.type === 'answer' && kind.outcome?.type === 'failed'),
};

/** Whether an answer is one to a question that a guard, a plugin or a step asks beside the loop. */
export const isQuestion = ({ kind }) => kind.type === 'answer' && kind.question != null;
/** The iteration that an answer is the answer of. */
export function iterationOf(node, model) {
  const { kind } = model.nodes[node.parent] ?? {};
  return kind?.type === 'iteration' && node.kind.type === 'answer' && !isQuestion(node) ? kind.number + 1 : null;
}
/** The name of a stage in words: what a map runs has a number from 0 on. */
export function stageName({ kind, parent }, model) {
  const [, number] = /^#(\d+)$/.exec(kind.name) ?? [];
  return number === undefined ? kind.name : `${model.nodes[parent]?.kind.stage === 'repeat' ? 'Round' : 'Item'} ${Number(number) + 1}`;
}
/** How many members of a group are shown with what they have done, when a run is opened. */
const MANY = 8;
/** The nodes that are folded when a run is opened: what many members of a group have done without a failure. */
export const foldedAtFirst = (model) => new Set(model.nodes.filter((node) => node?.kind.type === 'stage' && node.status === 'done' && model.nodes[node.parent]?.kind.group?.count > MANY).map(({ id }) => id));
/** Where a node stands, in words: `Carriers › Post › Pick-up`, or `Chat, iteration 4`. */
export function placeOf(node, model) {
  const names = [];
  for (let at = node; at?.parent != null; at = model.nodes[at.parent]) {
    if (at.kind.type === 'stage') names.unshift(stageName(at, model));
    else if (at.kind.type === 'iteration') names.unshift(`iteration ${at.kind.number + 1}`);
  }
  return names.map((name, i) => (i === 0 ? name : name.startsWith('iteration ') ? `, ${name}` : ` › ${name}`)).join('');
}
export const isError = (node) => node.status === 'failed' || node.kind.type === 'retry';
/** Whether a limit has cut off what is at a path, or something in it. */
const isCutOff = (path, cut) => cut === path || Boolean(cut?.startsWith(`${path}/`));
/** What a node does now: what runs in a run that waits, waits; a stage in which a limit has cut off a loop is not simply done. */
export const standingOf = ({ status, kind, path }, { run }) => (status === 'running' && !hasEnded(run) ? standing(run) : status === 'done' && kind.type === 'stage' && isCutOff(path, run.cut_off) ? 'limited' : status);
/** The attempts to get one answer, in their order: in a fork those of its own, if it has asked again. */
export function attempts(node, model) {
  const all = (model.children.get(node.parent) ?? []).map((id) => model.nodes[id]).filter(({ kind, path }) => kind.type === 'answer' && path === node.path);
  const shared = model.run.forked_from?.seq ?? -1;
  const own = all.filter(({ seq }) => seq > shared);
  return own.length ? own : all;
}
export const isLastAttempt = (node, model) => attempts(node, model).at(-1) === node;
/** The failed attempts of one kind of work that a retry ends: those right before it with the same message, and itself. */
export function retriesOf(node, model) {
  const all = (model.children.get(node.parent) ?? []).map((id) => model.nodes[id]).filter(({ kind, path }) => kind.type === 'retry' && path === node.path);
  const last = all.indexOf(node);
  const other = all.findLastIndex(({ kind }, i) => i < last && kind.message !== node.kind.message);
  return { alike: all.slice(other + 1, last + 1), next: all[last + 1] };
}
/** Whether an answer is the last attempt of an iteration that has failed. */
export const isNoAnswer = (node, model) => node.kind.type === 'answer' && node.status !== 'done' && model.nodes[node.parent]?.status === 'failed' && isLastAttempt(node, model);
/** Whether something failed here, and not only in what is below it. */
export function isFailure(node, model) {
  if (node.kind.type === 'answer') return isNoAnswer(node, model) || (node.status === 'failed' && !['failed', 'refused'].includes(node.kind.outcome?.type));
  if (node.status !== 'failed' || ['brain', 'iteration'].includes(node.kind.type)) return false;
  const failed = (id) => model.nodes[id].status === 'failed' || isNoAnswer(model.nodes[id], model);
  return !(model.children.get(node.id) ?? []).some(failed);
}
/** The failure that made the run fail: the last one below each failed node. */
export function failureOf(model) {
  let at = model.nodes[0];
  for (let next = at; next;) {
    at = next;
    next = (model.children.get(at.id) ?? []).map((id) => model.nodes[id]).findLast((node) => node.status === 'failed' || isNoAnswer(node, model));
  }
  if (at?.kind.type === 'answer') return attempts(at, model).at(-1);
  return at?.id === 0 ? null : at;
}
/** The last event of what a node did: the one before the next node that is not below it. */
export function endOf(node, model) {
  const isBelow = (other) => other.parent != null && (other.parent === node.id || isBelow(model.nodes[other.parent]));
  const next = model.nodes.reduce((seq, other) => (other && other.status !== 'not_started' && other.seq > node.seq && other.seq < seq && !isBelow(other) ? other.seq : seq), model.head + 1);
  return next - 1;
}
/** The last fork that has completed what a failed run has not. */
export const continuedAs = (run) => run.status === 'failed' && run.forks?.find(({ status }) => status === 'completed');
export const isWait = ({ kind }) => Boolean(kind.approval || kind.waits?.length || kind.waited || kind.type === 'budget');
/** The cost of an answer, `{ amount, currency, isEstimate }`: what was counted when it came stays. Without a price then, it is an estimate by the prices of
 *  today; `null` if they do not know its model either. */
export function costOf(answer, model) {
  const { cost, metadata } = answer ?? {};
  if (metadata?.cost) return metadata.cost;
  return cost?.known != null ? { amount: cost.known, currency: model.currency, isEstimate: true } : null;
}
/** Adds up costs: those in each currency, and whether a part of them is an estimate. */
export function addUp(list) {
  const sums = new Map();
  for (const one of list.filter(Boolean)) {
    const sum = sums.get(one.currency) ?? { amount: 0, currency: one.currency, isEstimate: false };
    sums.set(one.currency, { ...sum, amount: sum.amount + Number(one.amount), isEstimate: sum.isEstimate || Boolean(one.isEstimate) });
  }
  return [...sums.values()].map((sum) => ({ ...sum, amount: sum.amount.toFixed(9) }));
}
/** The answer that a model has given in a node, if any. */
export const answerOf = ({ outcome }) => outcome?.answer ?? outcome;

/** The tokens and the costs of all answers below a stage. They are added up once for each event. */
export function sumsOf(stage, model) {
  if (model.sums?.head !== model.head) {
    const of = new Map();
    for (const node of model.nodes) {
      const answer = node?.kind.type === 'answer' && answerOf(node.kind);
      if (!answer) continue;
      const { input = 0, output = 0 } = answer.metadata?.usage ?? {};
      const cost = costOf(answer, model);
      for (let at = node; at; at = model.nodes[at.parent]) {
        if (at.kind.type !== 'stage') continue;
        const sum = of.get(at.id) ?? of.set(at.id, { usage: { input: 0, output: 0 }, costs: [] }).get(at.id);
        sum.usage.input += input;
        sum.usage.output += output;
        sum.costs.push(cost);
      }
    }
    for (const sum of of.values()) sum.costs = addUp(sum.costs);
    model.sums = { head: model.head, of };
  }
  return model.sums.of.get(stage.id) ?? null;
}

/** The costs of the answers that a fork shares, or of those that are the run's own. Shared ones count in the sums of the run that asked for them. */
export function costsOf(model, isShared = false) {
  const last = model.run.forked_from?.seq ?? -1;
  return model.nodes.filter((node) => node?.kind.type === 'answer' && (node.seq <= last) === isShared).map(({ kind }) => costOf(answerOf(kind), model));
}

export class RunModel {
  /** `onlink(state)` is told whether the stream is `live`, `lost` or `out`; `onrow` that the row was read. */
  constructor(id, onlink, onrow) {
    Object.assign(this, { id, onlink, onrow, run: null, head: -1, state: 'loading', trouble: null, rows: new Set() });
    this.path = `/runs${at(id)}`;
    this.keep = () => keepStreams(this);
    addEventListener('pagehide', this.keep);
  }

  async load() {
    this.trouble = null;
    try {
      const [run, { head, timeline }] = await Promise.all([get(this.path), get(`${this.path}/timeline`)]);
      if (this.closed) return;
      followDrafts(run.pending ?? [], this.id);
      Object.assign(this, { run, head, nodes: [], children: new Map(), open: new Map(), reports: new Map(), counts: { call: 0, person: 0, file: 0, retry: 0 } });
      for (const node of timeline.nodes) this.take(node);
      this.total(timeline);
      restoreStreams(this);
      this.follow();
    } catch (error) {
      this.trouble = error;
    }
  }

  total({ costs, currency = costs?.currency ?? this.currency, worker, answers }) {
    Object.assign(this, { currency, worker, answers });
  }

  follow() {
    this.stop?.();
    if (this.isOver()) {
      this.state = 'ended';
      return this.onlink('live');
    }
    this.stop = follow(`${this.path}/timeline`, {
      after: this.head,
      events: { nodes: (change) => this.merge(change), delta: (delta) => this.delta(delta), partial: (answer) => this.partial(answer), settled: () => this.refresh() },
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
      const list = children.get(node.parent) ?? [];
      children.set(node.parent, list);
      list.push(node.id);
      if (list.at(-2) > node.id) list.sort((a, b) => a - b);
    }
    // A run in the background reports its end by a message that has its id.
    if (node.kind.type === 'message' && node.kind.from === 'child') this.reports.set(node.kind.message_id, node);
    if (node.status === 'running') open.set(node.path, node.id);
    else if (open.get(node.path) === node.id) open.delete(node.path);
    for (const rows of this.rows) rows.take(node);
    // A later attempt takes the place of those before it, and the end of an iteration says how they ended.
    const list = node.kind.type === 'retry' ? retriesOf(node, this).alike.slice(0, -1) : node.kind.type === 'answer' && node.kind.attempt > 0 ? attempts(node, this).slice(0, -1) : [];
    for (const other of list) for (const rows of this.rows) rows.take(other);
  }

  merge(change) {
    if (change.seq <= this.head) return;
    for (const node of change.nodes.sort((a, b) => a.id - b.id)) this.take(node);
    this.total(change);
    this.head = change.seq;
    this.refresh();
  }

  /** Appends a streamed piece to the open answer, or sets a call's progress. The event of the whole answer replaces it. */
  delta(delta) {
    const node = this.nodes[this.open.get(delta.path)];
    const change = (fields) => { this.nodes[node.id] = { ...node, kind: { ...node.kind, ...fields } }; };
    if (delta.kind === 'progress') {
      if (node?.kind.type === 'call') change({ progress: delta.text });
    } else if (node?.kind.type === 'answer') {
      change({ stream: joined(node.kind.stream, delta) });
    }
  }

  /** Takes the open answer as far as it is, in place of the pieces before. */
  partial({ path, attempt, generation, next, pieces }) {
    const node = this.nodes[this.open.get(path)];
    if (node?.kind.type !== 'answer') return;
    this.nodes[node.id] = { ...node, kind: { ...node.kind, stream: { attempt, generation, pieces: next, parts: pieces } } };
  }

  /** Reads the run's row again: its status and what waits come from the server only. */
  refresh() {
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      try {
        this.run = await get(this.path);
        followDrafts(this.run.pending ?? [], this.id);
        if (this.isOver() && this.state !== 'ended') this.follow();
        this.onrow();
      } catch (error) {
        // The stream reports a lost connection.
        if (error.status === 401) this.onlink('out');
      }
    }, 80);
  }

  /** Whether the run has ended and the page has all of it, so that nothing follows. */
  isOver() {
    return hasEnded(this.run) && this.head >= this.run.head;
  }

  stages() {
    return (this.children.get(0) ?? []).map((id) => this.nodes[id]).filter(({ kind }) => kind.type === 'stage');
  }

  /** Lists the nodes that have begun and pass a test, by their events. */
  select(test) {
    return this.nodes.filter((node) => node && node.status !== 'not_started' && test(node)).sort((a, b) => a.seq - b.seq);
  }

  /** Finds the node that an event began, or the last one before it: of an iteration its answer, and of that the last attempt. */
  nodeAt(seq) {
    const node = this.select((one) => one.seq <= seq).at(-1);
    const answer = node?.kind.type === 'iteration' ? (this.children.get(node.id) ?? []).map((id) => this.nodes[id]).find((one) => one.kind.type === 'answer' && !isQuestion(one)) : node;
    return answer?.kind.type === 'answer' ? attempts(answer, this).at(-1) : answer ?? node;
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.stop?.();
    removeEventListener('pagehide', this.keep);
  }
}

/** Keeps the texts of open answers for a reload: the server sends each piece once. */
function keepStreams({ id, nodes, open }) {
  const streams = [...(open?.values() ?? [])].map((place) => nodes[place]).filter((node) => node?.kind.stream).map(({ seq, path, kind: { stream } }) => ({ seq, path, stream }));
  try {
    if (streams.length) sessionStorage.setItem(`positronic.streams.${id}`, JSON.stringify(streams));
  } catch { /* The browser forbids storage, or the texts are too long for it. */ }
}
/** Gives the answers that are still open their texts from before the reload. */
function restoreStreams({ id, nodes, open }) {
  try {
    const name = `positronic.streams.${id}`;
    const streams = JSON.parse(sessionStorage.getItem(name) ?? '[]');
    sessionStorage.removeItem(name);
    for (const { seq, path, stream } of streams) {
      const place = open.get(path);
      const node = nodes[place];
      if (node?.seq === seq && node.kind.type === 'answer' && !node.kind.outcome) nodes[place] = { ...node, kind: { ...node.kind, stream } };
    }
  } catch { /* The whole answer follows. */ }
}

/** Adds a piece to a stream. An older attempt's piece, and one that is there already, change nothing. */
function joined(stream, { attempt = 0, generation = 0, n, ...piece }) {
  const order = stream ? attempt - stream.attempt || generation - stream.generation : 1;
  const now = order > 0 ? { attempt, generation, pieces: 0, parts: [] } : stream;
  if (order < 0 || n < now.pieces) return stream;
  const at = now.parts.findIndex((part) => part.part === piece.part && part.call === piece.call && part.kind === piece.kind);
  const parts = at < 0 ? [...now.parts, piece] : now.parts.with(at, { ...piece, text: now.parts[at].text + piece.text });
  return { ...now, gap: now.gap || n > now.pieces, pieces: n + 1, parts };
}
