// Schedules: what starts by itself, its next times, and what became of the last ones.
import { tags } from '../lib/dom.js';
import { get, post, at, ui } from '../lib/api.js';
import { brief, date } from '../lib/format.js';
import { empty, failure, loading, when } from '../parts/common.js';

const { a, b, button, div, h1, h2, h3, header, li, ol, p, section, span } = tags;

export function schedulesView(context) {
  let [items, error] = [null, null];
  const more = new Map();
  const load = async () => {
    try { items = (await get('/schedules')).items; } catch (problem) { error = problem; }
    context.redraw();
    for (const { id } of items ?? []) {
      const [preview, ticks] = await Promise.all([get(`/schedules${at(id, 'preview')}`, { limit: 5 }), get(`/schedules${at(id, 'ticks')}`, { limit: 8 })].map((asked) => asked.catch(() => ({ items: [] }))));
      more.set(id, { preview: preview.items ?? preview, ticks: ticks.items ?? [] });
      context.redraw();
    }
  };
  const act = (id, verb) => async () => {
    try { await post(`/schedules${at(id, verb)}`); } catch (problem) { context.say(problem.message, true); }
    load();
  };
  load();
  const time = (item) => item.at ?? item.time ?? item.nominal ?? item;
  return {
    title: () => 'Schedules',
    update: () => true,
    render: () => [div.pageHead(h1('Schedules')), error ? failure(error, load) : !items ? loading() : !items.length ? empty('No schedules', '`positronic schedule add` makes one.') : div.cards(items.map((item) => {
      const { preview = [], ticks = [] } = more.get(item.id) ?? {};
      return section.card({ key: item.id, 'aria-label': item.id }, header(h2(item.id), span.tag({ class: item.paused || item.broken ? 'warn' : '' }, item.status ?? 'active'), span.grow(), a({ href: ui(`/brains${at(item.schedule?.brain ?? '')}`) }, item.schedule?.brain),
        context.session?.read_only ? null : [button.small({ onclick: act(item.id, item.paused ? 'resume' : 'pause') }, item.paused ? 'Resume' : 'Pause'), button.small({ onclick: act(item.id, 'trigger') }, 'Start now')]),
      p.soft(brief(Object.fromEntries(Object.entries(item.schedule ?? {}).filter(([name]) => !['brain', 'options'].includes(name))), 240)), item.broken && p.problem(brief(item.broken)),
      div.columns(div(h3('Next'), ol(preview.slice(0, 5).map((one, i) => li({ key: i }, when(time(one)), span.soft(` ${date(time(one))}`))))),
        div(h3('Last'), ticks.length ? ol(ticks.map((tick, i) => li({ key: i }, when(time(tick)), ' ', tick.run ? a({ href: ui(`/runs/${tick.run}`) }, tick.outcome ?? 'started') : b(tick.outcome ?? tick.status), tick.reason && span.soft(` ${tick.reason}`)))) : p.soft('Nothing yet.'))));
    }))],
  };
}
