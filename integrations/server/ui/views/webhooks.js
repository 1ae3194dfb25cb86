// Outgoing webhooks and their deliveries, which can be sent again.
import { tags } from '../lib/dom.js';
import { get, post, at } from '../lib/api.js';
import { line } from '../lib/format.js';
import { empty, failure, loading, when } from '../parts/common.js';

const { b, button, code, div, h1, h2, header, li, ol, p, section, span } = tags;

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
    render: () => [div.pageHead(h1('Webhooks')), error ? failure(error, load) : !items ? loading() : !items.length ? empty('No webhooks', 'An outgoing webhook tells another program when a run ends or waits.') : div.cards(items.map((item) => section.card({ key: item.id, 'aria-label': item.id },
      header(h2(item.id), span.tag({ class: item.disabled ? 'warn' : '' }, item.disabled ? 'disabled' : 'active')), p.soft(code(item.url), ' ', (item.events ?? []).join(', ')),
      sent.get(item.id)?.length ? ol.deliveries(sent.get(item.id).map((one) => li({ key: one.id }, b(one.event ?? one.type), span.tag({ class: ['delivered', 'succeeded'].includes(one.status ?? one.state) ? 'good' : 'warn' }, one.status ?? one.state), when(one.at ?? one.created), one.error && span.soft(line(one.error)), span.grow(),
        context.session?.read_only ? null : button.small({ onclick: async () => { await post(`/webhooks${at(item.id, 'deliveries', one.id, 'send')}`).catch((problem) => context.say(problem.message, true)); load(); } }, 'Send again')))) : p.soft('No deliveries yet.'))))],
  };
}
