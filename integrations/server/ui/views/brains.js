// Brains: what can be started, and the form that starts it.
import { tags } from '../lib/dom.js';
import { get, at } from '../lib/api.js';
import { duration, plural } from '../lib/format.js';
import { masterView } from '../parts/master.js';
import { RequestForm } from '../parts/request.js';

const { b, p, small, span } = tags;

export const brainsView = (context, route) => masterView(context, route, {
  title: 'Brains',
  path: '/brains',
  none: ['This server has no brains', 'A server that knows brains can start them here.'],
  hint: 'Choose a brain to start it.',
  id: (brain) => brain.title,
  row: (brain) => [b(brain.title), brain.description && span.soft(brain.description),
    small(brain.stages.map((stage) => stage.name).join(' → '))],
  read: async (title) => {
    const brain = await get(`/brains${at(title)}`);
    const form = new RequestForm(context, {
      title: `Start ${title}`, verb: 'Start', route: 'POST /runs', class: 'start', hide: ['brain'], first: ['options', 'message'],
      value: { brain: title, options: brain.default_options }, schemas: { options: brain.options_schema },
      done: (run) => context.go(`/runs/${run.id}`),
    });
    return { brain, form };
  },
  detail: ({ brain: { recent }, form }) => [context.may('run') ? form.render() : p.soft('You may not start runs here.'),
    recent && p.soft(`${plural(recent.completed, 'run')} completed, ${recent.failed} failed`,
      recent.p50_ms != null && `; half took less than ${duration(recent.p50_ms)}, 95 % less than ${duration(recent.p95_ms)}`, '.')],
});
