// Outgoing webhooks and their deliveries, which can be sent again.
import { h } from '../lib/dom.js';
import { get, post, at } from '../lib/api.js';
import { line } from '../lib/format.js';
import { empty, failure, loading, when } from '../parts/common.js';

export function webhooksView(context) {
  let [items, error] = [null, null];
  const sent = new Map();
  const load = async () => {
    try { items = (await get('/webhooks')).items; } catch (problem) { error = problem; }
    for (const { id } of items ?? []) sent.set(id, (await get(`/webhooks${at(id, 'deliveries')}`, { limit: 20 }).catch(() => ({ items: [] }))).items);
    context.redraw();
  };
  load();
  return {
    title: () => 'Webhooks',
    update: () => true,
    render: () => [h('div.page-head', null, h('h1', null, 'Webhooks')), error ? failure(error, load) : !items ? loading() : !items.length ? empty('No webhooks', 'An outgoing webhook tells another program when a run ends or waits.') : h('div.cards', null, items.map((item) => h('section.card', { key: item.id, 'aria-label': item.id },
      h('header', null, h('h2', null, item.id), h('span.tag', { class: item.disabled ? 'warn' : '' }, item.disabled ? 'disabled' : 'active')), h('p.soft', null, h('code', null, item.url), ' ', (item.events ?? []).join(', ')),
      sent.get(item.id)?.length ? h('ol.deliveries', null, sent.get(item.id).map((one) => h('li', { key: one.id }, h('b', null, one.event ?? one.type), h('span.tag', { class: ['delivered', 'succeeded'].includes(one.status ?? one.state) ? 'good' : 'warn' }, one.status ?? one.state), when(one.at ?? one.created), one.error && h('span.soft', null, line(one.error)), h('span.grow'),
        context.session?.read_only ? null : h('button.small', { onclick: async () => { await post(`/webhooks${at(item.id, 'deliveries', one.id, 'send')}`).catch((problem) => context.say(problem.message, true)); load(); } }, 'Send again')))) : h('p.soft', null, 'No deliveries yet.'))))],
  };
}
