// Outgoing webhooks and their deliveries, which can be sent again.
import { tags } from '../lib/dom.js';
import { get, post, at, ui } from '../lib/api.js';
import { duration } from '../lib/format.js';
import { copyButton, facts, table, when } from '../parts/common.js';
import { masterView, requests } from '../parts/master.js';
import { openDialog } from '../lib/keys.js';

const { a, b, button, code, footer, h2, header, p, section, small, span } = tags;

const FIRST = ['webhook', 'url', 'events'];
const STATUS = { delivered: 'good', failed: 'bad', pending: 'warn' };
const tag = ({ enabled }) => span.tag({ class: enabled ? 'good' : 'warn' }, enabled ? 'active' : 'disabled');

/** Shows the secrets of a new webhook, which the server tells only once. */
function saved(page, answer) {
  page.reload(answer.id);
  if (answer.secrets?.length) {
    openDialog('The secret', (close) => [h2('The secret of ', answer.id),
      p.soft('The receiver checks signatures with it. It is not shown again.'),
      answer.secrets.map((secret) => p({ key: secret }, code(secret), ' ', copyButton(secret))),
      footer(button.primary({ onclick: close }, 'Close'))]);
  }
}

/** The last attempt to deliver, in words. */
const attempt = ({ attempts, due }) => {
  const last = attempts.at(-1);
  const outcome = last && (last.error ?? `answer ${last.status} after ${duration(last.duration_ms)}`);
  return [outcome, attempts.length > 1 && ` (attempt ${attempts.length})`, due && small(' next ', when(due))];
};

export const webhooksView = (context, route) => masterView(context, route, {
  title: 'Webhooks',
  path: '/webhooks',
  none: ['No webhooks', 'An outgoing webhook tells another program when a run ends or waits.'],
  hint: 'Choose a webhook.',
  add: context.may('admin') && ((page) => ({ title: 'Add a webhook', verb: 'Save', route: 'PUT /webhooks/{webhook}', first: FIRST,
    done: (answer) => saved(page, answer) })),
  row: (item) => [span.line(b(item.id), tag(item)), small(item.url)],
  read: async (id) => ({ item: await get(`/webhooks${at(id)}`), deliveries: await get(`/webhooks${at(id)}/deliveries`, { limit: 50 }) }),
  detail: ({ item, deliveries }, page) => {
    const { id, url, description, events, brain, enabled } = item;
    const params = { webhook: id };
    const again = (one) => async () => {
      await post(`/webhooks${at(id, 'deliveries', one.id, 'send')}`).catch((problem) => context.say(problem.message, true));
      page.reload();
    };
    return [
      header(h2(id), tag(item)),
      context.may('admin') && requests(context, [
        ['Edit…', { title: `Edit ${id}`, verb: 'Save', route: 'PUT /webhooks/{webhook}', params, first: FIRST,
          value: { url, description, events, brain, enabled }, done: (answer) => saved(page, answer) }],
        ['Remove…', { title: `Remove ${id}`, verb: 'Remove', route: 'DELETE /webhooks/{webhook}', params, danger: true,
          note: 'Its deliveries are removed as well.', done: () => page.reload(null) }],
      ]),
      item.disabled_reason && p.note.lost(`Disabled: ${item.disabled_reason}`),
      facts([['url', code(url)], ['about', description], ['events', events.join(', ') || 'all'], ['brain', brain], ['since', when(item.since)]]),
      section(b('Deliveries'), deliveries.items.length ? table('Deliveries', {
        Event: (one) => b(one.event),
        Run: (one) => a({ href: ui(`/runs/${one.run}/events/${one.seq}`) }, `event ${one.seq}`),
        Time: (one) => when(one.at),
        Status: (one) => span.tag({ class: STATUS[one.status] }, one.status),
        'Last attempt': attempt,
        Again: (one) => context.may('operate') && button.small({ onclick: again(one) }, 'Send again'),
      }, deliveries.items) : p.soft('No deliveries yet.'), deliveries.next && p.soft(`Showing the last ${deliveries.items.length}.`)),
    ];
  },
});
