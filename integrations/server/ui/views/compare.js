// Two runs side by side: the first difference, what each did, and the change of the final state.
import { h } from '../lib/dom.js';
import { get, ui } from '../lib/api.js';
import { status } from '../lib/icons.js';
import { brief, duration, line, millis, plural, shortId, tokens } from '../lib/format.js';
import { empty, failure, loading } from '../parts/common.js';
import { patchList, valueDiff, words } from '../parts/change.js';

export function diffView(context, route) {
  let [a, b, answer, error, whole] = [route.query.get('a'), route.query.get('b'), null, null, false];
  const load = async () => {
    try { [answer, error] = [await get('/diff', { a, b }), null]; } catch (problem) { error = problem; }
    context.redraw();
  };
  if (a && b) load();
  const jump = () => document.querySelector('.diff-row.differs')?.scrollIntoView({ block: 'center' });
  const side = (name, run) => h('section', null, h('h2', null, name, ' ', h('a', { href: ui(`/runs/${run.id}`) }, run.brain), ' ', h('code', null, shortId(run.id))), h('p.meta', null, status(run.status), tokens(run.usage), duration(millis(run.updated) - millis(run.started))));
  const text = ({ tool, arguments: given, text: said, status: state }) => [tool, given && brief(given), said || (tool ? '' : state)].filter(Boolean).join(' ');
  const cell = (run, one) => (one ? h('div.cell', { dir: 'auto' }, h('a.seq', { href: ui(`/runs/${run.id}/events/${one.seq}`) }, one.seq), line(text(one), 300)) : h('div.cell.soft', null, 'only in the other run'));
  return {
    title: () => 'Compare runs',
    keys: () => ({ d: ['First difference', jump], o: ['Show or hide what is equal', () => { whole = !whole; context.redraw(); }] }),
    render() {
      if (!a || !b) return empty('Choose two runs', 'A fork links to the comparison with its parent.', h('form', { onsubmit: (event) => { event.preventDefault(); const data = new FormData(event.target); context.go(`/diff?a=${data.get('a')}&b=${data.get('b')}`); } }, ['a', 'b'].map((name) => h('label', { key: name }, `Run ${name.toUpperCase()}`, h('input', { name, required: true }))), h('button.primary', null, 'Compare')));
      if (error) return failure(error, load);
      if (!answer) return loading();
      const { rows = [], diff } = answer;
      const first = rows.findIndex((row) => !row.same);
      return [h('div.page-head', null, h('h1', null, 'Compare runs'), first < 0 ? null : h('button', { onclick: jump }, 'First difference'), h('button.plain', { onclick: () => { whole = !whole; context.redraw(); } }, whole ? 'Hide what is equal' : 'Show what is equal')),
        h('div.columns', null, side('A', answer.a), side('B', answer.b)),
        h('p.lead', null, first < 0 ? 'Both runs did the same.' : `${plural(rows.filter((row) => row.same).length, 'row')} are equal, ${rows.filter((row) => !row.same).length} differ.`),
        diff?.given && h('section', null, h('h2', null, 'Options'), valueDiff(diff.given[0].options, diff.given[1].options)),
        h('div.diff-rows', { role: 'list', 'aria-label': 'Rows' }, rows.map((row, i) => (row.same && !whole ? null : h('div.diff-row', { key: i, role: 'listitem', class: row.same ? '' : i === first ? 'differs first' : 'differs' }, h('div.place', null, h('code', null, row.path || 'run'), ' ', row.kind, row.stage && row.stage !== row.path ? ` in ${row.stage}` : null), cell(answer.a, row.a), cell(answer.b, row.b), !row.same && row.a && row.b && text(row.a) !== text(row.b) ? h('div.inline', null, words(text(row.a), text(row.b))) : null)))),
        diff?.state?.length ? h('section', null, h('h2', null, 'State at the end, from A to B'), patchList(diff.state)) : null];
    },
    update(to) { if (to.query.get('a') === a && to.query.get('b') === b) return true; return false; },
  };
}
