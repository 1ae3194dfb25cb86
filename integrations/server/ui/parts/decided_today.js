// What people have decided lately: one line each, with who it was and what they changed.
import { tags } from '../lib/dom.js';
import { runUrl } from '../lib/page.js';
import { icon } from '../lib/icons.js';
import { brief, date, limitText, moment, shortId, who } from '../lib/format.js';

const { a, b, code, del, ins, li, p, small, span, ul } = tags;

const MARKS = { approved: ['check', 'good'], granted: ['check', 'good'], rejected: ['cross', 'bad'], refused: ['cross', 'bad'], replied: ['message', 'quiet'] };

/** Whether arguments have fields that a person has edited. */
const isEdited = (given, now) => now !== undefined && given !== null && typeof given === 'object' && typeof now === 'object';
const isChanged = (given, now) => (name) => JSON.stringify(given[name]) !== JSON.stringify(now[name]);
/** The changed fields of edited arguments, and what has stayed as it was. */
function edits(given, now) {
  if (!isEdited(given, now)) return null;
  return Object.keys({ ...given, ...now }).filter(isChanged(given, now)).slice(0, 3)
    .map((name, i) => span({ key: name }, `${i ? ' · ' : ''}${name}: `, given[name] !== undefined && del(brief(given[name], 30)), ' ', now[name] !== undefined && ins(brief(now[name], 30) || '(empty)')));
}
const amounts = (granted) => Object.entries(granted ?? {}).map(([kind, amount]) => limitText(kind, kind === 'money' ? String(amount) : amount)).join(', ');

function row({ run, brain, user, tool, arguments: given, decision: made }) {
  const [shape, tone] = MARKS[made.verdict] ?? ['check', 'quiet'];
  const what = made.verdict === 'granted' ? `More: ${amounts(made.granted)}` : made.verdict === 'refused' ? 'More of a limit' : made.verdict === 'replied' ? brief(made.reply, 80) : brief(isEdited(given, made.arguments) ? Object.fromEntries(Object.entries(given).filter(([name]) => !isChanged(given, made.arguments)(name))) : given, 80);
  return li({ key: `${run} ${made.seq}` }, a({ href: runUrl(run, 'transcript', made.seq) }, span({ class: tone }, icon(shape, made.verdict)), span.cut(tool && [code(tool), ' '], edits(given, made.arguments), what && isEdited(given, made.arguments) && ' · ', span({ dir: 'auto' }, what)), small({ title: date(made.at) }, moment(made.at)),
    small.cut(b(who(made)), ` ${made.verdict}`, made.arguments !== undefined && ' as edited', ` · ${brain} ${shortId(run)}`, user && ` · for ${user}`, made.reason && [': ', span({ dir: 'auto' }, `“${made.reason}”`)])));
}

export const decidedList = ({ items, capped }) => [items.length ? ul.decided({ 'aria-label': 'Decided today' }, items.map(row)) : p.soft.hint('Nothing was decided today.'), capped && p.soft.hint('Older decisions of today may be missing.')];
