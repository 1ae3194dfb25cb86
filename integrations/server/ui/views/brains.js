// Brains: what can be started, and the form that starts it.
import { tags } from '../lib/dom.js';
import { get, post, at, ui } from '../lib/api.js';
import { duration, plural } from '../lib/format.js';
import { empty, failure, loading } from '../parts/common.js';
import { initial, schemaForm } from '../parts/form.js';

const { a, b, button, div, footer, form, h1, h2, li, p, small, ul } = tags;

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
    render: () => [div.pageHead(h1('Brains')),
      error ? failure(error, load) : !items ? loading() : !items.length ? empty('This server has no brains', 'A server that knows brains can start them here.') : div.columns.brains(
        ul.cards({ 'aria-label': 'Brains' }, items.map((brain) => li({ key: brain.title }, a({ href: ui(`/brains${at(brain.title)}`), 'aria-current': open?.title === brain.title ? 'true' : null }, b(brain.title), brain.description && p.soft(brain.description),
          small.soft((brain.stages ?? []).map((stage) => stage.name).join(' → ')), brain.recent && (brain.recent.completed || brain.recent.failed) ? small.soft(`${plural(brain.recent.completed, 'run')} completed, ${brain.recent.failed} failed${brain.recent.p50_ms != null ? `, half within ${duration(brain.recent.p50_ms)}` : ''}`) : null)))),
        open ? form.start({ key: open.title, onsubmit: start, 'aria-label': `Start ${open.title}` }, h2(`Start ${open.title}`),
          open.options_schema ? schemaForm(open.options_schema, { value, onchange: (next) => { value = next; context.redraw(); }, errors: (problem?.body?.errors ?? []).map((one) => ({ ...one, pointer: one.pointer.replace(/^\/options/, '') })), id: 'start' }) : p.soft('It has no options.'),
          problem && p.problem({ role: 'alert' }, problem.message), context.session?.read_only ? p.soft('This page is read-only.') : footer(button.primary({ disabled: busy }, busy ? 'Starting…' : 'Start'))) : p.soft.hint('Choose a brain to start it.'))],
  };
}
