// Schedules: what starts by itself, its next times, and what became of the last ones.
import { h } from '../lib/dom.js';
import { get, post, at, ui } from '../lib/api.js';
import { brief, date } from '../lib/format.js';
import { empty, failure, loading, when } from '../parts/common.js';

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
    render: () => [h('div.page-head', null, h('h1', null, 'Schedules')), error ? failure(error, load) : !items ? loading() : !items.length ? empty('No schedules', '`positronic schedule add` makes one.') : h('div.cards', null, items.map((item) => {
      const { preview = [], ticks = [] } = more.get(item.id) ?? {};
      return h('section.card', { key: item.id, 'aria-label': item.id }, h('header', null, h('h2', null, item.id), h('span.tag', { class: item.paused || item.broken ? 'warn' : '' }, item.status ?? 'active'), h('span.grow'), h('a', { href: ui(`/brains${at(item.schedule?.brain ?? '')}`) }, item.schedule?.brain),
        context.session?.read_only ? null : [h('button.small', { onclick: act(item.id, item.paused ? 'resume' : 'pause') }, item.paused ? 'Resume' : 'Pause'), h('button.small', { onclick: act(item.id, 'trigger') }, 'Start now')]),
      h('p.soft', null, brief(Object.fromEntries(Object.entries(item.schedule ?? {}).filter(([name]) => !['brain', 'options'].includes(name))), 240)), item.broken && h('p.problem', null, brief(item.broken)),
      h('div.columns', null, h('div', null, h('h3', null, 'Next'), h('ol', null, preview.slice(0, 5).map((one, i) => h('li', { key: i }, when(time(one)), h('span.soft', null, ` ${date(time(one))}`))))),
        h('div', null, h('h3', null, 'Last'), ticks.length ? h('ol', null, ticks.map((tick, i) => h('li', { key: i }, when(time(tick)), ' ', tick.run ? h('a', { href: ui(`/runs/${tick.run}`) }, tick.outcome ?? 'started') : h('b', null, tick.outcome ?? tick.status), tick.reason && h('span.soft', null, ` ${tick.reason}`)))) : h('p.soft', null, 'Nothing yet.'))));
    }))],
  };
}
