// When a schedule starts, as people say it: at a time of the day, week or month, at an interval, or once. Anything else is an expression.
import { tags } from '../lib/dom.js';
import { date, duration } from '../lib/format.js';

const { div, input, label, option, select, span } = tags;

const KINDS = { daily: 'Every day', weekdays: 'Monday to Friday', weekly: 'Every week', monthly: 'Every month', every: 'At an interval', once: 'Once', expression: 'By expressions, or at several times' };
const DAYS = { MON: 'Monday', TUE: 'Tuesday', WED: 'Wednesday', THU: 'Thursday', FRI: 'Friday', SAT: 'Saturday', SUN: 'Sunday' };
const UNITS = { 60: 'minutes', 3600: 'hours', 86400: 'days' };
const two = (n) => String(n).padStart(2, '0');

/** Reads the times of a schedule; a new one begins with every morning. */
export function read({ cron = [], every = [], at = [] }) {
  const state = { kind: 'expression', time: '09:00', day: 'MON', date: 1, n: 1, unit: 3600, once: '' };
  const all = cron.length + every.length + at.length;
  if (!all) return { ...state, kind: 'daily' };
  if (all > 1) return state;
  const [, minute, hour, of, day] = /^(\d{1,2}) (\d{1,2}) (\*|\d{1,2}) \* (\*|MON-FRI|1-5|[0-7]|MON|TUE|WED|THU|FRI|SAT|SUN)$/.exec(cron[0] ?? '') ?? [];
  if (minute !== undefined && (of === '*' || day === '*')) {
    const kind = of !== '*' ? 'monthly' : { '*': 'daily', 'MON-FRI': 'weekdays', '1-5': 'weekdays' }[day] ?? 'weekly';
    return { ...state, kind, time: `${two(hour)}:${two(minute)}`, ...(kind === 'weekly' && { day: /\d/.test(day) ? Object.keys(DAYS)[(Number(day) + 6) % 7] : day }), ...(kind === 'monthly' && { date: Number(of) }) };
  }
  const [interval] = every;
  const unit = [86400, 3600, 60].find((size) => interval?.seconds % size === 0);
  if (unit && Object.keys(interval).every((name) => name === 'seconds' || !interval[name])) return { ...state, kind: 'every', unit, n: interval.seconds / unit };
  if (at.length) return { ...state, kind: 'once', once: at[0] };
  return state;
}

/** The fields of the API for these times; none for an expression, whose fields are edited as they are. */
export function write({ kind, time, day, date, n, unit, once }) {
  const [hour, minute] = time.split(':').map(Number);
  const cron = { daily: '* * *', weekdays: '* * MON-FRI', weekly: `* * ${day}`, monthly: `${date} * *` }[kind];
  if (kind === 'expression') return {};
  return { cron: cron ? [`${minute} ${hour} ${cron}`] : [], every: kind === 'every' ? [{ seconds: n * unit }] : [], at: kind === 'once' && once ? [once] : [] };
}

/** When a schedule starts, in words; an expression that has none as it is. */
export function inWords(schedule) {
  const { kind, time, day, date: of, n, unit, once } = read(schedule);
  const at = `at ${time}${schedule.zone ? ` in ${schedule.zone}` : ' UTC'}`;
  const said = { daily: `every day ${at}`, weekdays: `Monday to Friday ${at}`, weekly: `every ${DAYS[day]} ${at}`, monthly: `on day ${of} of every month ${at}`, every: `every ${n === 1 ? UNITS[unit].slice(0, -1) : `${n} ${UNITS[unit]}`}`, once: `once, ${date(once)}` }[kind];
  return said ?? [...schedule.cron.map((line) => `${line} ${schedule.zone ?? 'UTC'}`), ...schedule.every.map(({ seconds }) => `every ${duration(seconds * 1000)}`), ...schedule.at.map((one) => `once, ${date(one)}`)].join('; ');
}

const local = (time) => {
  const given = new Date(time);
  return Number.isNaN(given.getTime()) ? '' : new Date(given - given.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
};

/** Draws the choice; `change` is called after each edit of the state. */
export default function timing(state, change) {
  const set = (fields) => {
    Object.assign(state, fields);
    change();
  };
  const choice = (text, values, name, read_ = (value) => value) => label.field({ key: name }, span(text), select({ value: String(state[name]), onchange: ({ target }) => set({ [name]: read_(target.value) }) }, Object.entries(values).map(([value, shown]) => option({ key: value, value }, shown))));
  const count = (text, name, most) => label.field({ key: name }, span(text), input({ type: 'number', min: 1, max: most, step: 1, required: true, value: String(state[name]), oninput: ({ target }) => { if (target.validity.valid) set({ [name]: Number(target.value) }); } }));
  const clock = label.field({ key: 'time' }, span('At'), input({ type: 'time', required: true, value: state.time, oninput: ({ target }) => { if (target.value) set({ time: target.value }); } }));
  return div.timing({ key: 'timing', role: 'group', 'aria-label': 'When it starts' }, choice('When', KINDS, 'kind'), state.kind === 'weekly' && choice('On', DAYS, 'day'), state.kind === 'monthly' && count('On day', 'date', 31),
    ['daily', 'weekdays', 'weekly', 'monthly'].includes(state.kind) && clock, state.kind === 'every' && [count('Every', 'n', 1000), choice('Unit', UNITS, 'unit', Number)],
    state.kind === 'once' && label.field({ key: 'once' }, span('At'), input({ type: 'datetime-local', required: true, max: '9999-12-31T23:59', value: local(state.once), oninput: ({ target }) => set({ once: target.value ? new Date(target.value).toISOString() : '' }) })));
}
