// Two runs side by side: the first difference with its requests, what each did, and the change of the final state.
import { tags } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { at, go, query, runUrl } from '../lib/page.js';
import { causeOf, endOf, placeWords, quoted, standing, whyOf } from '../lib/cause.js';
import { status } from '../lib/icons.js';
import { brief, duration, limitText, line, millis, money, plural, shortId, tokens } from '../lib/format.js';
import { empty, hasEnded, pageHead, resource } from '../parts/common.js';
import { likeness, linesDiff, sideBySide, valueDiff, words } from '../parts/change.js';
import { idsOf } from '../parts/ids.js';
import { patchList } from '../parts/patch.js';

const { a, b, button, code, div, form, h2, h3, input, label, p, section, span } = tags;

/** What became of a place that has no text. */
const STATES = { limited: 'cut off at its limit', skipped: 'not reached', done: 'no text, only calls' };
/** The limit that has cut off a run, in words. */
const limitOf = ({ limit, message }) => (limit ? `cut off at its limit of ${limitText(limit.kind, limit.limit)}` : message ? 'stopped by a plugin' : 'cut off');
/** How a run has ended or stands, in words: the limit, the guard, the failure or the person that ended it. */
function endWords(run, cut) {
  if (cut && standing(run) === 'limited') return [`was ${limitOf(cut)} in `, a({ href: runUrl(run.id, 'transcript', cut.seq) }, placeWords(cut.path) || 'the run'), cut.message && [': ', quoted(line(cut.message, 200))]];
  if (run.status === 'completed') return run.why ? ['was ', quoted(run.why)] : ['completed'];
  if (run.status === 'failed') return ['failed: ', quoted(causeOf(whyOf(run)).brief)];
  if (run.status === 'cancelled') return ['was cancelled ', quoted(run.why)];
  return [{ waiting: 'waits', paused: 'is paused', running: 'is running' }[run.status] ?? run.status];
}
const summary = ({ tool, arguments: given, text, status: state, cut }, kind) => [tool, given && brief(given), text || cut || (!tool && ((kind === 'answer' || state !== 'done') && STATES[state]) || (!tool && state?.replaceAll('_', ' ')))].filter(Boolean).join(' ');

/** The rows, in which all attempts to get one answer are one: the last of them, which says how many there were. */
function onceEach(rows) {
  const later = (one, other) => (other ? { ...other, tries: (one?.tries ?? 0) + 1 } : one);
  return rows.reduce((list, row) => {
    const before = list.at(-1);
    const first = { ...row, a: later(null, row.a), b: later(null, row.b) };
    if (row.kind !== 'answer' || before?.kind !== 'answer' || before.path !== row.path) return [...list, first];
    return list.with(-1, { ...before, same: before.same && row.same, a: later(before.a, row.a), b: later(before.b, row.b) });
  }, []);
}

/** What is compared of an event. */
const fieldsOf = ({ path, body }) => ({ ...(path !== undefined && { path }), ...body });

/** The last request of a run up to an event; that of the iteration, if the event begins one. */
async function requestAt(run, { seq, body }) {
  const path = `/runs${at(run, 'requests')}`;
  const { items } = await get(path);
  const asked = (body.type === 'LOOP_ITERATION' && items.find((one) => one.seq >= seq)) || items.findLast((one) => one.seq <= seq);
  return asked && get(path + at(asked.seq));
}
const systemOf = ({ system }) => (typeof system === 'string' ? system : system?.body ?? '');
/** The iteration from which on two runs have other system prompts. */
const promptDiffers = ({ parts: [x], requests }) => x?.body.type === 'LOOP_ITERATION' && requests && systemOf(requests[0].request) !== systemOf(requests[1].request);

/** Whether two events differ only in the state after them, such as in a folder of the run's own. */
const differInState = (x, y) => Boolean(x && y) && JSON.stringify({ ...fieldsOf(x), change: null }) === JSON.stringify({ ...fieldsOf(y), change: null });

export default function diffView(route) {
  const pair = (to) => ['a', 'b'].map((name) => to.query.get(name));
  let [one, other] = pair(route);
  let whole = false;
  const data = one && other && resource(async () => {
    const found = await get('/diff', { a: one, b: other }).catch(async (problem) => {
      if (problem.status !== 404) throw problem;
      // The short forms of ids, as the page prints them.
      const whole = await Promise.all([one, other].map(async (id) => { const [first, ...more] = await idsOf(id); return first && !more.length ? first : id; }));
      [one, other] = whole;
      return get('/diff', { a: one, b: other });
    });
    const { one: x, other: y } = found.diff.parts ?? {};
    const requests = x && y && await Promise.all([requestAt(one, x), requestAt(other, y)]);
    // The stages around what was cut off say by what.
    const marked = (side, path, cut) => (side?.status === 'limited' && cut?.path.startsWith(path) ? { ...side, cut: limitOf(cut) } : side);
    const rows = found.rows.map((row) => ({ ...row, a: marked(row.a, row.path, found.cut_off.a), b: marked(row.b, row.path, found.cut_off.b) }));
    return { ...found, rows, parts: [x, y], requests: requests?.every(Boolean) ? requests : null };
  });
  const jump = () => {
    const card = document.querySelector('.first-difference');
    card?.scrollIntoView({ block: 'nearest' });
    card?.focus({ preventScroll: true });
  };
  const toggle = () => { whole = !whole; };
  const link = (run, seq, text = `event ${seq}`) => a({ href: runUrl(run.id, 'events', seq) }, text);
  const side = (name, run) => section(h2(name, ' ', a({ href: runUrl(run.id) }, run.brain), ' ', code(shortId(run.id))),
    p.line(status(standing(run)), span.soft([tokens(run.usage), run.cost?.currency && money(run.cost.amount, run.cost.currency), duration(run.active_ms || millis(run.updated) - millis(run.started))].filter(Boolean).join(' · '))),
    p.cut({ dir: 'auto', class: run.status === 'failed' ? 'bad' : '' }, run.status === 'completed' ? quoted(endOf(run) || 'No result') : quoted(causeOf(whyOf(run)).brief)));
  /** What runs in a run that waits, waits. */
  const doing = (run, item) => (item?.status === 'running' && !hasEnded(run) ? { ...item, status: standing(run) } : item);
  const cell = (run, item, kind) => (item ? div.cell({ dir: 'auto' }, item.status !== 'not_started' && item.status !== 'skipped' && link(run, item.seq, item.seq), line(summary(item, kind), 300), item.tries > 1 && span.soft(`after ${plural(item.tries, 'attempt')}`)) : div.cell.soft('only in the other run'));
  /** Whether an item has words or values of its own, and not only how it stands. */
  const isSaid = (item) => Boolean(item?.text || item?.arguments);
  const rowOf = (answer) => (row, i) => (!row.same || whole) && div.diffRow({ key: i, role: 'listitem', class: !row.same && 'differs' },
    div.place(span({ title: row.path }, placeWords(row.path) || 'Run'), ' ', code(row.kind)), cell(answer.a, doing(answer.a, row.a), row.kind), cell(answer.b, doing(answer.b, row.b), row.kind),
    isSaid(row.a) && isSaid(row.b) && summary(row.a) !== summary(row.b) && likeness(summary(row.a), summary(row.b)) > 0.3 && div.inline(words(summary(row.a), summary(row.b))));
  /** Where the logs part, and what the models were asked there. */
  function divergence({ a: left, b: right, parts: [x, y], requests }) {
    const [before, after] = requests?.map(({ model, request }) => ({ model, ...request })) ?? [];
    const differ = JSON.stringify(before) !== JSON.stringify(after);
    const isPrompt = promptDiffers({ parts: [x, y], requests });
    // The prompt stands above, by its lines.
    const others = ({ system, ...fields }) => (isPrompt ? fields : { system, ...fields });
    const hasMore = differ && JSON.stringify(others(before)) !== JSON.stringify(others(after));
    const start = (name, run, part) => (part ? [link(run, part.seq, `${name}, event ${part.seq}`), ': ', span.soft([placeWords(part.path ?? part.body.path), part.body.type.toLowerCase().replaceAll('_', ' ')].filter(Boolean).join(', '))] : `${name} has ended`);
    return (x || y) && section.panel.firstDifference({ tabindex: '-1' }, h2('First difference'), p(start('A', left, x), ' · ', start('B', right, y)),
      isPrompt && [h3('System prompt'), linesDiff(systemOf(before), systemOf(after))],
      x && y && !isPrompt && sideBySide([`A, event ${x.seq}`, `B, event ${y.seq}`], fieldsOf(x), fieldsOf(y)),
      requests && p.soft(isPrompt ? 'The requests of this iteration, ' : 'The requests to the models before it, ', requests.map(({ seq }, i) => [i ? ' and ' : '',
        a({ key: i, href: runUrl([left, right][i].id, 'requests', seq) }, `event ${seq} of ${'AB'[i]}`)]), !differ ? ', are equal.' : hasMore ? ', differ:' : ', differ in nothing else.'),
      hasMore && valueDiff(others(before), others(after)));
  }
  /** What has ended one run and not the other, before what differs besides. */
  function ends({ a: left, b: right, cut_off: cut }) {
    const both = [['A', left, cut.a], ['B', right, cut.b]];
    const how = ([, run, by]) => JSON.stringify([standing(run), by && limitOf(by), hasEnded(run) && run.why]);
    if (how(both[0]) === how(both[1])) return null;
    // What has ended a run stands before one that is open, and that before one that has done all of its work.
    const rank = ([, run]) => (!hasEnded(run) ? 1 : standing(run) === 'completed' && !run.why ? 2 : 0);
    const [first, second] = both.toSorted((one, other) => rank(one) - rank(other));
    return p.lead({ dir: 'auto' }, b(first[0], ' ', endWords(...first.slice(1))), '; ', second[0], ' ', endWords(...second.slice(1)), '.');
  }
  const shown = (answer) => {
    const { diff } = answer;
    const rows = onceEach(answer.rows);
    const same = rows.filter((row) => row.same).length;
    // What neither run has reached stands at the end.
    const reached = ({ a: left, b: right }) => Boolean(left?.seq || right?.seq);
    const inOrder = [...rows.filter(reached), ...rows.filter((row) => !reached(row))];
    const [x, y] = answer.parts;
    const until = x?.seq ?? y?.seq;
    const fork = [answer.a, answer.b].find(({ forked_from: origin }) => origin && [answer.a.id, answer.b.id].includes(origin.run));
    // A state that no row shows stands after what the runs did. The first difference of a fork is its cause.
    const isBeside = same < rows.length && !fork && differInState(x, y) && !rows.some((row) => !row.same && row.path === (x.path ?? ''));
    const otherPrompt = promptDiffers(answer) && `The system prompt differs from ${placeWords(x.path).split(', ').at(-1)} on`;
    return [div.columns(side('A', answer.a), side('B', answer.b)),
      ends(answer),
      p.lead(same < rows.length ? [fork && `${fork === answer.b ? 'B is a fork of A' : 'A is a fork of B'} after event ${fork.forked_from.seq}. `, until > 0 && b(`They did the same up to event ${until - 1}${x?.seq === y?.seq ? '' : ` of ${x == null ? 'B' : 'A'}`}. `), otherPrompt && b(`${otherPrompt}. `), `${plural(same, 'row')} ${same === 1 ? 'is' : 'are'} equal, ${rows.length - same} ${rows.length - same === 1 ? 'differs' : 'differ'}.`] : [b(otherPrompt ? `${otherPrompt}; the answers are the same.` : 'Both runs did the same.'), !otherPrompt && until !== undefined && ' They differ only in what is recorded beside it.']),
      diff.given && JSON.stringify(diff.given[0].options) !== JSON.stringify(diff.given[1].options) && section(h2('Options'), valueDiff(diff.given[0].options, diff.given[1].options)),
      !isBeside && divergence(answer),
      div.diffRows({ role: 'list', 'aria-label': 'Rows' }, inOrder.map(rowOf(answer))),
      isBeside && divergence(answer),
      diff.state?.length > 0 && section(h2('State at the end, from A to B'), patchList(diff.state))];
  };
  const choose = (event) => {
    event.preventDefault();
    go(`/diff${query(Object.fromEntries(new FormData(event.target)))}`);
  };
  return {
    title: () => 'Compare runs',
    keys: () => ({ d: ['First difference', jump], o: ['Show or hide what is equal', toggle] }),
    render: () => (data ? [pageHead('Compare runs', button({ onclick: jump }, 'First difference'),
      button.plain({ onclick: toggle }, whole ? 'Hide what is equal' : 'Show what is equal')), data.show(shown)]
      : empty('Choose two runs', 'Mark two runs in the list and press Compare, or enter their ids.', form({ onsubmit: choose },
        ['a', 'b'].map((name) => label({ key: name }, `Run ${name.toUpperCase()}`, input({ name, required: true }))), button.primary('Compare')))),
    update: (to) => String(pair(to)) === String(pair(route)),
  };
}
