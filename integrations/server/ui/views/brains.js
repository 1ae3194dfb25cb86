// Brains: what can be started, and the form that starts it.
import { tags } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { at, go } from '../lib/page.js';
import { duration, plural } from '../lib/format.js';
import { masterView } from '../parts/master.js';
import { requestForm } from '../parts/request.js';

const { b, details, li, p, small, span, summary, ul } = tags;
/** From how many runs on their durations say something about the next one. */
const MANY = 10;

/** The stages of a brain, with the brains that they run. */
const tree = ({ stages }) => ul.tree(stages.map(({ name, kind, brain, arms, webhooks, rounds }) => li(
  b(name), ' ', span.tag(kind.replace('_', ' a ')), small(' ', brain && brain.title !== name && `${brain.title} `, rounds && `at most ${rounds} rounds `, webhooks?.join(' or ')),
  brain && tree(brain), arms && ul.tree(arms.map((arm) => li('→ ', b(arm.name), arm.brain && tree(arm.brain)))))));

export default (route) => masterView(route, {
  title: 'Brains', path: '/brains', hint: 'Choose a brain to start it.', id: (brain) => brain.title,
  none: ['This server has no brains', 'Register brains with `Runner::brain`, or start `serve` in a project.'],
  row: ({ title, description, stages }) => [b(title), description && span.soft(description), small(stages.map(({ name }) => name).join(' → '))],
  read: async (title) => {
    const brain = await get(`/brains${at(title)}`);
    return { brain, form: requestForm({
      title: `Start ${title}`, verb: 'Start', route: 'POST /runs', name: 'start', hide: ['brain'], first: ['options'],
      value: { brain: title, options: brain.default_options }, schemas: { options: brain.options_schema }, done: ({ id }) => go(at('runs', id)) }) };
  },
  detail: ({ brain, brain: { recent }, form }) => [brain.start.allowed ? form() : p.soft(brain.start.reason),
    brain.starts_on && p.soft(`Started by the webhook ${brain.starts_on.join(', ')}.`),
    brain.structure && details(summary('Stages'), tree(brain.structure)),
    recent && p.soft(`${plural(recent.completed, 'run')} completed, ${recent.failed} failed`,
      recent.completed + recent.failed >= MANY && `; half took at most ${duration(recent.p50_ms)}, 95 % at most ${duration(recent.p95_ms)}`, '.')],
});
