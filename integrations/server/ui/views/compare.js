// Two runs side by side: the first difference, what each did, and the change of the final state.
import { tags } from '../lib/dom.js';
import { get, ui } from '../lib/api.js';
import { status } from '../lib/icons.js';
import { brief, duration, line, millis, plural, shortId, tokens } from '../lib/format.js';
import { empty, failure, loading } from '../parts/common.js';
import { patchList, valueDiff, words } from '../parts/change.js';

const { button, code, div, form, h1, h2, input, label, p, section } = tags;

export function diffView(context, route) {
  let [a, b, answer, error, whole] = [route.query.get('a'), route.query.get('b'), null, null, false];
  const load = async () => {
    try { [answer, error] = [await get('/diff', { a, b }), null]; } catch (problem) { error = problem; }
    context.redraw();
  };
  if (a && b) load();
  const jump = () => document.querySelector('.diff-row.differs')?.scrollIntoView({ block: 'center' });
  const side = (name, run) => section(h2(name, ' ', tags.a({ href: ui(`/runs/${run.id}`) }, run.brain), ' ', code(shortId(run.id))), p.meta(status(run.status), tokens(run.usage), duration(millis(run.updated) - millis(run.started))));
  const text = ({ tool, arguments: given, text: said, status: state }) => [tool, given && brief(given), said || (tool ? '' : state)].filter(Boolean).join(' ');
  const cell = (run, one) => (one ? div.cell({ dir: 'auto' }, tags.a.seq({ href: ui(`/runs/${run.id}/events/${one.seq}`) }, one.seq), line(text(one), 300)) : div.cell.soft('only in the other run'));
  return {
    title: () => 'Compare runs',
    keys: () => ({ d: ['First difference', jump], o: ['Show or hide what is equal', () => { whole = !whole; context.redraw(); }] }),
    render() {
      if (!a || !b) return empty('Choose two runs', 'A fork links to the comparison with its parent.', form({ onsubmit: (event) => { event.preventDefault(); const data = new FormData(event.target); context.go(`/diff?a=${data.get('a')}&b=${data.get('b')}`); } }, ['a', 'b'].map((name) => label({ key: name }, `Run ${name.toUpperCase()}`, input({ name, required: true }))), button.primary('Compare')));
      if (error) return failure(error, load);
      if (!answer) return loading();
      const { rows = [], diff } = answer;
      const first = rows.findIndex((row) => !row.same);
      return [div.pageHead(h1('Compare runs'), first < 0 ? null : button({ onclick: jump }, 'First difference'), button.plain({ onclick: () => { whole = !whole; context.redraw(); } }, whole ? 'Hide what is equal' : 'Show what is equal')),
        div.columns(side('A', answer.a), side('B', answer.b)),
        p.lead(first < 0 ? 'Both runs did the same.' : `${plural(rows.filter((row) => row.same).length, 'row')} are equal, ${rows.filter((row) => !row.same).length} differ.`),
        diff?.given && section(h2('Options'), valueDiff(diff.given[0].options, diff.given[1].options)),
        div.diffRows({ role: 'list', 'aria-label': 'Rows' }, rows.map((row, i) => (row.same && !whole ? null : div.diffRow({ key: i, role: 'listitem', class: row.same ? '' : i === first ? 'differs first' : 'differs' }, div.place(code(row.path || 'run'), ' ', row.kind, row.stage && row.stage !== row.path ? ` in ${row.stage}` : null), cell(answer.a, row.a), cell(answer.b, row.b), !row.same && row.a && row.b && text(row.a) !== text(row.b) ? div.inline(words(text(row.a), text(row.b))) : null)))),
        diff?.state?.length ? section(h2('State at the end, from A to B'), patchList(diff.state)) : null];
    },
    update(to) { if (to.query.get('a') === a && to.query.get('b') === b) return true; return false; },
  };
}
