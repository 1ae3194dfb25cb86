// Outgoing webhooks and their deliveries, which can be sent again.
import { tags } from '../lib/dom.js';
import { get, post } from '../lib/api.js';
import { at, may, runUrl, say } from '../lib/page.js';
import { duration } from '../lib/format.js';
import { copyButton, facts, table, when } from '../parts/common.js';
import { masterView } from '../parts/master.js';
import { requests } from '../parts/request.js';
import { ends, openDialog } from '../lib/keys.js';

const { a, b, button, code, h2, header, p, section, small, span } = tags;

const TONE = { delivered: 'good', failed: 'bad', pending: 'warn' };
const tag = ({ enabled }) => span.tag({ class: enabled ? 'good' : 'warn' }, enabled ? 'active' : 'disabled');

/** A request that saves a webhook. The server tells the secrets of a new one only once. */
const saving = (reload, spec) => ({ verb: 'Save', route: 'PUT /webhooks/{webhook}', first: ['webhook', 'url', 'events'], ...spec, done: ({ id, secrets = [] }) => {
  reload(id);
  if (secrets.length) openDialog('The secret', (close) => [h2('The secret of ', id), p.soft('The receiver checks signatures with it. It is not shown again.'),
    secrets.map((secret) => p({ key: secret }, code(secret), ' ', copyButton(secret))), ends(close)]);
} });

/** The last attempt to deliver, in words. */
function attempt({ attempts, due }) {
  const last = attempts.at(-1);
  return [last && (last.error ?? `answer ${last.status} after ${duration(last.duration_ms)}`), attempts.length > 1 && ` (attempt ${attempts.length})`, due && small(' next ', when(due))];
}

export default (route) => masterView(route, {
  title: 'Webhooks', path: '/webhooks', hint: 'Choose a webhook.',
  none: ['No webhooks', 'An outgoing webhook tells another program when a run ends or waits.'],
  add: may('admin') && ((reload) => saving(reload, { title: 'Add a webhook' })),
  row: (item) => [span.line(b(item.id), tag(item)), small(item.url)],
  read: async (id) => ({ item: await get(`/webhooks${at(id)}`), deliveries: await get(`/webhooks${at(id)}/deliveries`, { limit: 50 }) }),
  detail: ({ item, deliveries }, reload) => {
    const { id, url, description, events, brain, enabled } = item;
    const params = { webhook: id };
    const again = (one) => () => post(`/webhooks${at(id, 'deliveries', one.id, 'send')}`).then(() => reload(), (problem) => say(problem.message, true));
    return [
      header(h2(id), tag(item)),
      may('admin') && requests({
        'Edit…': saving(reload, { title: `Edit ${id}`, params, value: { url, description, events, brain, enabled } }),
        'Remove…': { title: `Remove ${id}`, verb: 'Remove', route: 'DELETE /webhooks/{webhook}', params, danger: true,
          note: 'Its deliveries are removed as well.', done: () => reload(null) },
      }),
      item.disabled_reason && p.note.lost(`Disabled: ${item.disabled_reason}`),
      facts({ url: code(url), about: description, events: events.join(', ') || 'all', brain, since: when(item.since) }),
      section(b('Deliveries'), table('Deliveries', {
        Event: (one) => b(one.event),
        Run: (one) => a({ href: runUrl(one.run, 'events', one.seq) }, `event ${one.seq}`),
        Time: (one) => when(one.at),
        Status: (one) => span.tag({ class: TONE[one.status] }, one.status),
        'Last attempt': attempt,
        Again: (one) => may('operate') && button.small({ onclick: again(one) }, 'Send again'),
      }, deliveries.items, 'No deliveries yet.'), deliveries.next && p.soft(`Showing the last ${deliveries.items.length}.`)),
    ];
  },
});
