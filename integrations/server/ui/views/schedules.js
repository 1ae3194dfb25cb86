// Schedules: what starts by itself, its next times, and what became of the last ones.
import { tags } from '../lib/dom.js';
import { get, post } from '../lib/api.js';
import { at, may, runUrl, ui } from '../lib/page.js';
import { date, duration, plural, shortId, words } from '../lib/format.js';
import { facts, table, when } from '../parts/common.js';
import { masterView } from '../parts/master.js';
import { requests } from '../parts/request.js';
import { readable } from '../parts/json.js';
import timing, { inWords, read, write } from '../parts/schedule_times.js';

const { a, b, code, h2, header, li, ol, p, section, small, span } = tags;

const TONE = { paused: 'warn', broken: 'bad', skipped: 'warn', missed: 'bad', started: 'good' };
const tag = (word) => span.tag({ class: TONE[word] }, words(word));
const seconds = (n) => duration(n * 1000);
const link = (run) => a({ key: run, href: runUrl(run) }, shortId(run));

/** What happens at a time while an earlier run is open. */
const OVERLAP = { skip: 'the time is skipped', buffer_one: 'one run waits for its end', buffer_all: 'each run waits for its end', cancel_other: 'that run is cancelled', allow: 'both run' };
/** What the times of a schedule are in its own terms, if they are not said so already. */
const terms = ({ cron, every }) => [...cron, ...every.map(({ seconds: n }) => seconds(n))].join('; ');

const nextTimes = ({ items, error }) => (error ? p.error(error.message) : items.length ? ol.times({ 'aria-label': 'Next times' }, items.map(({ nominal, local, shift }) => li({ key: nominal },
  b(local.replace('T', ' ').slice(0, 16)), span.soft(local.slice(19)), when(nominal),
  shift && span.tag.warn({ title: `The clock goes ${shift} on this day.` }, 'clock change')))) : p.soft('The schedule has no further times.'));

/** The name of a schedule, which is part of its address. */
const NAME = { type: 'string', title: 'schedule name', description: 'Letters from a to z and A to Z, digits, -, _ and ., such as weekly-report.' };
const IS_NAME = /^(?!\.+$)[A-Za-z0-9._-]{1,100}$/;

/** The form of a schedule: its options follow the chosen brain, and its next times show before it is saved. */
function scheduleForm(spec) {
  let [brain, next, timer, when_] = [undefined, null, 0, null];
  async function changed(form) {
    clearTimeout(timer);
    timer = setTimeout(async () => { next = form.value.brain && await post('/schedules/new/preview?limit=5', form.body()).catch((error) => ({ error })); }, 250);
    const [chosen, before] = [form.value.brain, brain];
    if (chosen === before) return;
    brain = chosen;
    const known = await get(`/brains${at(chosen)}`).catch(() => null);
    // An edited schedule keeps its options; another brain begins with its defaults.
    const own = before === undefined ? form.value.options : undefined;
    if (known && form.value.brain === chosen) form.use('options', known.options_schema, own ?? known.default_options);
  }
  return { verb: 'Save', first: ['schedule', 'brain', 'cron', 'every', 'at', 'zone', 'options'], flat: ['options'], more: 'Overlap, missed times and more', schemas: { brain: { type: 'string' } }, changed,
    skip: () => (when_?.state.kind === 'expression' ? [] : ['cron', 'every', 'at']),
    above: () => when_ && timing(when_.state, () => when_.form.set(write(when_.state))),
    ready: async (form) => {
      const state = read(form.value);
      when_ = { form, state };
      // The times of a person are those of the place where the person is.
      if (!spec.value) form.set({ zone: Intl.DateTimeFormat().resolvedOptions().timeZone, ...write(state) });
      const { items } = await get('/brains');
      form.use('brain', { enum: items.map(({ title }) => title) });
      if (form.value.brain) changed(form);
    },
    below: () => next && section.preview({ 'aria-live': 'polite' }, b('Next times'), nextTimes(next)),
    ...spec };
}

export default (route) => masterView(route, {
  title: 'Schedules', path: '/schedules', hint: 'Choose a schedule.',
  none: ['No schedules', 'A schedule starts runs at given times: by a cron expression, at an interval, or once.'],
  add: may('admin') && ((reload) => scheduleForm({ title: 'Add a schedule', route: 'PUT /schedules/{schedule}', headers: { 'If-None-Match': '*' },
    schemas: { schedule: NAME, brain: { type: 'string' } }, check: ({ value: { schedule } }) => (IS_NAME.test(schedule) ? [] : [{ pointer: '/schedule', detail: `“${schedule}” cannot be a name. ${NAME.description}` }]), done: ({ id }) => reload(id) })),
  row: ({ id, status, schedule, next, broken }) => [span.line(b(id), tag(status), span.grow(), when(next)), small(schedule.brain, ' · ', inWords(schedule)),
    broken && small.bad(broken.reason)],
  read: async (id) => {
    const path = `/schedules${at(id)}`;
    // The times of a broken schedule may be impossible to compute; the rest of it is shown.
    const next = get(`${path}/preview`, { limit: 5 }).catch((error) => ({ error }));
    const [item, preview, ticks] = await Promise.all([get(path), next, get(`${path}/ticks`, { limit: 50 })]);
    return { item, preview, ticks };
  },
  detail: ({ item, preview, ticks }, reload) => {
    const { id, schedule, paused, broken, running } = item;
    const { mode, within_seconds: within } = schedule.catch_up;
    const to = (verb, action, note) => ({ title: `${verb} ${id}`, verb, note, route: `POST /schedules/{schedule}/${action}`, params: { schedule: id }, done: () => reload() });
    return [
      header(h2(id), tag(item.status), span.grow(), a({ href: ui(`/brains${at(schedule.brain)}`) }, schedule.brain)),
      may('admin') && requests({
        'Edit…': scheduleForm({ ...to('Edit'), verb: 'Save', route: 'PUT /schedules/{schedule}', value: schedule, headers: { 'If-Match': `"${item.version}"` } }),
        'Resume…': paused && to('Resume', 'resume', 'Times missed during the pause start no runs.'),
        'Pause…': !paused && to('Pause', 'pause', 'Runs that have started continue.'),
        'Start now…': to('Start', 'trigger'),
        'Backfill…': { ...to('Backfill', 'backfill', 'Starts runs for past times that have none.'), verb: 'Start' },
        'Remove…': { ...to('Remove'), route: 'DELETE /schedules/{schedule}', note: 'Runs that have started continue.', danger: true, done: () => reload(null) },
      }),
      broken && p.problem({ role: 'alert' }, `Starts no runs since ${date(broken.at)}: ${broken.reason}`),
      paused && p.note('Paused ', when(paused.at), paused.by && ` by ${paused.by}`, paused.reason && `: ${paused.reason}`),
      running.length > 0 && schedule.overlap === 'skip' && p.note.lost('No run starts until ', running.map(link), ' ends.'),
      p.big(span({ title: terms(schedule) }, `Starts ${inWords(schedule)}`)),
      facts({ expression: schedule.cron.length > 0 && code(schedule.cron.join('; ')), user: schedule.user, 'while a run is open': OVERLAP[schedule.overlap] ?? words(schedule.overlap),
        'missed times': mode === 'none' ? 'start nothing' : `${mode === 'all' ? 'all' : 'the last one'} within ${seconds(within)}`,
        delay: schedule.jitter_seconds && `up to ${seconds(schedule.jitter_seconds)}`, excluded: schedule.exclude.join(', '),
        'pauses after': schedule.pause_on_failure && plural(schedule.pause_on_failure, 'failed run'), 'failed in a row': item.failures, 'waiting to start': item.queue.length }),
      Object.keys(schedule.options ?? {}).length > 0 ? readable(schedule.options) : p.soft('With the default options of the brain.'),
      section(b('Next times'), nextTimes(preview)),
      section(b('Last times'), table('Last times', {
        Time: (tick) => [when(tick.nominal), tick.since && small(' all since ', when(tick.since))],
        Cause: (tick) => tick.cause,
        Outcome: (tick) => tag(tick.outcome),
        'Run or reason': (tick) => (tick.run ? link(tick.run) : tick.reason),
      }, ticks.items, 'No scheduled time has passed yet.'), ticks.next && p.soft(`Showing the last ${ticks.items.length}.`)),
    ];
  },
});
