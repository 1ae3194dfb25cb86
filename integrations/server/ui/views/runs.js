// The list of runs: presets, filters that are the address, counts by status, pages on demand, and actions on many runs.
import { tags } from '../lib/dom.js';
import { List } from '../lib/list.js';
import { get } from '../lib/api.js';
import { at, go, load, may, query, runUrl, ui } from '../lib/page.js';
import { status, STATUS } from '../lib/icons.js';
import { ago, date, duration, millis, number, shortId, tokens } from '../lib/format.js';
import { empty, hasEnded, pageHead, resource } from '../parts/common.js';

const { a, button, div, input, label, nav, p, span } = tags;

const FIELDS = ['status', 'brain', 'user', 'tag', 'conversation', 'needs', 'since', 'before', 'q'];
const FINDS = { q: ['Find', 'text or id'], brain: ['Brain', 'any'], user: ['User', 'any'], tag: ['Tag', 'any'] };
const PRESETS = { All: {}, 'In flight': { status: 'running,waiting,paused' }, 'Waiting for a person': { needs: 'decision' },
  'Failed today': { status: 'failed', since: 'today' } };
const address = (filter) => `/runs${query(filter)}`;

export default function runsView(route, frame) {
  let [filter, selected, timer, picked, everything, busy] = [{}, 0, 0, new Map(), false, false];
  const read = (to) => { filter = Object.fromEntries(FIELDS.map((name) => [name, to.query.get(name)]).filter(([, value]) => value)); };
  const asked = () => ({ ...filter, since: filter.since === 'today' ? new Date(new Date().setHours(0, 0, 0, 0)).toISOString() : filter.since });
  const page = (cursor, limit) => get('/runs', { ...asked(), cursor, limit });
  read(route);
  const data = resource(async (old) => {
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
  const height = innerWidth < 700 ? 68 : 44;
  const list = new List({ name: 'runs', height, row, count: () => items().length, onwindow: (_, last) => data.value?.next && last >= items().length && more() });
  const current = (act) => () => items()[selected] && act(items()[selected]);
  const keys = list.keys('run', () => selected, (index) => { selected = index; });
  return {
    title: () => 'Runs',
    update(to) {
      read(to);
      selected = 0;
      pick([]);
      // Rows of another filter must not be chosen.
      data.value = null;
      data.load();
      return true;
    },
    keys: () => ({ ...keys, Enter: ['Open the run', current(({ id }) => go(at('runs', id)))], x: ['Choose the run', current(toggle)],
      '/': ['Find', () => document.querySelector('.filters input').focus()] }),
    change(run) {
      const index = items().findIndex(({ id }) => id === run?.id);
      if (index >= 0) data.value = { ...data.value, items: items().with(index, run) };
      clearTimeout(timer);
      timer = setTimeout(data.load, 200);
    },
    render: () => [
      pageHead('Runs', nav.presets({ 'aria-label': 'Presets' }, Object.entries(PRESETS).map(([text, preset]) => a({ key: text, href: ui(address(preset)),
        'aria-current': query(preset) === query(filter) && 'true' }, text)))),
      div.filters(Object.entries(FINDS).map(([name, [text, placeholder]]) => label({ key: name }, text, input({ type: 'search', placeholder, value: filter[name],
        onchange: ({ target }) => go(address({ ...filter, [name]: target.value.trim() })) }))),
      p.counts({ 'aria-label': 'Runs by status' }, data.value && counted(data.value))),
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
  function counted({ counts }) {
    return Object.keys(STATUS).filter((name) => counts[name]).map((name) => a({ key: name, href: ui(address({ ...filter, status: name })),
      'aria-current': filter.status === name && 'true' }, status(name, `${number(counts[name])}${counts.capped ? '+' : ''} ${name}`)));
  }
  function shown({ items: rows, next, capped }) {
    if (!rows.length && query(filter)) return empty('No run matches', 'Change the filters.', a.button({ href: ui('/runs') }, 'Show all runs'));
    if (!rows.length) return empty('No runs yet', 'Start a brain, and watch it here.', a.button.primary({ href: ui('/brains') }, 'Start a brain'));
    return [list.view({ role: 'grid', 'aria-label': 'Runs', 'aria-rowcount': next ? -1 : rows.length }, `run-${selected}`),
      p.soft.more(`Showing ${number(rows.length)}${next ? ', there are more' : ''}.`,
        capped && ' The search has stopped at its maximum, so older runs may be missing.', next && button.small({ onclick: more }, 'Show more'),
        may('operate') && button.plain.small({ onclick: () => pick(rows) }, next ? `Choose these ${number(rows.length)}` : 'Choose all'))];
  }
  function row(index) {
    const run = items()[index];
    const cell = (name, ...content) => span[`c-${name}`]({ role: 'gridcell' }, content);
    const isSelected = index === selected;
    return div.runRow({ key: run.id, id: `run-${index}`, role: 'row', 'aria-rowindex': index + 1, 'aria-selected': String(isSelected),
      class: isSelected && 'selected', onclick: ({ target }) => !target.closest('a, input') && go(at('runs', run.id)) },
    cell('pick', input({ type: 'checkbox', tabindex: '-1', 'aria-label': `Choose ${run.brain} ${shortId(run.id)}`, checked: picked.has(run.id), onchange: () => toggle(run) })),
    cell('status', status(run.parked ? 'parked' : run.status)),
    cell('brain', a({ href: runUrl(run.id), tabindex: '-1' }, run.brain), run.forked_from && span.tag('fork'), run.tags?.map((tag) => span.tag({ key: tag }, tag))),
    cell('why', run.pending > 0 && span.count({ title: 'pending' }, run.pending), span({ title: run.why }, run.status === 'failed' ? run.why : run.last ?? run.why)),
    cell('user', run.user), cell('id', span.mono({ title: run.id }, shortId(run.id))), cell('tokens', tokens(run.usage)),
    cell('took', duration((hasEnded(run) ? millis(run.updated) : Date.now()) - millis(run.started))), cell('when', span({ title: date(run.started) }, ago(run.started))));
  }
}
