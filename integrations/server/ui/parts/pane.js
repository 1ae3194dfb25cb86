// The pane beside a run: all of what is selected, in five readings, and what can be done from there.
import { tags } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { at, may, pref, query, setPref, ui } from '../lib/page.js';
import { icon, status } from '../lib/icons.js';
import { causeOf, quoted } from '../lib/cause.js';
import { brief, costText, costTitle, date, decided, micros, number, plural } from '../lib/format.js';
import { copyButton, resource, took } from './common.js';
import attemptList from './attempts.js';
import { valueDiff, words } from './change.js';
import { json, readable } from './json.js';
import markdown from './markdown.js';
import { fieldsOf, SAYS } from './messages.js';
import { answerOf, attempts, costOf, endOf, isLastAttempt, isNoAnswer, isQuestion, placeOf } from './model.js';
import { patchList } from './patch.js';

const { a, b, button, code, details, div, footer, h2, h3, header, kbd, nav, p, section, small, span, summary, ul, li } = tags;

const text = (value) => (typeof value === 'string' ? value : value?.body ?? JSON.stringify(value, null, 2) ?? '');
const prose = (...content) => div.prose({ dir: 'auto' }, content);
const auto = (tag, ...content) => tag({ dir: 'auto' }, content);

/** What the selected node has been asked for: its request and the one before it, and the state around it. One node is kept, and read again when it
 *  goes on: what a person has opened stays. */
const known = { key: null };
function dataOf({ model }, node, end) {
  const [key, before] = [`${model.id} ${node.id}`, { ...known }];
  Object.assign(known, { key, end, status: node.status });
  if (before.key === key) {
    if (before.status !== node.status) known.request?.load();
    if (before.end !== end) known.state?.load();
    return known;
  }
  Object.assign(known, { open: new Map(), request: null, state: null });
  const path = (seq) => `${model.path}/requests${at(seq)}`;
  if (node.kind.type === 'answer') {
    known.request = resource(async () => {
      const asked = await get(path(node.seq));
      // An attempt sends the request of the first one again.
      const [{ seq }] = attempts(node, model);
      const { previous, shared } = seq === node.seq ? asked : await get(path(seq));
      return { ...asked, previous, shared: shared ?? 0, before: previous != null && (await get(path(previous))).request };
    });
  }
  return known;
}
const stateOf = (model, seq) => {
  const since = Math.max(0, seq - 1);
  known.state ??= resource(async () => {
    const [after, before] = await Promise.all([{ at: known.end, since }, { at: since }].map((place) => get(`${model.path}/state${query(place)}`)));
    return { ...after, before: before.state };
  });
  return known.state;
};

const TABS = { answer: { main: 'Request and answer', news: 'What is new' }, call: { main: 'Call and result' }, other: { main: 'What happened' } };
const ALL = { state: 'State', timing: 'Timing', json: 'JSON' };

/** The name of a node in words. */
function nameOf(node, model) {
  const { kind } = node;
  const iteration = model.nodes[node.parent]?.kind;
  const of = iteration?.type === 'iteration' ? ` of iteration ${iteration.number + 1}` : '';
  return { answer: isQuestion(node) ? `Question${of}` : `Answer${of}`, call: `${kind.tool}${of}`, stage: kind.name, message: 'Message' }[kind.type] ?? kind.type.replaceAll('_', ' ');
}

/** Draws the pane of the selected node of a run. */
export default function pane(run) {
  const { model, view } = run;
  const node = model.nodes[view.selected];
  const { kind } = node;
  // An iteration's change of the state belongs to its answer: the calls of the answer have made it.
  const iteration = kind.type === 'answer' && !isQuestion(node) && model.nodes[node.parent]?.kind.type === 'iteration' ? model.nodes[node.parent] : node;
  const end = node.status === 'not_started' ? node.seq : endOf(iteration, model);
  const data = dataOf(run, node, end);
  const tabs = { ...TABS[kind.type] ?? TABS.other, ...ALL };
  const tab = Object.hasOwn(tabs, pref('pane') ?? '') ? pref('pane') : 'main';
  const show = { main: () => mainOf(run, node, data, end, iteration), news: () => news(data), state: () => stateTab(run, iteration, end), timing: () => timing(node, model),
    json: () => section({ key: 'json' }, json(kind, { open: data.open, label: 'Node', depth: 3 })) }[tab];
  const step = (by) => () => {
    const list = model.select((other) => other.kind.type === 'answer' && isLastAttempt(other, model));
    const to = by > 0 ? list.find(({ seq }) => seq > node.seq) : list.findLast(({ seq }) => seq < node.seq);
    if (to) run.reveal(to);
  };
  return [
    header(div.paneTitle(h2(nameOf(node, model)), code.quiet(node.path), span.grow(), button.plain.square({ onclick: step(-1), 'aria-label': 'Answer before', title: '[' }, kbd('[')),
      button.plain.square({ onclick: step(1), 'aria-label': 'Next answer', title: ']' }, kbd(']')), span.quiet.wide('iteration'), button.plain.square({ onclick: () => run.select(node), 'aria-label': 'Close', title: 'Esc' }, icon('cross'))),
    nav.tabs({ 'aria-label': 'Readings of what is selected' }, Object.entries(tabs).map(([name, words_]) => a({ key: name, href: '#main', 'aria-current': name === tab && 'true', onclick: (event) => {
      event.preventDefault();
      setPref('pane', name);
    } }, words_, name === 'news' && data.request?.value?.before && span.count(number(data.request.value.request.messages.length - data.request.value.shared)))))),
    div.paneBody({ key: `${node.id} ${tab}`, tabindex: '0', role: 'region', 'aria-label': `${nameOf(node, model)}: ${tabs[tab]}` }, show()),
    footer(model.run.actions?.fork?.allowed !== false && button.primary({ onclick: () => run.dialog('fork', node.seq) }, icon('fork'), 'Fork from here', kbd('F')),
      node.kind.type === 'answer' && may('playground') && a.button({ href: ui(at('playground', model.id, node.seq)), title: 'p' }, icon('flask'), 'Try again with edits'),
      span.grow(), details.menu.up(summary(icon('copy'), 'Copy as'), ul(data.request?.value && [li({ key: 'curl' }, copyButton(data.request.value.curl, 'curl')), data.request.value.cassette && li({ key: 'cassette' }, copyButton(data.request.value.cassette, 'Cassette'))],
        li({ key: 'json' }, copyButton(JSON.stringify(kind, null, 2), 'JSON')), li({ key: 'path' }, copyButton(node.path, 'Path')), li({ key: 'event' }, a({ href: run.url('events', node.seq) }, `Show event ${node.seq}`))))),
  ];
}

function mainOf(run, node, data, end, iteration) {
  const { model } = run;
  if (node.kind.type === 'answer') return answerTab(run, node, data, end, iteration);
  if (node.kind.type === 'call') return callTab(model, node, data);
  const { kind } = node;
  const failed = kind.outcome?.message ?? (node.status === 'failed' ? kind.message : null);
  return [
    failed && section({ key: 'failure' }, h3('Failure'), auto(p.bad, quoted(causeOf(failed).text))),
    kind.text != null && section({ key: 'text' }, auto(div.prose, kind.text)),
    kind.brain?.options && section({ key: 'in' }, h3('Started with'), readable(kind.brain.options, { open: data.open })),
    kind.brain?.ending && section({ key: 'out' }, h3('Result'), readable(kind.brain.ending.result ?? kind.brain.ending.message, { open: data.open })),
    kind.waited && section({ key: 'waited' }, h3(kind.waited.resumed ? 'Waited for' : 'Waits for'), waitOf(kind.waited)),
    kind.text == null && !kind.brain && !failed && !kind.waited && section({ key: 'fields' }, readable(kind, { open: data.open })),
  ];
}

/** What a stage waits for, and what it got. */
const waitOf = ({ since, waits, resumed, due }) => [
  waits.map(({ prompt, webhook, identifier }, i) => p({ key: i, dir: 'auto' }, prompt ?? [code(webhook), ` ${identifier}`])), due && p(`until ${date(due)}`), p.soft(`since ${date(since)}`),
  resumed && [h3(resumed.cause === 'expired' ? 'Expired' : `Answered ${date(resumed.at)}`), resumed.payload != null && readable(resumed.payload, { open: known.open })]];

const figure = (value, name) => div(b(value), span(name));
function answerTab(run, node, { request, open }, end, iteration) {
  const { model } = run;
  const answer = answerOf(node.kind);
  const { usage, finish } = answer?.metadata ?? {};
  const costs = [costOf(answer, model)];
  const list = attempts(node, model);
  return [
    section.figures({ key: 'figures' }, figure(usage?.input || usage?.output ? `${number(usage.input ?? 0)} + ${number(usage.output ?? 0)}` : '–', `tokens in, out${usage?.cached ? ` · ${number(usage.cached)} cached` : ''}`),
      figure(costText(costs) || '–', span({ title: costTitle(costs) }, costTitle(costs) ? 'cost, estimated' : 'cost')), figure(answer?.duration != null ? micros(answer.duration) : isNoAnswer(node, model) ? micros((node.ended ?? iteration.ended ?? node.started) - list[0].started) : took(node) || '–', 'time'), figure(number(node.kind.attempt + 1), node.kind.attempt ? 'attempts' : 'attempt')),
    div.requestAnswer({ key: 'both' },
      section({ key: 'request' }, h3('Request ', span.quiet(`to ${node.kind.model ?? 'the model'}`)), request.show((asked) => requestOf(asked, open, model))),
      section({ key: 'answer' }, h3('Answer ', finish && span.quiet(`ended with ${{ calls: 'a call', stop: 'its text', length: 'its length' }[finish] ?? brief(finish)}`)),
        isNoAnswer(node, model) ? [causesOf(list).map((text) => p.bad({ key: text, dir: 'auto' }, quoted(text))), list.length > 1 && attemptList(list)]
          : answer?.parts ? answer.parts.map((part, i) => partOf(part, i, node, model)) : p.soft(node.status === 'running' ? 'The model answers…' : 'No answer.'))),
    iteration !== node && section({ key: 'state' }, h3('State changed in this iteration ', span.quiet(`events ${iteration.seq} to ${end}`)), stateOf(model, iteration.seq).show(({ changes, before }) => patchList(changes, before))),
  ];
}
/** Why attempts had no answer: each cause once. */
function causesOf(list) {
  const causes = new Set(list.map(({ kind: { outcome } }) => outcome?.error?.message ?? outcome?.message).filter(Boolean));
  return causes.size ? [...causes] : ['No answer'];
}
function partOf(part, key, node, model) {
  if (part.type === 'call') {
    const call = (model.children.get(node.parent) ?? []).map((id) => model.nodes[id]).find((other) => other.path === `${node.path}.${part.index}`);
    return p({ key }, icon(call?.kind.brain ? 'brain' : 'tool'), ' ', b.mono(call?.kind.tool ?? 'call'), ' ', auto(span.soft, call ? brief(call.kind.arguments) || 'no arguments' : ''));
  }
  return part.text ? div({ key }, part.type === 'text' ? markdown(part.text) : [h3(part.type), prose(part.text)]) : null;
}

/** A request, in which what the one before had is folded. */
function requestOf({ request, before, previous, shared }, open, model) {
  const { messages = [], tools: offered = [], settings = {} } = request;
  const [system, old] = [text(request.system), before && text(before.system)];
  const iteration = before && model.nodes[model.nodes.find((node) => node?.seq === previous && node.kind.type === 'answer')?.parent]?.kind.number;
  const asBefore = before ? `, as in ${iteration === undefined ? 'the request before' : `iteration ${iteration + 1}`}` : '';
  const isSame = JSON.stringify(before?.tools ?? null) === JSON.stringify(request.tools ?? null);
  return [
    system && details({ open: Boolean(before) && old !== system }, summary(`System prompt${before ? (old === system ? asBefore : ', changed') : ''}`), prose(before && old !== system ? words(old, system) : system)),
    offered.length > 0 && details(summary(`${plural(offered.length, 'tool')}${before ? (isSame ? asBefore : ', changed') : ''}`), json(offered, { open, label: 'Tools', depth: 1 })),
    Object.keys(settings).length > 0 && details(summary('Settings'), json(settings, { open, label: 'Settings' })),
    shared > 0 && details(summary(`${plural(shared, 'message')}${asBefore}`), messages.slice(0, shared).map((message, i) => messageOf(message, i, false, open))),
    messages.slice(shared).map((message, i) => messageOf(message, shared + i, Boolean(before), open)),
  ];
}
function messageOf({ role, name, text: said, parts = [], files = [], ...others }, key, isNew, open) {
  return div.sent({ key, class: isNew && 'new' }, small(SAYS[role] ?? role, name && [' ', code(name)], isNew && span.good(' new')), said != null && (role === 'tool' ? fieldsOf(said, (value) => div.well(readable(value, { open })), prose(said)) : prose(said)),
    parts.map((part) => prose(part.type === 'call' ? [code(part.name), ' ', fieldsOf(part.arguments, brief)] : part.text ?? json(part, { open }))), files.length > 0 && p.soft(files.map((file) => file.name).join(', ')),
    said == null && !parts.length && json(others, { open }));
}

/** What a request has that the one before it had not. */
const news = ({ request, open }) => section({ key: 'news' }, request.show(({ request: asked, before, shared }) => {
  if (!before) return p.soft('This is the first request of its loop.');
  const lost = before.messages.length - shared;
  const [system, old] = [text(asked.system), text(before.system)];
  return [system === old ? p.soft('The system prompt is the same.') : [h3('System prompt'), prose(words(old, system))],
    lost > 0 && p.bad(icon('warn'), ` The provider's cache breaks here: ${plural(lost, 'message')} of the request before changed.`),
    h3(plural(asked.messages.length - shared, 'new message')), asked.messages.slice(shared).map((message, i) => messageOf(message, i, true, open))];
}));

function callTab(model, node, { open }) {
  const { arguments: given, result, approval, waits = [], flags, brain, attempts: tries } = node.kind;
  const made = approval?.outcome;
  const edited = made?.decision === 'approved' && made.arguments !== undefined;
  return [
    section.figures({ key: 'figures' }, figure(took(node) || '–', 'time'), figure(number(tries ?? 1), tries > 1 ? 'attempts' : 'attempt'), figure(flags?.destructive ? 'destructive' : flags?.read_only ? 'read-only' : '–', 'tool')),
    section({ key: 'given' }, h3('Arguments'), edited ? valueDiff(given, made.arguments) : given && Object.keys(given).length ? readable(given, { open }) : p.soft('no arguments')),
    approval && section({ key: 'approval' }, h3('Approval'), auto(p, approval.reason), made ? auto(p, b(decided(approval)), ' ', date(made.at)) : p.wait('waits for a person')),
    waits.length > 0 && section({ key: 'waits' }, h3('Waits'), json(waits, { open, label: 'Waits' })),
    brain && section({ key: 'brain' }, h3(`Brain ${brain.title}`), readable(brain.options, { open })),
    section({ key: 'result' }, h3('Result'), !result ? p.soft('No result yet.') : result.type === 'success' ? readable(result.output, { open }) : auto(p.bad, quoted(result.message ?? result.reason ?? result.type))),
  ];
}

/** The change of the state, and the state after it. */
const stateTab = ({ model, url }, node, end) => section({ key: 'state' }, h3(`Change in events ${node.seq} to ${end}`), stateOf(model, node.seq).show(({ state, changes, before }) => [
  patchList(changes, before), h3('State after it ', a({ href: url('state', end) }, `at event ${end}`)), json(state, { open: known.open, marks: changes?.map((op) => op.path), label: 'State', depth: 3 })]));

function timing(node, model) {
  const { started, ended, kind } = node;
  const rows = { status: status(node.status), place: placeOf(node, model), began: started != null && date(started), ended: ended != null && date(ended), took: took(node),
    worked: kind.duration != null && micros(kind.duration), 'asked for approval': kind.approval?.requested && date(kind.approval.requested), decided: kind.approval?.outcome?.at && date(kind.approval.outcome.at),
    attempts: kind.type === 'answer' ? number(attempts(node, model).length) : kind.attempts && number(kind.attempts) };
  return section({ key: 'timing' }, tags.dl.fields(Object.entries(rows).filter(([, value]) => value).map(([name, value]) => div({ key: name }, tags.dt(name), tags.dd(value)))));
}
