// Requests to models as they were sent, each compared with the one before it.
import { redraw, tags } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { at, later, may, ui } from '../lib/page.js';
import { icon } from '../lib/icons.js';
import { causeOf, placeWords, quoted } from '../lib/cause.js';
import { brief, costText, costTitle, micros, number, plural } from '../lib/format.js';
import { copyButton, empty, facts, resource } from '../parts/common.js';
import { answerOf, costOf, isNoAnswer, placeOf } from '../parts/model.js';
import { json, readable } from '../parts/json.js';
import { fieldsOf, SAYS } from '../parts/messages.js';
import { words } from '../parts/change.js';

const { a, b, button, code, details, div, h2, li, nav, ol, p, section, small, span, summary } = tags;

const text = (value) => (typeof value === 'string' ? value : value?.body ?? JSON.stringify(value, null, 2) ?? '');
const prose = (...content) => div.prose({ dir: 'auto' }, content);

const markdown = later('markdown');

/** How many requests are listed at once: those around the chosen one. */
const MOST = 60;

export default function requestsTab(run) {
  const { model, view: { route: { rest } } } = run;
  const path = (seq) => `${model.path}/requests${at(seq)}`;
  const open = new Map();
  let [seq, one, whole, first, shownAs] = [rest[0] && Number(rest[0]), null, false, 0, null];
  const choose = (next) => {
    if (one && seq === next) return;
    [seq, whole] = [next, false];
    one = resource(async () => {
      const request = await get(path(next));
      // The request is shown before the one that it is compared with has come.
      if (request.previous != null) get(path(request.previous)).then(({ request: before }) => { request.before = before; redraw(); }, () => {});
      return request;
    });
  };
  const list = resource(async () => {
    const { items } = await get(path());
    // An event of the answer leads to its request.
    const asked = seq == null ? items.at(-1) : items.findLast((item) => item.seq <= seq);
    if (asked) choose(asked.seq);
    around(items);
    return items;
  });
  /** Lists the requests around the chosen one, if it is not among those that are listed. */
  function around(items) {
    const place = items.findIndex((item) => item.seq === seq);
    if (place < first || place >= first + MOST) first = Math.max(0, Math.min(items.length - MOST, place - MOST / 2));
  }
  const step = (by) => () => {
    const next = list.value?.[list.value.findIndex((item) => item.seq === seq) + by];
    if (next) run.go('requests', next.seq, true);
  };
  /** Brings the chosen request into view in the list, once. */
  function drawn(node) {
    const row = shownAs !== seq && node.querySelector('[aria-current]');
    if (!row) return;
    shownAs = seq;
    node.scrollTo(row.offsetLeft - (node.clientWidth - row.offsetWidth) / 2, row.offsetTop - (node.clientHeight - row.offsetHeight) / 2);
  }
  /** A button for the requests beyond those that are listed. */
  const further = (count, text, to) => count > 0 && button.plain.small({ key: text, onclick: () => { first = Math.max(0, Math.min(list.value.length - MOST, to)); } }, `${number(count)} ${text}`);
  return {
    keys: () => ({ j: ['Next request', step(1)], k: ['Request before', step(-1)] }),
    route(to) {
      choose(to);
      if (list.value) around(list.value);
    },
    render: () => list.show((items) => (items.length === 0 ? empty('No model was asked', 'Requests appear as the run asks models.')
      : div.requests(nav({ 'aria-label': 'Requests', drawn }, further(first, 'before', first - MOST), items.slice(first, first + MOST).map((item) => a({ key: item.seq, href: run.url('requests', item.seq), 'aria-current': item.seq === seq && 'true' },
        b({ title: item.path }, placeWords(item.path) || 'Run'), small(`event ${item.seq}${item.attempt ? `, attempt ${item.attempt + 1}` : ''}`))), further(items.length - first - MOST, 'after', first + MOST)), one?.show(shown)))),
  };
  function shown({ seq: place, previous, request, before, shared, curl, cassette, answer_seq: answer, model: name }) {
    const { messages = [], tools: offered = [], settings = {} } = request;
    const node = run.model.nodes.find((item) => item?.seq === place && item.kind.type === 'answer');
    const { kind } = node ?? { kind: {} };
    const { usage, finish, response_id: id } = answerOf(kind)?.metadata ?? {};
    const costs = [costOf(answerOf(kind), model)];
    const [system, old] = [text(request.system), before && text(before.system)];
    const lost = before ? before.messages.length - shared : 0;
    const isAgain = before && shared === messages.length;
    return section.request({ 'aria-label': `Request at event ${place}` }, div.asked(
      facts({ model: name, tokens: (usage?.input || usage?.output) && `${number(usage.input ?? 0)} + ${number(usage.output ?? 0)}`,
        cost: costText(costs) && span({ title: costTitle(costs) }, costText(costs)), cached: usage?.cached && number(usage.cached), duration: kind.outcome?.duration != null && micros(kind.outcome.duration),
        finish: finish && brief(finish), 'answer id': id, answer: answer != null && a({ href: run.url('events', answer) }, `event ${answer}`) }),
      p.tools(may('playground') && a.button.small({ href: ui(at('playground', model.id, place)) }, icon('flask'), 'Try again with edits'), copyButton(curl, 'Copy as curl'), cassette && copyButton(cassette, 'Copy for a cassette')),
      system && details({ open: before ? old !== system : previous == null }, summary('System prompt ', before && small(old === system ? 'as before' : 'changed')),
        prose(before && old !== system ? words(old, system) : system)),
      details(summary(plural(offered.length, 'tool'), ' ', small(offered.map((tool) => tool.id ?? tool.name).join(', '))), json(offered, { open, label: 'Tools', depth: 1 })),
      Object.keys(settings).length > 0 && details(summary('Settings'), json(settings, { open, label: 'Settings' })),
      h2(plural(messages.length, 'message')),
      isAgain && p.soft('The same messages as before were sent again.'),
      shared > 0 && button.fold({ 'aria-expanded': String(whole), onclick: () => { whole = !whole; } }, icon('chevron'), `${plural(shared, 'message')} as in the request before`),
      ol.messages(messages.map((message, i) => (i >= shared || whole) && li({ key: i, class: previous != null && i >= shared ? 'new' : '' },
        i === shared && lost > 0 && p.bad(icon('warn'), ` The provider's cache breaks here: ${plural(lost, 'message')} of the request before changed.`),
        messageOf(message))))), node && answered(node));
  }
  /** What the request has got, beside it where there is room. */
  function answered(node) {
    const { kind: { outcome } } = node;
    const call = ({ index }) => run.model.nodes.find((item) => item?.path === `${node.path}.${index}`)?.kind;
    const failed = outcome?.error?.message ?? outcome?.message ?? (isNoAnswer(node, run.model) && run.model.nodes[0].kind.ending?.message);
    return section.got({ 'aria-label': 'Answer' }, h2('Answer'),
      failed ? p.bad({ dir: 'auto' }, quoted(causeOf(failed).text)) : (answerOf(node.kind)?.parts ?? []).map((part, i) => (part.type === 'call' ? p({ key: i }, icon('tool'), ' ', b.mono(call(part)?.tool ?? 'call'), ' ', span.soft({ dir: 'auto' }, brief(call(part)?.arguments ?? ''))) : part.text && div({ key: i }, part.type === 'text' ? markdown(part.text) : prose(part.text)))),
      !failed && !answerOf(node.kind)?.parts?.length && p.soft(node.status === 'running' ? 'The model answers…' : 'No answer.'),
      p(a({ href: run.url('transcript', node.seq) }, `Show in the transcript: ${placeOf(node, run.model)}`)));
  }
  function messageOf({ role, name, text: said, parts = [], files = [], ...others }) {
    return [span.role(SAYS[role] ?? role, name && [' ', code(name)]), said != null && (role === 'tool' ? fieldsOf(said, (value) => readable(value, { open }), prose(said)) : prose(said)),
      parts.map((part) => prose(part.type === 'call' ? [code(part.name), ' ', fieldsOf(part.arguments, brief)] : part.text ?? json(part, { open }))),
      files.length > 0 && p.soft(files.map((file) => file.name).join(', ')), said == null && !parts.length && json(others, { open })];
  }
}
