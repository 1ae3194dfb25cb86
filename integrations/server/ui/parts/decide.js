// One item that waits for a person: what is asked, and the decision. The item stays until the log has the decision.
import { tags } from '../lib/dom.js';
import { post, at, ui } from '../lib/api.js';
import { icon } from '../lib/icons.js';
import { date, line, micros, money, number, who } from '../lib/format.js';
import { when } from './common.js';
import { readable } from './json.js';
import { valueDiff } from './change.js';
import { schemaForm } from './form.js';

const { a, b, button, code, div, footer, h2, h4, header, input, label, li, option, p, section, select,
  span, textarea, ul } = tags;

const drafts = new Map();
const draftOf = (item) => {
  if (!drafts.has(item.id)) drafts.set(item.id, { mode: 'view', errors: [], tree: new Map() });
  return drafts.get(item.id);
};

const AMOUNT = { iterations: number, failures: number, tokens: number, money: (n) => money(n), time: (n) => micros(n) };
export const limitText = (kind, amount) => `${AMOUNT[kind]?.(amount) ?? amount}${['money', 'time'].includes(kind) ? '' : ` ${kind}`}`;

/** What an item asks, in one sentence. */
export function asks(item) {
  if (item.kind === 'budget') return item.request ? `More ${item.request.kind}? ${limitText(item.request.kind, item.request.used)} of ${limitText(item.request.kind, item.request.limit)} are used.` : item.message ?? 'A limit is reached.';
  if (item.kind === 'answer') return item.message ?? item.waits?.find((wait) => wait.person)?.prompt ?? item.waits?.[0]?.prompt ?? `An answer to ${item.tool}`;
  return item.message ?? `Run ${item.tool}?`;
}

async function send(item, body, context) {
  const draft = draftOf(item);
  Object.assign(draft, { busy: true, problem: null, errors: [] });
  context.redraw();
  try {
    await post(`/runs${at(item.run, 'calls', item.id, 'decision')}`, body);
    draft.sent = true;
    context.say('Sent. The item leaves when the log has the decision.');
  } catch (error) {
    if (error.body?.errors) draft.errors = error.body.errors;
    draft.problem = error;
    if (error.slug === 'already-decided' || error.status === 410) context.say(error.message, true);
  }
  draft.busy = false;
  context.redraw();
  context.refreshPending();
}

const arguments_ = (item, draft) => draft.value ?? item.arguments;
const edited = (item, draft) => draft.value !== undefined && JSON.stringify(draft.value) !== JSON.stringify(item.arguments);

/** The actions on an item, for buttons and keys. */
export function decisions(item, context) {
  const draft = draftOf(item);
  const to = (mode) => () => {
    Object.assign(draft, { mode: draft.mode === mode ? 'view' : mode, problem: null });
    if (mode === 'edit' && draft.value === undefined) draft.value = structuredClone(item.kind === 'approval' ? item.arguments : undefined);
    context.redraw();
  };
  const idle = !draft.busy && !draft.sent && !(draft.problem && ['already-decided', 'expired'].includes(draft.problem.slug)) && item.allowed?.allowed !== false;
  const approve = () => {
    if (!idle) return;
    if (item.kind === 'budget') return send(item, { grant: draft.grant ?? suggestion(item) }, context);
    if (item.kind === 'answer') return send(item, { reply: draft.value ?? {}, ...(item.waits?.length > 1 ? { wait: answers(item, draft) } : {}) }, context);
    return send(item, edited(item, draft) ? { approve: true, arguments: draft.value } : { approve: true }, context);
  };
  const reject = () => idle && send(item, { reject: true, ...(draft.reason ? { reason: draft.reason } : {}) }, context);
  return { draft, idle, approve, reject, edit: to('edit'), askReason: to('reject') };
}

/** The alternative of a wait that is answered: the person's, unless another is chosen. */
const answers = (item, draft) => draft.wait ?? Math.max(0, item.waits?.findIndex((one) => one.person) ?? 0);

function suggestion({ request }) {
  // The same amount again is the usual grant.
  const { kind, limit } = request ?? {};
  return kind === 'money' ? { money: String(limit / 1e9) } : { [kind]: limit };
}

/** Draws an item with its decision. */
export function decide(item, context, { withRun = false, selected = false } = {}) {
  const { draft, idle, approve, reject, edit, askReason } = decisions(item, context);
  const blocked = item.allowed?.allowed === false ? item.allowed.reason : null;
  const label = item.kind === 'budget' ? 'Grant' : item.kind === 'answer' ? 'Send answer' : edited(item, draft) ? 'Approve as edited' : 'Approve';
  return section.decide({ key: item.id, 'data-item': item.id, 'aria-label': `${asks(item)} ${item.tool ?? ''}`, class: selected ? 'selected' : '',
    onkeydown: (event) => {
      if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) {
        event.preventDefault();
        (draft.mode === 'reject' ? reject : approve)();
      }
    } },
  header(
    span.status.wait(icon('person'), span({ approval: 'approval', budget: 'budget', answer: 'answer' }[item.kind] ?? item.kind)),
    h2({ dir: 'auto' }, asks(item)),
    span.grow(),
    item.expires && span.soft({ title: date(item.expires) }, 'expires ', when(item.expires))),
  p.meta(item.tool && code(item.tool), withRun && a({ href: ui(`/runs/${item.run}`) }, item.brain), item.user && span(item.user), span('asked ', when(item.since)), a({ href: ui(`/runs/${item.run}/events/${item.seq}`) }, `event ${item.seq}`)),
  withRun && item.context?.length ? ul.context({ 'aria-label': 'What happened before' }, item.context.map((entry, i) => li({ key: i }, span.soft(entry.kind), ' ', span({ dir: 'auto' }, line(entry.text, 220))))) : null,
  body(item, draft, context),
  outcome(item, draft),
  !draft.sent && idle && footer(
    button.primary({ onclick: approve, disabled: draft.busy, title: 'a, or ⌘↵ in a field' }, icon('check'), label),
    item.kind !== 'answer' && (draft.mode === 'reject'
      ? button.danger({ onclick: reject, disabled: draft.busy }, icon('cross'), 'Reject')
      : button({ onclick: askReason, disabled: draft.busy, title: 'r' }, icon('cross'), 'Reject…')),
    item.kind === 'approval' && item.editable && button.plain({ onclick: edit, title: 'e', 'aria-pressed': String(draft.mode === 'edit') }, draft.mode === 'edit' ? 'Show as proposed' : 'Edit arguments'),
    draft.busy && span.soft({ role: 'status' }, 'Sending…')),
  blocked && p.soft(blocked));
}

function body(item, draft, context) {
  const change = (value) => {
    draft.value = value;
    context.redraw();
  };
  const parts = [];
  if (item.kind === 'budget') parts.push(grantFields(item, draft, context));
  else if (item.kind === 'answer') {
    const waits = item.waits ?? [];
    const wait = waits[answers(item, draft)];
    if (item.arguments && Object.keys(item.arguments).length) parts.push(readable(item.arguments, { state: draft.tree, redraw: context.redraw }));
    if (waits.length > 1) parts.push(div.field(label({ for: `w${item.id}` }, 'Answer as'), select({ id: `w${item.id}`, value: String(answers(item, draft)), onchange: (event) => { draft.wait = Number(event.target.value); context.redraw(); } },
      waits.map((one, i) => option({ key: i, value: String(i) }, one.prompt ?? `${one.webhook} ${one.identifier}`)))));
    parts.push(schemaForm(wait?.schema ?? {}, { value: draft.value, onchange: change, errors: draft.errors, id: `f${item.id}` }));
  } else if (draft.mode === 'edit') {
    parts.push(schemaForm(item.arguments_schema ?? {}, { value: arguments_(item, draft), onchange: change, errors: draft.errors, id: `f${item.id}` }));
  } else {
    parts.push(typeof item.arguments === 'object' && item.arguments !== null && !Object.keys(item.arguments).length ? p.soft('The call has no arguments.') : readable(item.arguments, { state: draft.tree, redraw: context.redraw }));
  }
  if (item.kind === 'approval' && edited(item, draft)) parts.push(div.edits(h4('Your edits'), valueDiff(item.arguments, draft.value)));
  if (draft.mode === 'reject') {
    parts.push(div.field(label({ for: `r${item.id}` }, 'Reason, which the model reads', span.soft(' (optional)')),
      textarea({ id: `r${item.id}`, rows: 2, value: draft.reason ?? '', ref: (node) => queueMicrotask(() => node.focus()), oninput: (event) => { draft.reason = event.target.value; } })));
  }
  return parts;
}

function grantFields(item, draft, context) {
  const { kind } = item.request ?? {};
  if (!kind) return null;
  const now = Object.values(draft.grant ?? suggestion(item))[0];
  const shown = kind === 'time' ? Number(now) / 6e7 : now;
  return div.field(label({ for: `g${item.id}` }, `Grant more ${kind === 'time' ? 'minutes' : kind}`),
    input({ id: `g${item.id}`, type: 'number', min: 0, step: kind === 'money' ? 'any' : 1, value: String(shown),
      oninput: (event) => {
        const amount = event.target.value;
        draft.grant = { [kind]: kind === 'money' ? amount : kind === 'time' ? Math.round(Number(amount) * 6e7) : Number(amount) };
        context.redraw();
      } }));
}

function outcome(item, draft) {
  if (draft.sent) return p.note({ role: 'status' }, icon('clock'), 'Sent. The item leaves when the log has the decision.');
  const problem = draft.problem;
  if (!problem) return null;
  const made = problem.body?.decision;
  if (made) return div.note.lost({ role: 'alert' }, icon('person'), div(b(`${who(made)} ${made.verdict ?? 'decided'} this`), ' ', when(made.at), ` (${date(made.at)}).`,
    made.reason && p(`“${made.reason}”`), made.arguments && valueDiff(item.arguments, made.arguments), p.soft('Your decision was not recorded.')));
  return div.note.lost({ role: 'alert' }, icon('warn'), div(problem.message, problem.body?.errors?.length ? ul(problem.body.errors.map((error, i) => li({ key: i }, code(error.pointer || '/'), ' ', error.detail))) : null));
}

/** A decision that was made, in one line. */
export function decided(approval) {
  const { outcome: made } = approval;
  if (!made) return null;
  if (made.type === 'expired') return `expired without a decision`;
  if (made.type === 'withdrawn') return `withdrawn: ${made.cause}`;
  const edits = made.arguments !== undefined && made.decision === 'approved' ? ' with edits' : '';
  return `${made.decision}${edits} by ${who(made.actor)}${made.reason ? `: ${made.reason}` : ''}`;
}
