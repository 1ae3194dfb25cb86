// The list of runs: saved views, a search that is the address, a table of what each run is and how it stands, and actions on many runs.
import { tags } from '../lib/dom.js';
import { List } from '../lib/list.js';
import { get } from '../lib/api.js';
import { at, go, load, may, pref, query, runUrl, setPref, ui } from '../lib/page.js';
import { icon, status, STATUS } from '../lib/icons.js';
import { causeOf, quoted, standing } from '../lib/cause.js';
import { ends, openDialog } from '../lib/keys.js';
import { compact, date, duration, millis, moment, money, number, plural, shortId, zone } from '../lib/format.js';
import { empty, hasEnded, resource } from '../parts/common.js';
import { dated, KEYS, parse, write } from '../parts/query.js';

const { a, b, button, div, form, h1, h2, input, kbd, label, nav, option, p, select, span } = tags;

const FIELDS = ['q', ...Object.keys(KEYS)];
const VIEWS = { All: {}, 'In flight': { status: 'running,waiting,paused' }, 'Needs a person': { needs: 'decision' }, 'Failed today': { status: 'failed', since: 'today' } };
const TIMES = { '': 'Any time', '1h': 'Last hour', '24h': 'Last 24 h', today: 'Today', '7d': 'Last 7 days' };
/** After how many milliseconds the numbers of the views are counted again. */
const COUNTED = 5000;
const address = (filter) => `/runs${query(filter)}`;
const saved = () => JSON.parse(pref('views') ?? '{}');
const sum = ({ capped, ...counts }) => `${number(Object.values(counts).reduce((all, one) => all + one, 0))}${capped ? '+' : ''}`;
const inputTokens = ({ input: sent = 0, output = 0 } = {}) => sent + output;

export default function runsView(route, frame) {
  let [filter, selected, timer, picked, everything, busy, typed, titles] = [{}, 0, 0, new Map(), false, false, null, []];
  const numbers = { at: 0 };
  const read = (to) => { filter = Object.fromEntries(FIELDS.map((name) => [name, to.query.get(name)]).filter(([, value]) => value)); };
  const asked = () => dated(filter);
  get('/brains').then(({ items: brains }) => { titles = brains.map(({ title }) => title); }, () => {});
  /** Counts the runs of each view. */
  function count() {
    if (performance.now() - numbers.at < COUNTED && numbers.at) return;
    numbers.at = performance.now();
    for (const [name, view] of Object.entries({ ...VIEWS, ...saved() })) get('/runs/counts', dated(view)).then((counts) => { numbers[name] = sum(counts); }, () => {});
  }
  const page = (cursor, limit) => get('/runs', { ...asked(), cursor, limit });
  read(route);
  const data = resource(async (old) => {
    count();
    const limit = Math.min(500, Math.max(50, old?.items.length ?? 0));
    const [first, counts] = await Promise.all([page(null, limit), get('/runs/counts', { ...asked(), status: null })]);
    // The selection stays on its run.
    const index = first.items.findIndex(({ id }) => id === old?.items[selected]?.id);
    if (index >= 0) selected = index;
    return { ...first, counts };
  });
  async function more() {
    if (busy) return;
    busy = true;
    const { turn, value } = data;
    const { items, next } = await page(value.next, 50).catch(() => ({ items: [], next: value.next }));
    if (turn === data.turn) data.value = { ...value, items: [...value.items, ...items], next };
    busy = false;
  }
  const items = () => data.value?.items ?? [];
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
  const list = new List({ name: 'runs', height: 52, measured: true, heading, row, count: () => items().length, onwindow: (_, last) => data.value?.next && last >= items().length && more() });
  const current = (act) => () => items()[selected] && act(items()[selected]);
  const keys = list.keys('run', () => selected, (index) => { selected = index; });
  return {
    title: () => 'Runs',
    update(to) {
      read(to);
      [selected, typed] = [0, null];
      pick([]);
      // Rows of another filter must not be chosen.
      data.value = null;
      data.load();
      return true;
    },
    keys: () => ({ ...keys, Enter: ['Open the run', current(({ id }) => go(at('runs', id)))], x: ['Choose the run', current(toggle)],
      '/': ['Find', () => document.querySelector('.find-runs input').focus()] }),
    change(run) {
      const index = items().findIndex(({ id }) => id === run?.id);
      if (index >= 0) data.value = { ...data.value, items: items().with(index, run) };
      clearTimeout(timer);
      timer = setTimeout(data.load, 200);
    },
    head: () => [
      div.bar(h1('Runs'), nav.views.grow({ 'aria-label': 'Saved views' }, viewLinks()), a.button.primary({ href: ui('/brains') }, icon('plus'), 'Start a run')),
      form.bar.findRuns({ role: 'search', onsubmit: (event) => { event.preventDefault(); search(); } },
        label.grow(icon('search'), input({ type: 'search', 'aria-label': 'Find runs', placeholder: 'brain:support status:failed, or any words', value: typed ?? write(filter), autocomplete: 'off', title: Object.entries(KEYS).map((pair) => pair.join(': ')).join('\n'),
          oninput: ({ target }) => { typed = target.value; }, onchange: search }), kbd.wide('/')),
        select.wide({ 'aria-label': 'Time', value: filter.since ?? '', onchange: ({ target }) => go(address({ ...filter, since: target.value })) },
          Object.entries({ ...TIMES, ...(filter.since && !TIMES[filter.since] && { [filter.since]: filter.since }) }).map(([value, text]) => option({ key: value, value }, text)))),
      div.bar.thin(p.counts.grow({ 'aria-label': 'Runs by status' }, data.value && counted(data.value)), span.wide.quiet(`Times in ${zone()}`))],
    render: () => [
      data.show(shown),
      picked.size > 0 && div.bulk({ role: 'region', 'aria-label': 'Chosen runs' },
        span(everything ? 'All runs that match' : `${number(picked.size)} chosen`),
        data.value?.next && picked.size >= items().length && !everything && button.plain({ onclick: () => pick(items(), true) }, 'Choose all that match'),
        span.grow(), may('operate') && [bulk('Cancel'), bulk('Rerun')], button.plain({ onclick: () => pick([]) }, 'Clear'))],
    close() {
      list.close();
      clearTimeout(timer);
    },
  };
  function search() {
    if (typed !== null && typed.trim() !== write(filter)) go(address(parse(typed, titles)));
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
  function counted({ counts }) {
    return [b(`${sum(counts)} runs`), Object.keys(STATUS).filter((name) => counts[name]).map((name) => a({ key: name, href: ui(address({ ...filter, status: name })),
      class: STATUS[name][1], 'aria-current': filter.status === name && 'true' }, `${number(counts[name])}${counts.capped ? '+' : ''} ${name}`))];
  }
  function shown({ items: rows, next, capped }) {
    if (!rows.length && query(filter)) return empty('No run matches', 'Change the filters.', a.button({ href: ui('/runs') }, 'Show all runs'));
    if (!rows.length) return empty('No runs yet', 'Start a brain, and watch it here.', a.button.primary({ href: ui('/brains') }, 'Start a brain'));
    return [list.view({ role: 'grid', 'aria-label': 'Runs', 'aria-rowcount': next ? -1 : rows.length + 1 }, `run-${selected}`),
      p.soft.more(`Showing ${number(rows.length)}${next ? ', there are more' : ''}.`,
        capped && ' The search has stopped at its maximum, so older runs may be missing.', next && button.small({ onclick: more }, 'Show more'),
        may('operate') && button.plain.small({ onclick: () => pick(rows) }, next ? `Choose these ${number(rows.length)}` : 'Choose all'))];
  }
  function heading() {
    const cell = (name, ...content) => span[`c-${name}`]({ role: 'columnheader' }, content);
    const all = picked.size > 0 && picked.size >= items().length;
    return div.runHeads({ key: 'heads', role: 'row', 'aria-rowindex': 1 },
      cell('pick', input({ type: 'checkbox', tabindex: '-1', 'aria-label': 'Choose all that are shown', checked: all, onchange: () => pick(all ? [] : items()) })),
      cell('status', 'Status'), cell('brain', 'Brain'), cell('why', 'How it stands'), cell('user', 'User'),
      span['c-when']({ role: 'columnheader', 'aria-sort': 'descending' }, 'Started ', icon('down')), cell('took', 'Active'), cell('waits', 'Waits'), cell('tokens', 'Tokens'), cell('cost', 'Cost'));
  }
  function row(index) {
    const run = items()[index];
    const cell = (name, ...content) => span[`c-${name}`]({ role: 'gridcell' }, content);
    const isSelected = index === selected;
    const [name, ends, now] = [standing(run), hasEnded(run), Date.now()];
    const tone = ['failed', 'parked', 'stuck'].includes(name) ? 'bad' : run.pending > 0 ? 'wait' : '';
    const { brief: text, place } = causeOf(run.status === 'completed' ? '' : run.refused?.message ?? run.why ?? run.last);
    const spent = inputTokens(run.usage);
    const none = (value) => value || span.quiet('–');
    return div.runRow({ key: run.id, id: `run-${index}`, role: 'row', 'aria-rowindex': index + 2, 'aria-selected': String(isSelected),
      class: isSelected && 'selected', onclick: ({ target }) => !target.closest('a, input') && String(getSelection()) === '' && go(at('runs', run.id)) },
    cell('pick', input({ type: 'checkbox', tabindex: '-1', 'aria-label': `Choose ${run.brain} ${shortId(run.id)}`, checked: picked.has(run.id), onchange: () => toggle(run) })),
    cell('status', status(name)),
    cell('brain', a({ href: runUrl(run.id), tabindex: '-1' }, run.brain), ' ', span.mono({ title: run.id }, shortId(run.id))),
    cell('why', span.cause({ class: tone, title: run.why }, text ? quoted(text) : span.quiet(plural(run.head + 1, 'event')), ' ', place && span.quiet(place)),
      (run.pending > 1 || run.forked_from || run.tags?.length > 0) && span.marks(run.pending > 1 && span.tag.warn(`${run.pending} pending`), run.forked_from && span.tag('fork'), run.tags?.map((tag) => span.tag({ key: tag }, tag)))),
    cell('user', none(run.user)), cell('when', span({ title: date(run.started) }, moment(run.started))), cell('took', duration(ends && run.active_ms != null ? run.active_ms : (ends ? millis(run.updated) : run.status === 'waiting' ? millis(run.since) : now) - millis(run.started))),
    cell('waits', run.status === 'waiting' ? span.wait(duration(now - millis(run.since))) : span.quiet('–')), cell('tokens', spent ? span({ title: `${number(spent)} tokens` }, compact(spent)) : span.quiet('–')),
    cell('cost', run.cost?.currency ? span({ title: run.cost.partial ? 'The cost of some answers is unknown' : '' }, `${money(run.cost.amount, run.cost.currency)}${run.cost.partial ? ' +' : ''}`) : span.quiet('–')));
  }
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
