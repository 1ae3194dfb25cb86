// One item that waits for a person: what is asked, and the decision. The item stays until the log has the decision.
import { tags } from '../lib/dom.js';
import { post, ui, Problem } from '../lib/api.js';
import { icon } from '../lib/icons.js';
import { date, line, micros, money, number, who } from '../lib/format.js';
import { when } from './common.js';
import { readable } from './json.js';
import { valueDiff } from './change.js';
import { schemaForm } from './form.js';

const { a, b, button, code, div, footer, h2, header, h4, input, label, li, p, section, span, ul } = tags;

const drafts = new Map();
/** What a person has entered for an item, and what became of it. */
export function draftOf({ id }) {
  if (!drafts.has(id)) drafts.set(id, { mode: 'view', tree: new Map() });
  return drafts.get(id);
}

const AMOUNT = { money: (n) => money(n), time: (n) => micros(n) };
export const limitText = (kind, amount) => AMOUNT[kind]?.(amount) ?? `${number(amount)} ${kind}`;

const edited = (item, { value }) => value !== undefined && JSON.stringify(value) !== JSON.stringify(item.arguments);
const alternative = (wait) => wait.prompt ?? `${wait.webhook} ${wait.identifier}`;
/** The alternative that an answer is for: the person's, unless another is chosen. */
const chosen = ({ waits }, draft) => draft.wait ?? Math.max(0, waits.findIndex((one) => one.person));

/** What each kind of item asks, the schema of the form, its first value, and the decision that it makes. */
const KINDS = {
  approval: {
    asks: (item) => `Run ${item.tool}?`,
    verb: (item, draft) => (edited(item, draft) ? 'Approve as edited' : 'Approve'),
    schema: (item) => item.arguments_schema,
    value: (item) => item.arguments,
    body: (item, draft) => ({ approve: true, ...(edited(item, draft) && { arguments: draft.value }) }),
  },
  budget: {
    asks: ({ request: { kind, used, limit } }) => `More ${kind}? ${limitText(kind, used)} of ${limitText(kind, limit)} are used.`,
    verb: () => 'Grant',
    schema: ({ request: { kind } }) => ({ required: [kind], properties: {
      [kind]: { type: kind === 'money' ? 'number' : 'integer', minimum: 0, title: `Grant more ${kind === 'time' ? 'minutes' : kind}` } } }),
    // The same amount again is the usual grant.
    value: ({ request: { kind, limit } }) => ({ [kind]: limit / ({ money: 1e9, time: 6e7 }[kind] ?? 1) }),
    body: ({ request: { kind } }, { value }) => ({
      grant: { [kind]: kind === 'money' ? String(value[kind]) : Math.round(value[kind] * (kind === 'time' ? 6e7 : 1)) } }),
  },
  answer: {
    asks: ({ waits, tool }) => waits.find((wait) => wait.person)?.prompt ?? waits[0]?.prompt ?? `An answer to ${tool}`,
    verb: () => 'Send answer',
    schema: (item, draft) => item.waits[chosen(item, draft)]?.schema,
    value: () => ({}),
    body: (item, draft) => ({ reply: draft.value ?? {}, ...(item.waits.length > 1 && { wait: chosen(item, draft) }) }),
  },
};

/** What an item asks, in one sentence. */
export const asks = (item) => item.message ?? KINDS[item.kind].asks(item);

/** Sends the decisions of several items, each of which succeeds or fails by itself. */
async function send(items, bodyOf, context) {
  for (const item of items) Object.assign(draftOf(item), { busy: true, problem: null });
  context.redraw();
  const decisions = items.map((item) => ({ run: item.run, id: item.id, ...bodyOf(item, draftOf(item)) }));
  const answer = await post('/decisions', decisions).catch((problem) => ({ problem }));
  items.forEach((item, i) => {
    const { status, problem } = answer.items?.[i] ?? {};
    const failed = answer.problem ?? (problem && new Problem(status, problem));
    Object.assign(draftOf(item), { busy: false, sent: !failed, problem: failed });
    if (failed) context.say(failed.message, true);
  });
  if (items.some((item) => draftOf(item).sent)) context.say('Sent. The item leaves when the log has the decision.');
  context.redraw();
  context.refreshPending();
}

const isOver = ({ sent, problem }) => sent || ['already-decided', 'expired', 'run-closed', 'not-waiting'].includes(problem?.slug);
/** Whether an item can still be decided here. */
export const isOpen = (item) => !draftOf(item).busy && !isOver(draftOf(item)) && item.allowed.allowed;

/** Approves all items, after the arguments that a reader has folded are shown again. */
export function approve(items, context) {
  const folded = items.filter((item) => foldedOf(draftOf(item)));
  for (const item of folded) draftOf(item).tree.clear();
  if (folded.length) return context.redraw();
  const open = items.filter(isOpen);
  for (const item of open) draftOf(item).value ??= item.kind === 'budget' ? KINDS.budget.value(item) : undefined;
  if (open.length) send(open, (item, draft) => KINDS[item.kind].body(item, draft), context);
}
export function reject(items, context, reason) {
  const open = items.filter(isOpen);
  if (open.length) send(open, (_, draft) => ({ reject: true, reason: reason ?? draft.reason }), context);
}
const foldedOf = ({ mode, tree }) => (mode === 'edit' ? 0 : [...tree.values()].filter((shown) => !shown).length);

/** Opens or closes the form for `edit` or for the reason to `reject`. */
export function toggle(item, mode, context) {
  const draft = draftOf(item);
  draft.mode = draft.mode === mode ? 'view' : mode;
  context.redraw();
}

/** Draws an item with its decision. `pick` is a control that chooses the item among others. */
export function decide(item, context, { withRun = false, selected = false, pick = null } = {}) {
  const draft = draftOf(item);
  const kind = KINDS[item.kind];
  const rejecting = draft.mode === 'reject';
  const yes = () => approve([item], context);
  const no = () => reject([item], context);
  const folded = foldedOf(draft);
  return section.decide({ key: item.id, role: 'group', 'data-item': item.id, 'aria-label': `${asks(item)} ${item.tool}`,
    class: selected ? 'selected' : '',
    onkeydown: (event) => {
      if (event.key !== 'Enter' || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      (rejecting ? no : yes)();
    } },
  header(pick, span.status.wait(icon('person'), span(item.kind)), h2({ dir: 'auto' }, asks(item)), span.grow(),
    item.expires && span.soft({ title: date(item.expires) }, 'expires ', when(item.expires))),
  p.meta(item.tool && code(item.tool), withRun && a({ href: ui(`/runs/${item.run}`) }, item.brain), item.user && span(item.user),
    span('asked ', when(item.since)), a({ href: ui(`/runs/${item.run}/events/${item.seq}`) }, `event ${item.seq}`)),
  withRun && item.context?.length > 0 && ul.context({ 'aria-label': 'What happened before' }, item.context.map((entry, i) =>
    li({ key: i }, span.soft(entry.kind), ' ', span({ dir: 'auto' }, line(entry.text, 220))))),
  body(item, draft, kind, context),
  outcome(item, draft),
  item.allowed.allowed ? !isOver(draft) && footer(
    button.primary({ onclick: yes, disabled: draft.busy, title: 'a, or ⌘↵ in a field' }, icon('check'),
      folded ? `Show ${folded} folded first` : kind.verb(item, draft)),
    item.kind !== 'answer' && button({ class: rejecting && 'danger', disabled: draft.busy, title: 'r',
      onclick: rejecting ? no : () => toggle(item, 'reject', context) }, icon('cross'), rejecting ? 'Reject' : 'Reject…'),
    item.editable && button.plain({ onclick: () => toggle(item, 'edit', context), title: 'e', 'aria-pressed': String(draft.mode === 'edit') },
      draft.mode === 'edit' ? 'Show as proposed' : 'Edit arguments'),
    draft.busy && span.soft({ role: 'status' }, 'Sending…')) : p.soft(item.allowed.reason));
}

function body(item, draft, kind, context) {
  const { redraw } = context;
  const set = (name) => (value) => { draft[name] = value; redraw(); };
  const { arguments: given, waits } = item;
  const form = (schema, name, value) => schemaForm(schema ?? {}, { value, onchange: set(name), id: `${name}-${item.id}`,
    errors: draft.problem?.body?.errors });
  const isForm = item.kind !== 'approval' || draft.mode === 'edit';
  const hasArguments = given !== null && Object.keys(given).length > 0;
  return [
    // All of them are visible: nobody approves what is folded.
    draft.mode !== 'edit' && hasArguments && readable(given, { state: draft.tree, redraw, depth: Infinity, page: Infinity }),
    item.kind === 'approval' && !hasArguments && p.soft('The call has no arguments.'),
    waits?.length > 1 && schemaForm({ enum: waits.map(alternative), title: 'Answer as' }, { value: alternative(waits[chosen(item, draft)]),
      onchange: (value) => set('wait')(waits.findIndex((wait) => alternative(wait) === value)), id: `wait-${item.id}` }),
    isForm && form(kind.schema(item, draft), 'value', draft.value ?? kind.value(item)),
    item.kind === 'approval' && edited(item, draft) && div.edits(h4('Your edits'), valueDiff(given, draft.value)),
    draft.mode === 'reject' && div.field(label({ for: `reason-${item.id}` }, 'Reason, which the model reads', span.soft(' (optional)')),
      input({ id: `reason-${item.id}`, value: draft.reason ?? '', ref: (node) => queueMicrotask(() => node.focus()),
        oninput: ({ target }) => { draft.reason = target.value || undefined; } })),
  ];
}

function outcome(item, { sent, problem }) {
  if (sent) return p.note({ role: 'status' }, icon('clock'), 'Sent. The item leaves when the log has the decision.');
  if (!problem) return null;
  const { decision: made, errors } = problem.body ?? {};
  return div.note.lost({ role: 'alert' }, icon(made ? 'person' : 'warn'), div(
    made ? [b(`${who(made)} ${made.verdict} this`), ' ', when(made.at), ` (${date(made.at)}).`, made.reason && p(`“${made.reason}”`),
      made.arguments && valueDiff(item.arguments, made.arguments), p.soft('Your decision was not recorded.')] : problem.message,
    errors?.length > 0 && ul(errors.map((error) => li({ key: error.pointer }, code(error.pointer || '/'), ' ', error.detail)))));
}

const ENDED = { expired: () => 'expired without a decision', withdrawn: ({ cause }) => `withdrawn: ${cause}` };
/** A decision that was made, in one line. */
export function decided({ outcome: made }) {
  if (!made) return null;
  if (ENDED[made.type]) return ENDED[made.type](made);
  const edits = made.arguments !== undefined && made.decision === 'approved' ? ' with edits' : '';
  return `${made.decision}${edits} by ${who(made.actor)}${made.reason ? `: ${made.reason}` : ''}`;
}
