// What people have decided lately: one line each, with who it was and what they changed.
import { tags } from '../lib/dom.js';
import { runUrl } from '../lib/page.js';
import { icon } from '../lib/icons.js';
import { brief, date, limitText, moment, shortId, who } from '../lib/format.js';

const { a, b, code, del, ins, li, p, small, span, ul } = tags;

const MARKS = { approved: ['check', 'good'], granted: ['check', 'good'], rejected: ['cross', 'bad'], refused: ['cross', 'bad'], replied: ['message', 'quiet'] };

/** The changed fields of edited arguments. */
function edits(given, now) {
  if (now === undefined || given === null || typeof given !== 'object' || typeof now !== 'object') return null;
  return Object.keys({ ...given, ...now }).filter((name) => JSON.stringify(given[name]) !== JSON.stringify(now[name])).slice(0, 3)
    .map((name) => span({ key: name }, ` ${name} `, given[name] !== undefined && del(brief(given[name], 30)), ' ', now[name] !== undefined && ins(brief(now[name], 30))));
}
const amounts = (granted) => Object.entries(granted ?? {}).map(([kind, amount]) => limitText(kind, kind === 'money' ? String(amount) : amount)).join(', ');

function row({ run, brain, user, tool, arguments: given, decision: made }) {
  const [shape, tone] = MARKS[made.verdict] ?? ['check', 'quiet'];
  const what = made.verdict === 'granted' ? `More: ${amounts(made.granted)}` : made.verdict === 'refused' ? 'More of a limit' : made.verdict === 'replied' ? brief(made.reply, 80) : brief(given, 80);
  return li({ key: `${run} ${made.seq}` }, a({ href: runUrl(run, 'transcript', made.seq) }, span({ class: tone }, icon(shape, made.verdict)), span.cut(tool && [code(tool), ' '], span({ dir: 'auto' }, what), edits(given, made.arguments)), small({ title: date(made.at) }, moment(made.at)),
    small.cut(b(who(made)), ` ${made.verdict}`, made.arguments !== undefined && ' as edited', made.reason && [': ', span({ dir: 'auto' }, `“${made.reason}”`)], ` · ${brain} ${shortId(run)}`, user && ` · for ${user}`)));
}

export const decidedList = ({ items, capped }) => [items.length ? ul.decided({ 'aria-label': 'Decided today' }, items.map(row)) : p.soft.hint('Nothing was decided today.'), capped && p.soft.hint('Older decisions of today may be missing.')];
