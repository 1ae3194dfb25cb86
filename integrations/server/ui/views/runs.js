// The list of runs: saved views, a search that is the address, a table of what each run is and how it stands, and actions on many runs.
import { tags, redraw } from '../lib/dom.js';
import { List } from '../lib/windowed_list.js';
import { get } from '../lib/api.js';
import { at, caller, commandOf, go, load, may, pref, query, runUrl, setPref, ui } from '../lib/page.js';
import { icon, status, STATUS } from '../lib/icons.js';
import { causeOf, cutOff, endOf, plain, quoted, standing, whyOf } from '../lib/cause.js';
import { ends, openDialog } from '../lib/keys.js';
import { cash, compact, date, duration, line, millis, moment, money, number, plural, runCost, runCostTitle, shortId, zone } from '../lib/format.js';
import { command, empty, hasEnded, idText, resource } from '../parts/common.js';
import { asked as askedOf, dated, KEYS, parse, texts, wordsOf, write } from '../parts/query.js';
import chips from '../parts/chips.js';
import { hitLine } from '../parts/hit.js';
import { menuOf, STATUSES, suggestions } from '../parts/suggest.js';

const { a, b, button, code, div, form, h1, h2, input, kbd, label, nav, option, p, select, small, span } = tags;

const FIELDS = ['q', ...Object.keys(KEYS)];
const VIEWS = { All: {}, 'In flight': { status: 'running,waiting,paused' }, 'Needs a person': { needs: 'decision' }, 'Failed today': { status: 'failed', since: 'today' } };
const TIMES = { '': 'Any time', '1h': 'Last hour', '24h': 'Last 24 h', today: 'Today', '7d': 'Last 7 days' };
/** After how many milliseconds the numbers of the views are counted again. */
const COUNTED = 5000;
/** Up to how many runs are read so that they can be sorted. */
const MOST_SORTED = 2000;
/** By what the runs that are shown can be sorted, and how the first ones differ from the others. The store has an index of the starts only. */
const SORTS = {
  started: [({ started }) => millis(started), 'last started'], active: [activeOf, 'longest'],
  waits: [(run) => waitedOf(run) ?? -1, 'longest waiting'],
  tokens: [({ usage }) => inputTokens(usage), 'most tokens'], cost: [({ cost }) => (cost?.currency ? Number(cost.amount) : -1), 'dearest'],
};
const address = (filter, sort = null) => `/runs${query({ ...filter, sort })}`;
const saved = () => JSON.parse(pref('views') ?? '{}');
const sum = ({ capped, ...counts }) => `${number(Object.values(counts).reduce((all, one) => all + one, 0))}${capped ? '+' : ''}`;
const inputTokens = ({ input: sent = 0, output = 0 } = {}) => sent + output;

/** For how long a run has worked, in milliseconds. */
function activeOf(run) {
  const ends = hasEnded(run);
  // Nobody works on it.
  if (run.status === 'running' && !run.worker?.live) return run.active_ms || null;
  if (run.status !== 'running' && (ends ? run.active_ms != null : run.active_ms > 0)) return run.active_ms;
  return (ends ? millis(run.updated) : run.status === 'running' ? Date.now() : millis(run.since)) - millis(run.started);
}

/** For how long a run has waited: for what it waits for now, and what has ended, all in all for people, messages, times and workers. */
function waitedOf(run) {
  if (run.status === 'waiting') return Date.now() - millis(run.since);
  const rest = hasEnded(run) && run.active_ms > 0 ? millis(run.updated) - millis(run.started) - run.active_ms : 0;
  return rest >= 1000 ? rest : null;
}

export default function runsView(route, frame) {
  let [filter, sort, selected, timer, picked, everything, busy, typed, titles, tools] = [{}, null, 0, 0, new Map(), false, false, null, [], null];
  const numbers = { at: 0 };
  /** What all runs of the list come to, of which filter, and when it was asked for last. */
  const sums = { of: null, at: -COUNTED, found: null, timer: 0 };
  /** The menu below the search: whether it is open, and which of its suggestions is chosen by the arrow keys. */
  const menu = { isOpen: false, active: -1, caret: 0 };
  const read = (to) => {
    filter = Object.fromEntries(FIELDS.map((name) => [name, to.query.get(name)]).filter(([, value]) => value));
    sort = Object.hasOwn(SORTS, (to.query.get('sort') ?? '').replace(/^-/, '')) ? to.query.get('sort') : null;
  };
  const asked = () => dated(askedOf(filter));
  get('/brains').then(({ items: brains }) => { titles = brains.map(({ title }) => title); }, () => {});
  /** Counts the runs of each view. */
  function count() {
    clearTimeout(numbers.timer);
    const early = numbers.at && COUNTED - (performance.now() - numbers.at);
    if (early > 0) {
      numbers.timer = setTimeout(count, early);
      return;
    }
    numbers.at = performance.now();
    for (const [name, view] of Object.entries({ ...VIEWS, ...saved() })) get('/runs/counts', askedOf(dated(view))).then((counts) => { numbers[name] = sum(counts); }, () => {});
  }
  const page = (cursor, limit) => get('/runs', { ...asked(), cursor, limit });
  read(route);
  const data = resource(async (old) => {
    count();
    const limit = Math.min(500, Math.max(50, old?.items.length ?? 0));
    const isCounted = !filter.status || filter.status.split(',').every((name) => STATUSES.includes(name));
    const [first, counts, own] = await Promise.all([page(null, limit), get('/runs/counts', { ...asked(), status: null }), isCounted ? null : get('/runs/counts', asked())]);
    sumUp(first.next);
    // The selection stays on its run.
    const index = sort ? -1 : first.items.findIndex(({ id }) => id === old?.items[selected]?.id);
    if (index >= 0) selected = index;
    return { ...first, counts, own };
  });
  /** Adds up all runs of the list, if they are more than those that are read. */
  function sumUp(next) {
    clearTimeout(sums.timer);
    const of = query(filter);
    if (sums.of !== of) Object.assign(sums, { of, at: -COUNTED, found: null });
    if (!next) return;
    sums.timer = setTimeout(() => {
      sums.at = performance.now();
      get('/runs/sums', asked()).then((found) => {
        if (sums.of === of) sums.found = found;
        redraw();
      }, () => {});
    }, Math.max(0, COUNTED - (performance.now() - sums.at)));
  }
  async function more() {
    if (busy) return;
    busy = true;
    const { turn, value } = data;
    const { items, hits = [], next } = await page(value.next, 50).catch(() => ({ items: [], next: value.next }));
    if (turn === data.turn) data.value = { ...value, items: [...value.items, ...items], hits: [...value.hits ?? [], ...hits], next };
    busy = false;
  }
  /** Reads the list on, so that more of it can be sorted. */
  async function readAll() {
    while (data.value?.next && data.value.items.length < MOST_SORTED) {
      const before = data.value;
      busy = true;
      const { items, hits = [], next } = await page(before.next, 500).catch(() => ({ items: [], next: null }));
      busy = false;
      if (data.value !== before || !items.length) return;
      data.value = { ...before, items: [...before.items, ...items], hits: [...before.hits ?? [], ...hits], next };
      redraw();
    }
  }
  const sorted = { of: null, by: null, items: [] };
  function items() {
    const all = data.value?.items ?? [];
    if (!sort) return all;
    if (sorted.of !== all || sorted.by !== sort) {
      const [value] = SORTS[sort.replace(/^-/, '')];
      const values = new Map(all.map((run) => [run, value(run)]));
      const sign = sort.startsWith('-') ? -1 : 1;
      Object.assign(sorted, { of: all, by: sort, items: all.toSorted((one, other) => sign * (values.get(one) - values.get(other))) });
    }
    return sorted.items;
  }
  const pick = (runs, all = false) => {
    picked = new Map(runs.map((run) => [run.id, run]));
    everything = all;
  };
  const toggle = (run) => pick(picked.has(run.id) ? [...picked.values()].filter(({ id }) => id !== run.id) : [...picked.values(), run]);
  /** The chosen runs: those with a mark, or all that match the filter, whose list is read to its end. */
  async function chosen(most) {
    if (!everything) return { runs: [...picked.values()] };
    let [runs, next] = [[], null];
    do {
      const answer = await page(next, 500);
      [runs, next] = [[...runs, ...answer.items], answer.next];
    } while (next && runs.length < most);
    return { runs: runs.slice(0, most), capped: Boolean(next) };
  }
  const done = () => {
    pick([]);
    data.load();
  };
  const bulk = (name) => button({ onclick: () => load('bulk').then((bulk) => bulk.default(name, chosen, done), frame.fail) }, `${name}…`);
  const list = new List({ name: 'runs', height: 52, measured: true, heading, row, count: () => items().length, onwindow: (_, last) => !sort && data.value?.next && last >= items().length && more() });
  const current = (act) => () => items()[selected] && act(items()[selected]);
  const keys = list.keys('run', () => selected, (index) => { selected = index; });
  return {
    title: () => 'Runs',
    update(to) {
      const before = query(filter);
      read(to);
      [selected, typed] = [0, null];
      pick([]);
      if (query(filter) === before) return true;
      // Rows of another filter must not be chosen.
      data.value = null;
      data.load();
      return true;
    },
    keys: () => ({ ...keys, Enter: ['Open the run', current(({ id }) => go(at('runs', id)))], x: ['Choose the run', current(toggle)],
      '/': ['Find', () => document.querySelector('.find-runs input').focus()] }),
    change(run) {
      const index = data.value?.items.findIndex(({ id }) => id === run?.id) ?? -1;
      if (index >= 0) data.value = { ...data.value, items: data.value.items.with(index, run) };
      clearTimeout(timer);
      timer = setTimeout(data.load, 200);
    },
    head: () => [
      div.bar(h1('Runs'), nav.views.grow({ 'aria-label': 'Saved views' }, viewLinks()), a.button.primary({ href: ui('/brains') }, icon('plus'), 'Start a run')),
      form.bar.findRuns({ role: 'search', onsubmit: (event) => { event.preventDefault(); search(); } },
        div.grow.field(label(icon('search'), chips(typed ?? write(filter)), searchField(), kbd.wide('/')), menu.isOpen && suggested().items.length > 0 && menuOf(suggested(), menu.active, take)),
        select({ 'aria-label': 'Time', value: filter.since ?? '', onchange: ({ target }) => go(address({ ...filter, since: target.value }, sort)) },
          Object.entries({ ...TIMES, ...(filter.since && !TIMES[filter.since] && { [filter.since]: Number.isNaN(Date.parse(filter.since)) ? filter.since : `Since ${moment(filter.since).replace(/:\d\d$/, '')}` }) }).map(([value, text]) => option({ key: value, value }, text)))),
      div.bar.thin(p.counts.grow({ role: 'group', 'aria-label': 'Runs by status' }, data.value?.counts && counted(data.value)), span.wide.quiet(query(filter) && caller.session.program ? ['Same in the terminal: ', command(commandOf('runs', ...wordsOf(write(filter)).map(({ word }) => word)), true)] : `Times in ${zone()}`))],
    render: () => [
      data.show(shown),
      picked.size > 0 && div.bulk({ role: 'region', 'aria-label': 'Chosen runs' },
        span(everything ? 'All runs that match' : `${number(picked.size)} chosen`),
        data.value?.next && picked.size >= items().length && !everything && button.plain({ onclick: () => pick(items(), true) }, 'Choose all that match'),
        span.grow(), picked.size === 2 && !everything && a.button({ href: ui(compared()) }, 'Compare'), may('operate') && [bulk('Cancel'), bulk('Rerun')], button.plain({ onclick: () => pick([]) }, 'Clear'))],
    close() {
      list.close();
      clearTimeout(timer);
      clearTimeout(sums.timer);
      clearTimeout(numbers.timer);
    },
  };
  /** The comparison of the two chosen runs, the earlier one first. */
  function compared() {
    const [one, other] = [...picked.values()].toSorted((x, y) => millis(x.started) - millis(y.started));
    return `/diff${query({ a: one.id, b: other.id })}`;
  }
  function search() {
    menu.isOpen = false;
    if (typed !== null && typed.trim() !== write(filter)) go(address(parse(typed, known()), sort));
  }
  /** The titles of this server's brains, and of the runs that are shown. */
  function known() {
    return [...new Set([...titles, ...(data.value?.items ?? []).map(({ brain }) => brain)])];
  }
  function suggested() {
    return suggestions(typed ?? write(filter), menu.caret, { counts: data.value?.counts, titles: known(), rows: data.value?.items ?? [], tools: tools ?? [] });
  }
  /** Puts a suggestion in the place of the word before the caret. */
  function take({ insert }) {
    const field = document.querySelector('.find-runs input');
    const { from } = suggested();
    typed = field.value.slice(0, from) + insert + field.value.slice(menu.caret).trimStart();
    Object.assign(menu, { active: -1, caret: from + insert.length, isOpen: true });
    field.value = typed;
    field.setSelectionRange(menu.caret, menu.caret);
    field.focus();
  }
  function searchField() {
    const opens = ({ target }) => {
      Object.assign(menu, { isOpen: true, active: -1, caret: target.selectionStart ?? target.value.length });
      // The tools that have asked people lately are the ones that are looked for.
      if (!tools) {
        tools = [];
        const names = ({ items: found }) => { tools = [...new Set([...tools, ...found.map(({ tool }) => tool).filter(Boolean)])]; };
        for (const path of ['/pending', '/decisions']) get(path, { limit: 100 }).then(names, () => {});
      }
    };
    const onkeydown = (event) => {
      const shown = menu.isOpen ? suggested().items : [];
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step && shown.length) menu.active = (menu.active + step + shown.length + (menu.active < 0 && step < 0 ? 1 : 0)) % shown.length;
      else if (['Tab', 'Enter'].includes(event.key) && !event.shiftKey && shown[menu.active]) take(shown[menu.active]);
      else if (event.key === 'Escape' && menu.isOpen) menu.isOpen = false;
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    const isOpen = menu.isOpen && suggested().items.length > 0;
    return input({ type: 'search', role: 'combobox', 'aria-label': 'Find runs', 'aria-expanded': String(isOpen), 'aria-controls': isOpen ? 'suggestions' : null, 'aria-autocomplete': 'list', 'aria-activedescendant': isOpen && menu.active >= 0 ? `suggestion-${menu.active}` : null,
      placeholder: 'brain:support status:failed, or any words', value: typed ?? write(filter), autocomplete: 'off',
      oninput: (event) => {
        typed = event.target.value;
        opens(event);
      }, onscroll: ({ target }) => { target.previousSibling.scrollLeft = target.scrollLeft; }, onfocus: opens, onclick: opens, onblur: () => { menu.isOpen = false; }, onkeydown, onchange: search });
  }
  function viewLinks() {
    const own = saved();
    const current = query(filter);
    const isKnown = Object.values({ ...VIEWS, ...own }).some((view) => query(view) === current);
    return [Object.entries({ ...VIEWS, ...own }).map(([name, view]) => a({ key: name, href: ui(address(view)), 'aria-current': query(view) === current && 'true' }, own[name] && icon('pin'), name,
      numbers[name] && span.count(numbers[name]))),
    !isKnown && button({ key: '+', onclick: () => saveDialog(filter) }, icon('plus'), 'Save view'),
    own && Object.entries(own).map(([name, view]) => query(view) === current && button({ key: `- ${name}`, onclick: () => {
      const { [name]: _, ...rest } = saved();
      setPref('views', JSON.stringify(rest));
    } }, icon('cross'), 'Forget view'))];
  }
  /** What the runs that are read come to. */
  function sumOf(rows) {
    const costs = new Map();
    for (const { cost } of rows) if (cost?.currency) costs.set(cost.currency, (costs.get(cost.currency) ?? 0) + Number(cost.amount));
    const tokens = rows.reduce(({ input: sent, output }, { usage = {} }) => ({ input: sent + (usage.input ?? 0), output: output + (usage.output ?? 0) }), { input: 0, output: 0 });
    return { costs: [...costs].map(([currency, amount]) => ({ currency, amount })), tokens, partly_priced: rows.filter(({ cost }) => cost?.partial).length };
  }
  /** What all runs of the list have cost. Until that is known, what the shown ones have, which says how many they are. */
  function spent({ items: rows, next }) {
    const isKnown = sums.of === query(filter) && sums.found;
    const { costs, tokens, partly_priced: partly, capped } = next && isKnown ? sums.found : sumOf(rows);
    const [used, amounts] = [inputTokens(tokens), costs.map(({ amount, currency }) => cash(amount, currency)).join(' + ')];
    const isLeast = partly > 0 && `The cost of ${plural(partly, 'run')} is partly unknown`;
    const figures = [amounts && span({ key: 'cost', title: isLeast || null }, !capped && isLeast && 'at least ', amounts), used > 0 && span({ key: 'tokens', title: `${number(used)} tokens` }, `${compact(used)} tokens`)].filter(Boolean);
    return figures.length > 0 && [next && !isKnown && span({ key: 'of' }, `the ${number(rows.length)} shown:`), capped && span({ key: 'least', title: 'The search has read as many events as one request may' }, `at least, in the first ${number(sums.found.runs)}:`), figures];
  }
  /** The runs of the list by their status, and those of the same filter with another one. How runs stand beside their status is counted apart. */
  function counted({ counts, own: apart, items: rows, next }) {
    const chosen = filter.status?.split(',') ?? STATUSES;
    const own = apart ?? { ...Object.fromEntries(STATUSES.map((name) => [name, chosen.includes(name) ? counts[name] : 0])), capped: counts.capped };
    const linked = (of) => STATUSES.filter((name) => of[name] > 0).map((name) => a({ key: name, href: ui(address({ ...filter, status: name })),
      class: STATUS[name][1], 'aria-current': filter.status === name && 'true' }, `${number(of[name])}${counts.capped ? '+' : ''} ${name}`));
    const [listed, others] = [apart ? [] : linked(own), linked(Object.fromEntries(STATUSES.map((name) => [name, counts[name] - own[name]])))];
    // The other statuses stay, so that one can be chosen.
    return [b(`${sum(own)} ${sum(own) === '1' ? 'run' : 'runs'}`), listed, spent({ items: rows, next }), others.length > 0 && [span.quiet({ key: 'others' }, 'Not in this list:'), others]];
  }
  function shown({ items: rows, next, capped }) {
    if (!rows.length && query(filter)) return noMatch();
    if (!rows.length) return empty('No runs yet', 'Choose a brain, and watch its run here.', a.button.primary({ href: ui('/brains') }, 'Start a run'));
    return [list.view({ role: 'grid', 'aria-label': 'Runs', 'aria-rowcount': next ? -1 : rows.length + 1 }, `run-${selected}`),
      p.soft.more(sort && next ? `The ${SORTS[sort.replace(/^-/, '')][1]} ${sort.startsWith('-') ? 'first' : 'last'} of the ${number(rows.length)} last started; older runs are not sorted in. ` : `Showing ${number(rows.length)}${next ? ', there are more' : ''}.`,
        capped && ' The search has stopped at its maximum, so older runs may be missing.', next && !sort && button.small({ onclick: more }, 'Show more'),
        next && sort && rows.length < MOST_SORTED && button.small({ onclick: readAll, disabled: busy }, busy ? 'Reading…' : `Sort up to ${number(MOST_SORTED)}`),
        may('operate') && button.plain.small({ onclick: () => pick(rows) }, next ? `Choose these ${number(rows.length)}` : 'Choose all'))];
  }
  /** Offers the words one by one, since no run has all of them. */
  function noMatch() {
    const words = wordsOf(filter.q);
    const others = words.length < 2 ? [] : words.map(({ word }) => ({ ...filter, q: word }));
    const names = Object.keys(filter).filter((name) => name !== 'q');
    const fewer = !others.length && Object.keys(filter).length > 1 ? names : [];
    return empty(['No run matches ', code(line(write(filter)))], others.length ? 'No run has all of these words. Or look for:' : fewer.length ? 'Or take a condition away:' : null,
      others.map((other) => a.button({ key: write(other), href: ui(address(other)) }, write(other))),
      fewer.map((name) => a.button({ key: name, href: ui(address({ ...filter, [name]: null })) }, 'Without ', write({ [name]: filter[name] }))), a.button({ key: 'all', href: ui('/runs') }, 'Clear the search'));
  }
  function heading() {
    const cell = (name, ...content) => span[`c-${name}`]({ role: 'columnheader' }, content);
    const all = picked.size > 0 && picked.size >= items().length;
    return div.runHeads({ key: 'heads', role: 'row', 'aria-rowindex': 1 },
      cell('pick', input({ type: 'checkbox', tabindex: '-1', 'aria-label': 'Choose all that are shown', checked: all, onchange: () => pick(all ? [] : items()) })),
      cell('status', 'Status'), cell('brain', 'Brain'), cell('why', 'About, and how it stands'), cell('user', 'User'),
      sorts('when', 'started', 'Started'), sorts('took', 'active', 'Active'), sorts('waits', 'waits', 'Waited'), sorts('tokens', 'tokens', 'Tokens'), sorts('cost', 'cost', 'Cost'));
  }
  /** A head that sorts: the first click shows what is most on top, the second what is least. */
  function sorts(column, name, text) {
    const now = sort ?? '-started';
    const isDown = now === `-${name}`;
    const next = isDown ? name : `-${name}`;
    return span[`c-${column}`]({ role: 'columnheader', 'aria-sort': now.replace(/^-/, '') === name ? (isDown ? 'descending' : 'ascending') : null },
      button.plain({ tabindex: '-1', title: name === 'started' ? null : 'Sorts the runs that are shown', onclick: () => go(address(filter, next === '-started' ? null : next), true) }, text, now.replace(/^-/, '') === name && icon(isDown ? 'down' : 'up')));
  }
  function row(index) {
    const run = items()[index];
    const cell = (name, ...content) => span[`c-${name}`]({ role: 'gridcell' }, content);
    const isSelected = index === selected;
    const name = standing(run);
    const tone = ['failed', 'parked', 'stuck'].includes(name) ? 'bad' : name === 'limited' || run.pending > 0 ? 'wait' : '';
    const { brief: text, place } = stands(run, name);
    const spent = inputTokens(run.usage);
    const none = (value) => value || span.quiet('–');
    return div.runRow({ key: run.id, id: `run-${index}`, role: 'row', 'aria-rowindex': index + 2, 'aria-selected': String(isSelected),
      class: isSelected && 'selected', // Beside the small box of a row, a click chooses the run and does not leave the list.
      onclick: ({ target }) => (target.closest('.c-pick') ? target.closest('input') || toggle(run) : !target.closest('a') && String(getSelection()) === '' && go(at('runs', run.id))) },
    cell('pick', input({ type: 'checkbox', tabindex: '-1', 'aria-label': `Choose ${run.brain} ${shortId(run.id)}`, checked: picked.has(run.id), onchange: () => toggle(run) })),
    cell('status', status(name)),
    cell('brain', a({ href: runUrl(run.id), tabindex: '-1' }, run.brain), ' ', span.mono({ title: run.id }, idText(run.id))),
    cell('why', span.about({ dir: 'auto', title: run.input }, plain(run.input)), span.cause({ class: tone, title: run.why ?? run.result, dir: 'auto' }, text ? quoted(text) : span.quiet(plural(run.head + 1, 'event')), ' ', place && span.quiet(place)),
      hitLine(data.value.hits?.find(({ run: id }) => id === run.id), texts(filter)), (run.forked_from || run.tags?.length > 0) && span.marks(run.forked_from && span.tag('fork'), run.tags?.map((tag) => span.tag({ key: tag }, tag)))),
    cell('user', none(run.user)), cell('when', span({ title: date(run.started) }, moment(run.started))), cell('took', none(duration(activeOf(run)))),
    cell('waits', run.status === 'waiting' ? span.wait(duration(waitedOf(run))) : none(duration(waitedOf(run)))), cell('tokens', spent ? span({ title: `${number(spent)} tokens` }, compact(spent)) : span.quiet('–')),
    cell('cost', span({ class: run.cost?.currency ? '' : 'quiet', title: runCostTitle(run.cost) }, runCost(run.cost))));
  }
}

/** How a run stands, briefly: the limit that cut it off, its result, or its cause and place. */
function stands(run, name) {
  if (name === 'limited') return { brief: cutOff(run), place: run.result && `· ${plain(run.result)}` };
  if (run.status === 'cancelled') return { brief: `Cancelled ${run.why ?? ''}` };
  if (run.status === 'completed') return { brief: endOf(run) };
  return causeOf(run.refused?.message ?? whyOf(run));
}

/** Asks for the name of a view, and keeps it in this browser. */
function saveDialog(filter) {
  let name = '';
  openDialog('Save view', (close) => form({ onsubmit: (event) => {
    event.preventDefault();
    if (name.trim()) setPref('views', JSON.stringify({ ...saved(), [name.trim()]: filter }));
    close();
  } }, h2('Save view'), p.soft(write(filter)), label.field(span('Name'), input({ value: name, ref: (node) => node.focus(), oninput: ({ target }) => { name = target.value; } })),
  ends(close, button.primary('Save'))));
}
