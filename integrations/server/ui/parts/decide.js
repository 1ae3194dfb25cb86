// One item that waits for a person: what is asked, and the decision. The item stays until the log has the decision.
import { tags, redraw } from '../lib/dom.js';
import { newKey, Problem, request } from '../lib/api.js';
import { later, main, runUrl, say } from '../lib/page.js';
import { isField, MOD, release } from '../lib/keys.js';
import { icon } from '../lib/icons.js';
import { placeWords, quoted } from '../lib/cause.js';
import { brief, date, limitText, line, plural, sentenceCase, shortId, who, words as wordsOf } from '../lib/format.js';
import { MOVING, frameOf, isMoving, isSettled, place, settle } from '../lib/settle.js';
import { when } from './common.js';
import { dismiss, draftOf, isOver, nodeOf } from './drafts.js';
import { whole } from './json.js';

const { a, b, button, code, del, div, footer, h2, h3, header, input, ins, kbd, label, li, p, section, span, ul } = tags;

// Most items are decided without a form.
const form = later('schema_form');
const valueDiff = later('change');
function schemaForm(schema, options) {
  try {
    return form(schema, options);
  } catch {
    // A tool's schema that makes no form must not keep the item from being shown.
    return form({}, options);
  }
}
/** The field of an item that is not valid, if any. What a field shows but the draft cannot hold must not be decided. */
const invalid = (item) => nodeOf(item)?.querySelector(':is(input, select, textarea):invalid');
/** Whether all fields of an item are shown: nothing else may be sent. */
const isShown = (item) => (item.kind === 'approval' && draftOf(item).mode !== 'edit') || form.isLoaded();

export const isEdited = (item, { value }) => value !== undefined && JSON.stringify(value) !== JSON.stringify(item.arguments);
const alternative = (wait, i) => `${i + 1}: ${wait.prompt ?? `${wait.webhook} ${wait.identifier}`}`;
/** The alternative that an answer is for: the person's, unless another is chosen. */
const chosen = ({ waits }, draft) => draft.wait ?? Math.max(0, waits.findIndex((one) => one.person));
/** How many of a limit's units are one of those that a person enters. */
const UNIT = { money: 1e9, time: 6e7 };

/** Whether a value says nothing. */
const isNothing = (value) => value == null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0);
/** The arguments that an edit leaves without a value, by their paths. */
function emptied(given, now, path = []) {
  if (isNothing(given)) return [];
  if (isNothing(now)) return [path.map(wordsOf).join(' › ') || 'the arguments'];
  return typeof given === 'object' && !Array.isArray(given) && typeof now === 'object' ? Object.keys(given).flatMap((name) => emptied(given[name], now[name], [...path, name])) : [];
}
const listed = (names) => new Intl.ListFormat('en-GB').format(names);
const emptiedOf = (item, draft) => (item.kind === 'approval' && isEdited(item, draft) ? emptied(item.arguments, draft.value) : []);
/** Whether a person was asked about the arguments that are empty now. */
const isAsked = ({ asked, value }) => asked !== undefined && asked === JSON.stringify(value);

/** What each kind of item asks, the schema of the form, its first value, and the decision that it makes. */
const KINDS = {
  approval: {
    asks: ({ tool }) => `Run ${tool}?`,
    verb: (item, draft) => (isAsked(draft) ? `Approve with ${listed(emptiedOf(item, draft))} empty` : isEdited(item, draft) ? 'Approve as edited' : 'Approve'),
    schema: (item) => item.arguments_schema,
    value: (item) => item.arguments,
    body: (item, draft) => ({ approve: true, ...(isEdited(item, draft) && { arguments: draft.value }) }),
  },
  budget: {
    asks: ({ request: { kind, used, limit } }) => `More ${kind}? ${limitText(kind, used)} of ${limitText(kind, limit)} are used.`,
    verb: () => 'Grant',
    schema: ({ request: { kind } }) => ({ required: [kind], properties: {
      [kind]: { type: kind === 'money' ? 'number' : 'integer', minimum: 0, title: `Grant more ${kind === 'time' ? 'minutes' : kind}` } } }),
    // The same amount again is the usual grant.
    value: ({ request: { kind, limit } }) => ({ [kind]: limit / (UNIT[kind] ?? 1) }),
    body: ({ request: { kind } }, { value }) => ({ grant: { [kind]: kind === 'money' ? String(value[kind]) : Math.round(Number(value[kind]) * (UNIT[kind] ?? 1)) } }),
  },
  answer: {
    asks: ({ waits, tool }) => {
      const { prompt, webhook, identifier } = waits.find((wait) => wait.person) ?? waits[0] ?? {};
      return prompt ?? (webhook ? `The answer of the webhook ${webhook} for ${identifier}` : `An answer to ${tool}`);
    },
    verb: () => 'Send answer',
    schema: (item, draft) => item.waits[chosen(item, draft)]?.schema,
    value: () => ({}),
    body: (item, draft) => ({ reply: draft.value ?? {}, ...(item.waits.length > 1 && { wait: chosen(item, draft) }) }),
  },
};
/** The kind of an item in words. */
const KIND_WORDS = { approval: () => 'approval', budget: () => 'limit', answer: ({ waits }) => (waits.some(({ person }) => person) ? 'question' : 'message') };
export const asks = (item) => item.message ?? KINDS[item.kind].asks(item);

/** The changed fields of an edited item, in its heading: a person must not approve another value than is read there. */
function editedWords(item, draft) {
  if (item.kind !== 'approval' || !(isEdited(item, draft) || draft.mode === 'edit')) return null;
  if (!isEdited(item, draft)) return span.edited({ key: 'edited' });
  const [given, now] = [item.arguments, draft.value].map((value) => (value !== null && typeof value === 'object' ? value : { value }));
  const names = Object.keys({ ...given, ...now }).filter((name) => JSON.stringify(given[name]) !== JSON.stringify(now[name]));
  return span.edited({ key: 'edited' }, names.slice(0, 3).map((name, i) => span({ key: name }, `${i ? ' · ' : ''}${name}: `, given[name] !== undefined && del(brief(given[name], 40)), ' ', now[name] !== undefined && ins(brief(now[name], 40) || '(empty)'))));
}

/** Sends the decisions of several items, each of which succeeds or fails by itself. */
async function send(items, bodyOf) {
  const body = items.map((item) => ({ run: item.run, id: item.id, ...bodyOf(item, draftOf(item)) }));
  // Decisions without an answer may have arrived, so that their repetition has the same key.
  const text = JSON.stringify(body);
  if (text !== last.text) last = { text, key: newKey() };
  for (const item of items) Object.assign(draftOf(item), { busy: true, tried: true, problem: null });
  release();
  const answer = await request('POST', '/decisions', { body, headers: { 'Idempotency-Key': last.key } }).catch((problem) => ({ problem }));
  items.forEach((item, i) => {
    const { status, problem: own } = answer?.items?.[i] ?? { problem: { title: 'The answer of the server cannot be read.' } };
    const problem = answer?.problem ?? (own && new Problem(status, own));
    Object.assign(draftOf(item), { busy: false, sent: !problem, problem });
    say(problem?.message ?? SENT, Boolean(problem));
  });
  toNext(items);
  // The item leaves with the button that was pressed. Who types on after a decision has not finished.
  if (!isField(document.activeElement)) release();
}
let last = {};
/** In a run, who decides by keys goes on to the next item, or to the run after the last one: the decided item leaves with the focus. */
function toNext(items) {
  const [own, focused] = [items.map(nodeOf), document.activeElement];
  if (isField(focused) || !focused?.matches(':focus-visible') || !items.every((item) => draftOf(item).sent) || !own.some((node) => node?.tabIndex === -1 && node.hasAttribute('tabindex') && node.contains(focused))) return;
  const all = [...document.querySelectorAll('.decide[tabindex]')];
  const others = all.slice(all.indexOf(own.at(-1)) + 1).concat(all).filter((node) => !own.includes(node) && node.querySelector('footer'));
  // A key that was pressed twice must not decide the next one, too.
  if (others.length) settle();
  (others[0] ?? main()).focus({ preventScroll: true });
  others[0]?.scrollIntoView({ block: 'nearest' });
}
const SENT = 'Sent. The item disappears once the decision is recorded.';

/** Whether an item can still be decided here. */
export const isOpen = (item) => !draftOf(item).busy && !isOver(draftOf(item)) && item.allowed.allowed;
export const foldedOf = ({ open }) => [...open.values()].filter((shown) => !shown).length;

/** How long an approval waits after folded arguments have shown, so that a person can look first. */
const LOOK = 800;
const isLooking = ({ shown }) => performance.now() - shown < LOOK;
/** Approves all items, after the arguments that a reader has folded are shown again. A key that is pressed in a field of an item is meant for it, so it
 *  need not have stood still: `isMeant`. */
export function approve(items, isMeant = false) {
  if (!isMeant && !isSettled(items.map(draftOf))) return;
  const wrong = items.map(invalid).find(Boolean);
  if (wrong) return wrong.reportValidity();
  const folded = items.map(draftOf).filter(foldedOf);
  for (const draft of folded) {
    draft.open.clear();
    draft.shown = performance.now();
    setTimeout(redraw, LOOK);
  }
  // A field that was emptied by mistake is asked about once.
  const unasked = items.filter((item) => isOpen(item) && !isAsked(draftOf(item)) && emptiedOf(item, draftOf(item)).length);
  for (const item of unasked) {
    const draft = draftOf(item);
    Object.assign(draft, { asked: JSON.stringify(draft.value), shown: performance.now() });
    say(`${listed(emptiedOf(item, draft))} would be sent empty. Approve once more to do so.`, true);
    setTimeout(redraw, LOOK);
  }
  const list = folded.length || unasked.length || items.map(draftOf).some(isLooking) || !items.every(isShown) ? [] : items.filter(isOpen);
  for (const item of list) if (item.kind === 'budget') draftOf(item).value ??= KINDS.budget.value(item);
  if (list.length) send(list, (item, draft) => KINDS[item.kind].body(item, draft));
}
/** The upper and the lower edge of what a reader sees of what a node is in: bars may cover its end, and in a pane the foot of its card. */
export function edges(node) {
  const frame = frameOf(node);
  const { top, bottom } = frame.getBoundingClientRect();
  const foot = node.closest('.pane-body .batch')?.querySelector(':scope > footer');
  const bars = [...frame.querySelectorAll('.bulk'), foot].filter((bar) => bar && !node.contains(bar)).map((bar) => bar.getBoundingClientRect()).filter((bar) => bar.bottom > top + 1);
  return [top, Math.min(bottom, ...bars.map((bar) => bar.top))];
}
/** Whether half of an item is in view, or half of the window shows it. An item that has come with the last list is drawn in the next frame. */
export function isInView(item) {
  const node = nodeOf(item);
  if (!node) return false;
  const [shown, [top, bottom]] = [node.getBoundingClientRect(), edges(node)];
  return Math.min(shown.bottom, bottom) - Math.max(shown.top, top) >= Math.min(shown.height, bottom - top) / 2;
}
/** Whether the end of an item is in view. If not, shows its next part. */
export function isEndShown(item) {
  // All of it stands above the buttons.
  const node = nodeOf(item);
  const [top, bottom] = edges(node);
  const below = (node.querySelector('footer') ?? node).getBoundingClientRect().top - bottom;
  if (below <= 2) return true;
  frameOf(node).scrollBy(0, Math.min(below + 20, (bottom - top) * 0.6));
  settle();
  return false;
}
/** Approves an item by a key, which shows all of a long item first. */
export function approveShown(item, isMeant) {
  if (isEndShown(item)) approve([item], isMeant);
  else say('The item goes on below. Press again once you have read it.', true);
}
export function reject(items, isMeant = false) {
  if (!isMeant && !isSettled(items.map(draftOf))) return;
  const list = items.filter((item) => isOpen(item) && item.kind !== 'answer');
  if (list.length) send(list, (_, { reason }) => ({ reject: true, reason }));
}
/** Opens or closes the form for `edit`, or for the reason to `reject`. */
export function toggle(item, mode) {
  const draft = draftOf(item);
  if (isOver(draft)) return;
  draft.mode = draft.mode === mode ? 'view' : mode;
  draft.begins = draft.mode !== 'view';
}

/** Ignores the second click of a double click, and a click on an item that has moved, also since it was drawn. */
const once = (item, act) => ({ detail, currentTarget }) => {
  const draft = draftOf(item);
  place(currentTarget.closest('.decide'), draft);
  // The next key must not press what this click has missed.
  if (detail && isMoving(draft)) currentTarget.blur();
  // A key presses a button only as it would decide by itself.
  if (detail === 1 || (detail === 0 && isInView(item) && isEndShown(item))) act();
};

/** Leaves a field for its item, which has keys if it takes the focus; otherwise the page has them. */
function leaveField({ target, currentTarget }) {
  target.blur();
  currentTarget.focus({ preventScroll: true });
}

const eventLink = ({ run, seq }) => a({ href: runUrl(run, 'events', seq) }, `event ${seq}`);
/** How much of what happened before an item was asked is shown. */
const BEFORE = 3;
const KINDS_BEFORE = { assistant: 'model' };
/** A text in which JSON is read as its fields, after the name of its tool. */
function fieldsIn(text) {
  const [, name = '', json] = /^([\w.-]+: )?([{[][^]*)$/.exec(text) ?? [];
  try {
    return json ? name + brief(JSON.parse(json), 200) : text;
  } catch {
    return text;
  }
}
/** What happened before an item was asked; the calls that are shown beside it are not said again. */
export function contextOf({ context = [], input, user }, isBesideCalls = false) {
  const before = context.filter(({ kind }) => kind !== 'call' || !isBesideCalls).slice(-BEFORE);
  // What the run is about stands first, also if much has happened since.
  const begins = input && !before.some(({ kind, text }) => kind === 'user' && line(text, 300).startsWith(input.replace(/…$/, '')));
  const says = (key, text) => li.begins({ key }, b(user ?? 'Asked'), ' ', span({ dir: 'auto' }, `“${text}”`));
  const entry = ({ kind, text }, key) => (kind === 'user' ? says(key, line(text, 220)) : li({ key }, span.soft(KINDS_BEFORE[kind] ?? kind), ' ', span({ dir: 'auto' }, line(fieldsIn(text), 220))));
  return (begins || before.length > 0) && ul.context({ 'aria-label': 'What happened before' }, begins && says('begins', input), before.map(entry));
}

/** Draws an item with its decision, `inbox` with its run. `pick` is a control that chooses the item among others; a `part` of a card leaves to
 *  the card what its parts share. */
export default function decide(item, { inbox = false, part = false, selected = false, pick } = {}) {
  const draft = draftOf(item);
  const isRejecting = draft.mode === 'reject';
  const [yes, no, folded, waits] = [() => approve([item]), () => reject([item]), foldedOf(draft), isMoving(draft)];
  const drawn = (node) => {
    place(node, draft);
    const field = draft.begins && node.querySelector(`:is(input, select, textarea)[id^=${isRejecting ? 'reason' : 'value'}-]`);
    if (!field) return;
    draft.begins = false;
    field.focus();
    // The buttons show, too, where there is room: a key decides only what is shown to its end.
    const [top, bottom] = edges(node);
    const { bottom: end, height } = node.getBoundingClientRect();
    if (end <= bottom || height > bottom - top) return;
    frameOf(node).scrollBy(0, end - bottom + 8);
    settle();
  };
  const onkeydown = (event) => {
    if (isOver(draft)) return;
    if (event.key === 'Escape' && !event.isComposing && draft.mode !== 'view') {
      event.preventDefault();
      // The first Escape leaves the field, and the keys of the item work again.
      if (!isRejecting && isField(event.target)) return leaveField(event);
      if (isRejecting || event.currentTarget === event.target) toggle(item, draft.mode);
      return event.currentTarget.focus({ preventScroll: true });
    }
    if (!isField(event.target) || event.key !== 'Enter' || event.repeat || event.isComposing || !(event.metaKey || event.ctrlKey)) return;
    event.preventDefault();
    if (isRejecting) reject([item], true);
    else approveShown(item, true);
  };
  return section.decide({ key: item.id, id: `item-${item.id}`, role: 'group', tabindex: inbox ? null : '-1', 'aria-label': `${asks(item)} ${item.tool}`, class: [selected && 'selected', draft.mode === 'edit' && 'editing', isOver(draft) && !draft.sent && 'closed'].filter(Boolean).join(' '), onkeydown, drawn },
    header(!part && [span.status.wait(icon('clock'), span(KIND_WORDS[item.kind](item))), span.grow(), span.soft({ title: date(item.since) }, 'asked ', when(item.since)),
      item.expires && span.soft({ title: date(item.expires) }, 'expires ', when(item.expires))], h2({ dir: 'auto' }, item.kind === 'approval' && [code(item.tool), ' '], asks(item), editedWords(item, draft)), part && eventLink(item)),
    !part && p.meta(item.kind !== 'approval' && item.tool && code(item.tool), inbox && a({ href: runUrl(item.run) }, item.brain, ' ', shortId(item.run)), span(placeWords(item.call)), item.user && span(`for ${item.user}`),
      eventLink(item)),
    inbox && !part && contextOf(item),
    item.older_answers?.map(({ tool, received, seq }) => div.note.lost({ key: `older-${seq}` }, icon('warn'), div('The answer to ', code(tool), ' came ', when(received),
      ', before it was asked: it may be meant for another question. ', a({ href: runUrl(item.run, 'events', seq) }, `event ${seq}`)))),
    body(item, draft),
    isAsked(draft) && isOpen(item) && p.note.lost({ key: 'asked', role: 'alert' }, icon('warn'), span(b(`${listed(emptiedOf(item, draft))} would be sent empty.`), ' Approve once more to do so, or fill it in.')),
    outcome(item, draft, errorsElsewhere(item, draft)),
    draft.stays && isOver(draft) ? footer({ key: 'closed' }, button({ onclick: once(item, () => isSettled([draft]) && dismiss(item)), 'aria-disabled': waits ? 'true' : null, title: waits ? MOVING : null }, 'Dismiss')) : !item.allowed.allowed ? p.soft(item.allowed.reason) : !isOver(draft) && footer(
      button.large({ class: isRejecting ? '' : 'primary', onclick: once(item, yes), disabled: !isShown(item),
        'aria-disabled': waits || draft.busy || isLooking(draft) ? 'true' : null, title: waits ? MOVING : `a, or ${MOD} ↵ in a field` }, icon('check'), folded ? `Show ${plural(folded, 'folded part')} first` : KINDS[item.kind].verb(item, draft)),
      item.kind !== 'answer' && button.large.danger({ class: isRejecting ? 'primary' : '', 'aria-disabled': waits || draft.busy ? 'true' : null, title: waits ? MOVING : 'r', onclick: isRejecting ? once(item, no) : () => toggle(item, 'reject') },
        icon('cross'), isRejecting ? 'Reject' : 'Reject…'),
      item.editable && button.plain({ onclick: () => toggle(item, 'edit'), title: 'e', 'aria-pressed': String(draft.mode === 'edit') },
        draft.mode === 'edit' ? 'Close the form' : 'Edit arguments'),
      !draft.busy && (item.kind !== 'approval' || draft.mode !== 'view') && span.soft.wide({ key: 'hint' }, kbd(`${MOD} ↵`), isRejecting ? ' rejects' : item.kind === 'approval' ? ' approves the form' : ' sends it', draft.mode !== 'view' && [', ', kbd('Esc'), isRejecting ? ' closes the field' : ' leaves the field']),
      !inbox && draft.mode === 'view' && !draft.busy && p.itemKeys({ key: 'keys' }, item.kind !== 'answer' && [kbd('A'), ' approves ', kbd('R'), ' rejects '], item.editable && [kbd('E'), ' edits ']),
      draft.busy && span.soft({ role: 'status' }, 'Sending…'), pick && [span.grow(), pick]));
}

function body(item, draft) {
  const { arguments: given, waits, kind, id } = item;
  const isEditing = draft.mode === 'edit';
  const hasArguments = given != null && (typeof given !== 'object' || Object.keys(given).length > 0);
  const { schema, value } = KINDS[kind];
  return [
    // All arguments stay visible before an approval, also beside a form, which a schema may not show them in.
    hasArguments && div({ memo: [JSON.stringify([...draft.open])] }, () => whole(given, draft.open)),
    kind === 'approval' && !hasArguments && p.soft('The call has no arguments.'),
    waits?.length > 1 && schemaForm({ enum: waits.map(alternative), title: 'Answer as' }, { value: alternative(waits[chosen(item, draft)], chosen(item, draft)), id: `wait-${id}`,
      onchange: (edit) => {
        const place = waits.map(alternative).indexOf(edit());
        if (place >= 0) draft.wait = place;
      } }),
    (kind !== 'approval' || isEditing) && schemaForm(schema(item, draft) ?? {}, { value: draft.value ?? value(item), id: `value-${id}`, named: kind === 'approval',
      errors: draft.problem?.body?.errors, onchange: (edit) => { draft.value = edit(draft.value ?? value(item)); } }),
    // Its place is there before the first edit, and scrolls: what can be pressed must not move while one types.
    kind === 'approval' && (isEditing || isEdited(item, draft)) && div.edits({ key: 'edits', ...(isEditing && { tabindex: '0', role: 'region', 'aria-label': 'Your edits', style: { '--rows': Math.min(3, Object.keys({ ...item.arguments_schema?.properties, ...given }).length || 1) } }) }, h3('Your edits'), isEdited(item, draft) ? valueDiff(given, draft.value) : p.soft('None yet.')),
    draft.mode === 'reject' && div.field(label({ for: `reason-${id}` }, 'Reason, which the model reads', span.soft(' (optional)')),
      input({ id: `reason-${id}`, value: draft.reason, oninput: ({ target }) => { draft.reason = target.value || undefined; } })),
  ];
}

/** The errors of a refused decision that no field of its form shows. */
function errorsElsewhere(item, draft) {
  const isFormed = item.kind !== 'approval' || draft.mode === 'edit';
  const { properties = {} } = (isFormed && KINDS[item.kind].schema(item, draft)) || {};
  return (draft.problem?.body?.errors ?? []).filter(({ pointer }) => !(pointer.split('/')[1] in properties));
}

function outcome(item, { sent, tried, value, reason, problem }, errors) {
  if (sent) return p.note({ role: 'status' }, icon('clock'), SENT);
  if (!problem) return null;
  const { decision: made } = problem.body ?? {};
  return div.note.lost({ role: 'alert' }, icon(made ? 'person' : 'warn'), div(
    made ? [b(`${who(made)} ${made.verdict} this`), ' ', when(made.at), ` (${date(made.at)}).`, made.reason && p(`“${made.reason}”`),
      made.arguments && valueDiff(item.arguments, made.arguments), (tried || value !== undefined || reason) && p.soft(tried ? 'Your decision was not recorded.' : 'Your draft was not sent.')] : quoted(sentenceCase(problem.message)),
    errors.length > 0 && ul(errors.map(({ pointer, detail }) => li({ key: pointer }, code(pointer || '/'), ' ', detail)))));
}
