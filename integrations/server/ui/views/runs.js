// The list of runs: presets, filters that are the address, counts by status, pages on demand, and actions on many runs.
import { tags } from '../lib/dom.js';
import { FixedList } from '../lib/list.js';
import { get, ui } from '../lib/api.js';
import { status, STATUS } from '../lib/icons.js';
import { ago, date, duration, millis, number, shortId, tokens } from '../lib/format.js';
import { empty, pageHead, resource } from '../parts/common.js';
import { bulkDialog, isOpen } from '../parts/bulk.js';

const { a, button, div, input, label, nav, p, span } = tags;

const FIELDS = ['status', 'brain', 'user', 'conversation', 'needs', 'since', 'before', 'q'];
const FINDS = [['q', 'Find', 'text or id'], ['brain', 'Brain', 'any'], ['user', 'User', 'any']];
const PRESETS = { All: {}, 'In flight': { status: 'running,waiting,paused' }, 'Waiting for a person': { needs: 'decision' },
  'Failed today': { status: 'failed', since: 'today' } };
const today = () => new Date(new Date().setHours(0, 0, 0, 0)).toISOString();
const address = (filter) => {
  const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value));
  return `/runs${query.size ? `?${query}` : ''}`;
};

export function runsView(context, route) {
  let [filter, list, selected, timer, picked, everything] = [{}, null, 0, 0, new Map(), false];
  const read = (to) => { filter = Object.fromEntries(FIELDS.map((name) => [name, to.query.get(name)]).filter(([, value]) => value)); };
  const query = () => ({ ...filter, since: filter.since === 'today' ? today() : filter.since });
  const page = (cursor, limit) => get('/runs', { ...query(), cursor, limit });
  read(route);
  const data = resource(context, async (old) => {
    const limit = Math.min(500, Math.max(50, old?.items.length ?? 0));
    const [first, counts] = await Promise.all([page(null, limit), get('/runs/counts', { ...query(), status: null })]);
    return { ...first, counts };
  });
  let loading = false;
  async function more() {
    if (loading) return;
    loading = true;
    const { turn, value } = data;
    const { items, next } = await page(value.next, 50).catch(() => value);
    if (turn === data.turn && items !== value.items) data.value = { ...value, items: [...value.items, ...items], next };
    loading = false;
    context.redraw();
  }
  const items = () => data.value?.items ?? [];
  const clear = () => { [picked, everything] = [new Map(), false]; };
  const move = (by) => () => {
    selected = Math.max(0, Math.min(items().length - 1, selected + by));
    list?.show(selected);
    context.redraw();
  };
  const pick = (run) => {
    everything = false;
    picked.delete(run.id) || picked.set(run.id, run);
    context.redraw();
  };
  const pickAll = (all) => () => {
    clear();
    if (all) for (const run of items()) picked.set(run.id, run);
    everything = all === 'match';
    context.redraw();
  };
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
  const bulk = (name) => button({ onclick: () => bulkDialog(context, name, chosen, () => { clear(); data.load(); }) }, `${name}…`);
  const open = () => items()[selected] && context.go(`/runs/${items()[selected].id}`);
  const attach = (host) => {
    list?.close();
    const onwindow = (_, last) => data.value.next && last >= items().length && more();
    list = new FixedList({ scroller: context.main, host, height: innerWidth < 700 ? 68 : 44, row, onwindow });
  };
  const counted = ({ counts }) => Object.keys(STATUS).filter((name) => counts[name]).map((name) => a({ key: name,
    href: ui(address({ ...filter, status: name })), 'aria-current': filter.status === name ? 'true' : null },
  status(name, `${number(counts[name])}${counts.capped ? '+' : ''} ${name}`)));
  return {
    title: () => 'Runs',
    update(to) { read(to); selected = 0; clear(); data.load(); return true; },
    keys: () => ({
      j: ['Next run', move(1)], k: ['Run before', move(-1)], ArrowDown: [null, move(1)], ArrowUp: [null, move(-1)],
      Enter: ['Open the run', open], x: ['Choose the run', () => items()[selected] && pick(items()[selected])],
      '/': ['Find', () => document.querySelector('.filters input').focus()],
    }),
    onrun(run) {
      const at = items().findIndex((item) => item.id === run.id);
      if (at >= 0) data.value = { ...data.value, items: items().with(at, run) };
      context.redraw();
    },
    onchange() { clearTimeout(timer); timer = setTimeout(data.load, 200); },
    render: () => [
      pageHead('Runs', nav.presets({ 'aria-label': 'Presets' }, Object.entries(PRESETS).map(([text, preset]) => a({ key: text,
        href: ui(address(preset)), 'aria-current': JSON.stringify(preset) === JSON.stringify(filter) ? 'true' : null }, text)))),
      div.filters(FINDS.map(([name, text, placeholder]) => label({ key: name }, text, input({ type: 'search', placeholder,
        value: filter[name] ?? '', onchange: ({ target }) => context.go(address({ ...filter, [name]: target.value.trim() })) }))),
      p.counts({ 'aria-label': 'Runs by status' }, data.value && counted(data.value))),
      data.show(shown),
      picked.size > 0 && div.bulk({ role: 'region', 'aria-label': 'Chosen runs' },
        span(everything ? 'All runs that match' : `${number(picked.size)} chosen`),
        data.value.next && picked.size >= items().length && !everything && button.plain({ onclick: pickAll('match') }, 'Choose all that match'),
        span.grow(), context.may('operate') && [bulk('Cancel'), bulk('Rerun')], button.plain({ onclick: pickAll(null) }, 'Clear'))],
    drawn() { if (list?.host.isConnected) list.setCount(items().length); },
    tick: () => context.redraw(),
    close: () => { list?.close(); clearTimeout(timer); },
  };
  function shown({ items: rows, next, capped }) {
    const filtered = Object.keys(filter).length;
    if (!rows.length && filtered) return empty('No run matches', 'Change the filters.', a.button({ href: ui('/runs') }, 'Show all runs'));
    if (!rows.length) return empty('No runs yet', 'Start a brain, and watch it here.', a.button.primary({ href: ui('/brains') }, 'Start a brain'));
    return [div.runs({ key: 'runs', role: 'grid', 'aria-label': 'Runs', 'aria-rowcount': next ? -1 : rows.length, tabindex: '0',
      'aria-activedescendant': `run-${selected}`, opaque: true, ref: attach }),
    p.soft.more(`Showing ${number(rows.length)}${next ? ', there are more' : ''}.`,
      capped && ' The search has stopped at its maximum, so older runs may be missing.',
      next && button.small({ onclick: more }, 'Show more'),
      context.may('operate') && button.plain.small({ onclick: pickAll('shown') }, next ? `Choose these ${number(rows.length)}` : 'Choose all'))];
  }
  function row(index) {
    const run = items()[index];
    const href = ui(`/runs/${run.id}`);
    const cell = (name, ...content) => span[`c-${name}`]({ role: 'gridcell' }, content);
    const isSelected = index === selected;
    return div.runRow({ key: run.id, id: `run-${index}`, role: 'row', 'aria-rowindex': index + 1, 'aria-selected': String(isSelected),
      class: isSelected ? 'selected' : '', onclick: ({ target }) => !target.closest('a, input') && context.go(`/runs/${run.id}`) },
    cell('pick', input({ type: 'checkbox', tabindex: '-1', 'aria-label': `Choose ${run.brain} ${shortId(run.id)}`,
      checked: picked.has(run.id), onchange: () => pick(run) })),
    cell('status', status(run.status)),
    cell('brain', a({ href, tabindex: '-1' }, run.brain), run.forked_from && span.tag('fork')),
    cell('why', run.pending > 0 && span.count({ title: 'pending' }, run.pending),
      span({ title: run.why }, run.status === 'failed' ? run.why : run.last ?? run.why)),
    cell('user', run.user), cell('id', span.mono({ title: run.id }, shortId(run.id))), cell('tokens', tokens(run.usage)),
    cell('took', duration((isOpen(run) ? Date.now() : millis(run.updated)) - millis(run.started))),
    cell('when', span({ title: date(run.started) }, ago(run.started))));
  }
}
