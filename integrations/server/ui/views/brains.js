// Brains: what can be started, and the form that starts it.
import { h } from '../lib/dom.js';
import { get, post, at, ui } from '../lib/api.js';
import { duration, plural } from '../lib/format.js';
import { empty, failure, loading } from '../parts/common.js';
import { initial, schemaForm } from '../parts/form.js';

export function brainsView(context, route) {
  let [items, error, open, value, busy, problem] = [null, null, null, undefined, false, null];
  const load = async () => {
    try { items = (await get('/brains')).items; } catch (failed) { error = failed; }
    if (route.rest[0]) await show(route.rest[0]);
    context.redraw();
  };
  const show = async (title) => {
    [open, problem, value] = [items?.find((brain) => brain.title === title) ?? null, null, undefined];
    if (open) open = { ...open, ...(await get(`/brains${at(title)}`).catch(() => ({}))) };
    value = open?.options_schema ? initial(open.options_schema) : undefined;
    context.redraw();
  };
  const start = async (event) => {
    event.preventDefault();
    [busy, problem] = [true, null];
    context.redraw();
    try {
      const run = await post('/runs', { brain: open.title, ...(value === undefined ? {} : { options: value }) });
      return context.go(`/runs/${run.id ?? run.run}`);
    } catch (failed) { problem = failed; }
    busy = false;
    context.redraw();
  };
  load();
  return {
    title: () => open?.title ?? 'Brains',
    update(to) { if (to.rest[0] !== open?.title) show(to.rest[0]); return true; },
    render: () => [h('div.page-head', null, h('h1', null, 'Brains')),
      error ? failure(error, load) : !items ? loading() : !items.length ? empty('This server has no brains', 'A server that knows brains can start them here.') : h('div.columns.brains', null,
        h('ul.cards', { 'aria-label': 'Brains' }, items.map((brain) => h('li', { key: brain.title }, h('a', { href: ui(`/brains${at(brain.title)}`), 'aria-current': open?.title === brain.title ? 'true' : null }, h('b', null, brain.title), brain.description && h('p.soft', null, brain.description),
          h('small.soft', null, (brain.stages ?? []).map((stage) => stage.name).join(' → ')), brain.recent && (brain.recent.completed || brain.recent.failed) ? h('small.soft', null, `${plural(brain.recent.completed, 'run')} completed, ${brain.recent.failed} failed${brain.recent.p50_ms != null ? `, half within ${duration(brain.recent.p50_ms)}` : ''}`) : null)))),
        open ? h('form.start', { key: open.title, onsubmit: start, 'aria-label': `Start ${open.title}` }, h('h2', null, `Start ${open.title}`),
          open.options_schema ? schemaForm(open.options_schema, { value, onchange: (next) => { value = next; context.redraw(); }, errors: (problem?.body?.errors ?? []).map((one) => ({ ...one, pointer: one.pointer.replace(/^\/options/, '') })), id: 'start' }) : h('p.soft', null, 'It has no options.'),
          problem && h('p.problem', { role: 'alert' }, problem.message), context.session?.read_only ? h('p.soft', null, 'This page is read-only.') : h('footer', null, h('button.primary', { disabled: busy }, busy ? 'Starting…' : 'Start'))) : h('p.soft.hint', null, 'Choose a brain to start it.'))],
  };
}
