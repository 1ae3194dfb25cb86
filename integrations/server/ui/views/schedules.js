// Schedules: what starts by itself, its next times, and what became of the last ones.
import { tags } from '../lib/dom.js';
import { get, post, at, ui } from '../lib/api.js';
import { date, duration, plural, shortId, words } from '../lib/format.js';
import { facts, table, when } from '../parts/common.js';
import { masterView, requests } from '../parts/master.js';
import { readable } from '../parts/json.js';

const { a, b, h2, header, li, ol, p, section, small, span } = tags;

const BAD = { paused: 'warn', broken: 'bad', skipped: 'warn', missed: 'bad', started: 'good' };
const FIRST = ['schedule', 'brain', 'cron', 'every', 'at', 'zone', 'options'];
const SHIFT = { forward: 'The clock goes forward on this day.', back: 'The clock goes back on this day.' };
const tag = (word) => span.tag({ class: BAD[word] }, words(word));

/** When a schedule starts, in words. */
const times = ({ cron, every, at: single, zone }) => [
  ...cron.map((line) => `${line}${zone ? ` ${zone}` : ''}`),
  ...every.map(({ seconds }) => `every ${duration(seconds * 1000)}`),
  ...single.map((time) => `once, ${date(time)}`),
].join('; ');

const nextTimes = (items) => ol.times({ 'aria-label': 'Next times' }, items.map((one) => li({ key: one.nominal },
  b(one.local.replace('T', ' ').slice(0, 16)), span.soft(one.local.slice(19)), when(one.nominal),
  one.shift && span.tag.warn({ title: SHIFT[one.shift] }, 'clock change'))));

/** The form of a schedule: its options follow the chosen brain, and its next times show before it is saved. */
function scheduleForm(context, spec) {
  let [brain, next, timer] = [undefined, null, 0];
  async function changed(form) {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      next = await post('/schedules/new/preview?limit=5', form.body).catch((error) => ({ error }));
      form.redraw();
    }, 250);
    if (form.value.brain === brain) return;
    brain = form.value.brain;
    const known = await get(`/brains${at(brain)}`).catch(() => null);
    if (known) form.use('options', known.options_schema, known.default_options);
  }
  return { verb: 'Save', first: FIRST, schemas: { brain: { type: 'string' } }, changed,
    ready: async (form) => {
      const { items } = await get('/brains');
      form.use('brain', { enum: items.map(({ title }) => title) });
      if (form.value.brain) changed(form);
    },
    below: () => next && section.preview({ 'aria-live': 'polite' }, b('Next times'), next.error ? p.error(next.error.message)
      : next.items.length ? nextTimes(next.items) : p.soft('There is no time in the future.')),
    ...spec };
}

export const schedulesView = (context, route) => masterView(context, route, {
  title: 'Schedules',
  path: '/schedules',
  none: ['No schedules', 'A schedule starts runs at given times: by a cron expression, at an interval, or once.'],
  hint: 'Choose a schedule.',
  add: context.may('admin') && ((page) => scheduleForm(context, { title: 'Add a schedule', route: 'PUT /schedules/{schedule}',
    headers: { 'If-None-Match': '*' }, done: ({ id }) => page.reload(id) })),
  row: ({ id, status, schedule, next }) => [span.line(b(id), tag(status), span.grow(), when(next)),
    small(schedule.brain, ' · ', times(schedule))],
  read: async (id) => {
    const path = `/schedules${at(id)}`;
    const [item, preview, ticks] = await Promise.all([get(path), get(`${path}/preview`, { limit: 5 }), get(`${path}/ticks`, { limit: 50 })]);
    return { item, preview, ticks };
  },
  detail: ({ item, preview, ticks }, page) => {
    const { id, schedule, paused, broken, running } = item;
    const to = (title, verb, route, more) => ({ title, verb, route, params: { schedule: id }, done: () => page.reload(), ...more });
    const { mode, within_seconds: within } = schedule.catch_up;
    return [
      header(h2(id), tag(item.status), span.grow(), a({ href: ui(`/brains${at(schedule.brain)}`) }, schedule.brain)),
      context.may('admin') && requests(context, [
        ['Edit…', scheduleForm(context, to(`Edit ${id}`, 'Save', 'PUT /schedules/{schedule}',
          { value: schedule, headers: { 'If-Match': `"${item.version}"` } }))],
        paused ? ['Resume', to(`Resume ${id}`, 'Resume', 'POST /schedules/{schedule}/resume',
          { note: 'Times that have passed do not start runs.' })]
          : ['Pause…', to(`Pause ${id}`, 'Pause', 'POST /schedules/{schedule}/pause', { note: 'Its runs go on.' })],
        ['Start now…', to(`Start ${id} now`, 'Start', 'POST /schedules/{schedule}/trigger')],
        ['Backfill…', to(`Backfill ${id}`, 'Start', 'POST /schedules/{schedule}/backfill',
          { note: 'Starts runs for past times that have none.' })],
        ['Remove…', to(`Remove ${id}`, 'Remove', 'DELETE /schedules/{schedule}',
          { note: 'Its runs go on.', danger: true, done: () => page.reload(null) })],
      ]),
      broken && p.problem(`The last run could not be started ${date(broken.at)}: ${broken.reason}`),
      paused && p.note('Paused ', when(paused.at), paused.by && ` by ${paused.by}`, paused.reason && `: ${paused.reason}`),
      running.length > 0 && schedule.overlap === 'skip'
        && p.note.lost('While ', running.map((run) => a({ key: run, href: ui(`/runs/${run}`) }, shortId(run))), ' goes on, no other run starts.'),
      facts([['times', times(schedule)], ['zone', schedule.zone], ['overlap', words(schedule.overlap)],
        ['missed times', mode === 'none' ? 'start nothing' : `${mode === 'all' ? 'all' : 'the last one'} within ${duration(within * 1000)}`],
        ['delay', schedule.jitter_seconds && `up to ${duration(schedule.jitter_seconds * 1000)}`],
        ['excluded', schedule.exclude.join(', ')], ['pauses after', schedule.pause_on_failure && plural(schedule.pause_on_failure, 'failed run')],
        ['failed in a row', item.failures], ['waiting to start', item.queue.length]]),
      readable(schedule.options),
      section(b('Next times'), preview.items.length ? nextTimes(preview.items) : p.soft('There is no time in the future.')),
      section(b('Last times'), ticks.items.length ? table('Last times', {
        Time: (tick) => [when(tick.nominal), tick.since && small(' all since ', when(tick.since))],
        Cause: (tick) => tick.cause,
        Outcome: (tick) => tag(tick.outcome),
        'Run or reason': (tick) => (tick.run ? a({ href: ui(`/runs/${tick.run}`) }, shortId(tick.run)) : tick.reason),
      }, ticks.items) : p.soft('No time has come yet.'), ticks.next && p.soft(`Showing the last ${ticks.items.length}.`)),
    ];
  },
});
