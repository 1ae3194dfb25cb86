// The list of runs: presets, filters that are the address, counts by status, pages on demand.
import { tags } from '../lib/dom.js';
import { FixedList } from '../lib/list.js';
import { get, ui } from '../lib/api.js';
import { status, STATUS } from '../lib/icons.js';
import { ago, duration, millis, number, shortId, tokens } from '../lib/format.js';
import { empty, failure, loading } from '../parts/common.js';

const { a, button, div, h1, input, label, nav, p, span } = tags;

const FIELDS = ['status', 'brain', 'user', 'conversation', 'needs', 'since', 'before', 'q'];
const today = () => new Date(new Date().setHours(0, 0, 0, 0)).toISOString();
const PRESETS = [['All', {}], ['In flight', { status: 'running,waiting,paused' }], ['Waiting for a person', { needs: 'decision' }], ['Failed today', { status: 'failed', since: 'today' }]];

export function runsView(context, route) {
  let [items, next, error, counts, busy, list, selected, timer] = [null, null, null, {}, false, null, 0, 0];
  const filterOf = (to) => Object.fromEntries(FIELDS.map((name) => [name, to.query.get(name)]).filter(([, value]) => value));
  let filter = filterOf(route);
  const query = () => ({ ...filter, ...(filter.since === 'today' ? { since: today() } : {}) });
  async function load(more) {
    if (busy && more) return;
    busy = true;
    const asked = filter;
    try {
      const limit = more ? 50 : Math.min(500, Math.max(50, items?.length ?? 0));
      const [page, sums] = await Promise.all([get('/runs', { ...query(), limit, cursor: more ? next : null }), more ? counts : get('/runs/counts', { ...query(), status: null })]);
      if (asked !== filter) return;
      [items, next, counts, error] = [more ? [...items, ...page.items] : page.items, page.next, sums, null];
    } catch (problem) { error = problem; }
    busy = false;
    context.redraw();
  }
  const go = (change) => {
    const to = new URLSearchParams(Object.entries(change).filter(([, value]) => value));
    context.go(`/runs${to.size ? `?${to}` : ''}`);
  };
  load();
  const move = (by) => { selected = Math.max(0, Math.min((items?.length ?? 1) - 1, selected + by)); list?.show(selected); context.redraw(); };
  return {
    title: () => 'Runs',
    update(to) { filter = filterOf(to); selected = 0; load(); return to.name === 'runs'; },
    keys: () => ({ j: ['Next run', () => move(1)], k: ['Run before', () => move(-1)], ArrowDown: [null, () => move(1)], ArrowUp: [null, () => move(-1)], Enter: ['Open the run', () => items?.[selected] && context.go(`/runs/${items[selected].id}`)], '/': ['Find', () => document.querySelector('.filters input')?.focus()] }),
    onrun(run) { const at = items?.findIndex((item) => item.id === run.id) ?? -1; if (at >= 0) { items = items.with(at, run); context.redraw(); } },
    onchange() { clearTimeout(timer); timer = setTimeout(() => load(), 200); },
    render: () => [
      div.pageHead(h1('Runs'), nav.presets({ 'aria-label': 'Presets' }, PRESETS.map(([text, preset]) => a({ key: text, href: ui(`/runs${Object.keys(preset).length ? `?${new URLSearchParams(preset)}` : ''}`), 'aria-current': JSON.stringify(preset) === JSON.stringify(filter) ? 'true' : null }, text)))),
      div.filters(
        [['q', 'Find', 'text or id'], ['brain', 'Brain', 'any'], ['user', 'User', 'any']].map(([name, text, hint]) => label({ key: name }, text, input({ type: 'search', placeholder: hint, value: filter[name] ?? '', onchange: (event) => go({ ...filter, [name]: event.target.value.trim() }) }))),
        p.counts({ 'aria-label': 'Runs by status' }, Object.keys(STATUS).slice(0, 6).filter((name) => counts[name]).map((name) => a({ key: name, href: ui(`/runs?${new URLSearchParams({ ...filter, status: name })}`), 'aria-current': filter.status === name ? 'true' : null }, status(name, `${number(counts[name])}${counts.capped ? '+' : ''} ${name}`))))),
      error && !items ? failure(error, load) : !items ? loading() : !items.length ? (Object.keys(filter).length ? empty('No run matches', 'Change the filters.', a.button({ href: ui('/runs') }, 'Show all runs')) : empty('No runs yet', 'Start a brain, and watch it here.', a.button.primary({ href: ui('/brains') }, 'Start a brain')))
        : div.runs({ key: 'runs', role: 'grid', 'aria-label': 'Runs', 'aria-rowcount': next ? -1 : items.length, tabindex: '0', 'aria-activedescendant': `run-${selected}`, opaque: true, ref: attach }),
      items?.length ? p.soft.more(`Showing ${number(items.length)}${next ? ', there are more' : ''}.`, next && button.small({ onclick: () => load(true) }, 'Show more')) : null],
    drawn() { if (list?.host.isConnected) list.setCount(items.length); },
    tick: () => context.redraw(),
    close: () => { list?.close(); clearTimeout(timer); },
  };
  function attach(host) {
    list?.close();
    list = new FixedList({ scroller: context.main, host, height: innerWidth < 700 ? 68 : 44, row, onwindow: (first, last) => { if (next && last >= items.length) load(true); } });
  }
  function row(index) {
    const run = items[index];
    const open = ['running', 'waiting', 'paused'].includes(run.status);
    const href = ui(`/runs/${run.id}`);
    return div.runRow({ key: run.id, id: `run-${index}`, role: 'row', 'aria-rowindex': index + 1, 'aria-selected': String(index === selected), class: index === selected ? 'selected' : '', onclick: (event) => !event.target.closest('a') && context.go(`/runs/${run.id}`) },
      span.cStatus({ role: 'gridcell' }, status(run.status)),
      span.cBrain({ role: 'gridcell' }, a({ href, tabindex: '-1' }, run.brain), run.forked_from && span.tag('fork')),
      span.cWhy({ role: 'gridcell', dir: 'auto' }, run.pending ? span.count({ title: 'pending' }, run.pending) : null, run.why && run.status !== 'completed' ? run.why : run.user ?? ''),
      span.cId.mono({ role: 'gridcell', title: run.id }, shortId(run.id)), span.cTokens({ role: 'gridcell' }, tokens(run.usage)),
      span.cTook({ role: 'gridcell' }, duration((open ? Date.now() : millis(run.updated)) - millis(run.started))), span.cWhen({ role: 'gridcell', title: run.started }, ago(run.started)));
  }
}
