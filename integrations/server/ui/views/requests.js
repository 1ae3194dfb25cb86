// Requests to models as they were sent, each compared with the one before it.
import { tags } from '../lib/dom.js';
import { get, at, ui } from '../lib/api.js';
import { icon } from '../lib/icons.js';
import { brief, micros, number, plural, tokens } from '../lib/format.js';
import { copyButton, empty, facts, failure, loading } from '../parts/common.js';
import { json } from '../parts/json.js';
import { words } from '../parts/change.js';

const { a, b, button, code, details, div, h2, li, nav, ol, p, section, small, span, summary } = tags;

const text = (value) => (value == null || typeof value === 'string' ? value ?? '' : value.body ?? JSON.stringify(value, null, 2));
const prose = (...content) => div.prose({ dir: 'auto' }, content);

export function requestsTab(tools) {
  const { model, view, context } = tools;
  const { rest } = view.route;
  let [items, seq, shown, before, whole, error] = [null, rest[0] == null ? null : Number(rest[0]), null, null, false, null];
  const tree = new Map();
  const path = (...more) => `/runs${at(model.id, 'requests', ...more)}`;
  async function open(next) {
    [seq, whole] = [next, false];
    try {
      const one = await get(path(next));
      const previous = one.previous == null ? null : await get(path(one.previous));
      if (next === seq) [shown, before, error] = [one, previous?.request, null];
    } catch (problem) {
      error = problem;
    }
    context.redraw();
  }
  async function load() {
    try {
      ({ items } = await get(path()));
      // An event of the answer leads to its request.
      const first = seq == null ? items.at(-1) : items.findLast((item) => item.seq <= seq);
      if (first) await open(first.seq);
    } catch (problem) {
      error = problem;
    }
    context.redraw();
  }
  const step = (by) => () => {
    const next = items?.[items.findIndex((item) => item.seq === seq) + by];
    if (next) context.go(`/runs/${model.id}/requests/${next.seq}`, { replace: true });
  };
  const value = (item, label, depth) => json(item, { state: tree, redraw: context.redraw, label, depth });
  load();
  return {
    keys: () => ({ j: ['Next request', step(1)], k: ['Request before', step(-1)] }),
    route(to) { if (to.rest[0] != null && Number(to.rest[0]) !== seq) open(Number(to.rest[0])); },
    render() {
      if (error && !shown) return failure(error, load);
      if (!items) return loading();
      if (!items.length) return empty('No model was asked', 'Requests appear as the run asks models.');
      return div.requests(nav({ 'aria-label': 'Requests' }, items.map((item) => a({ key: item.seq, href: ui(`/runs/${model.id}/requests/${item.seq}`),
        'aria-current': item.seq === seq ? 'true' : null }, b(item.path || 'run'),
      small(`event ${item.seq}${item.attempt ? `, attempt ${item.attempt + 1}` : ''}`)))), shown ? one() : loading());
    },
  };
  function one() {
    const { request, shared, curl, cassette, answer_seq: answer } = shown;
    const { messages = [], tools: offered = [], settings = {} } = request;
    const { kind } = model.nodes.find((item) => item?.seq === shown.seq && item.kind.type === 'answer') ?? { kind: {} };
    const { usage, finish, response_id: id } = (kind.outcome?.answer ?? kind.outcome)?.metadata ?? {};
    const [system, old] = [text(request.system), before && text(before.system)];
    const lost = before ? before.messages.length - shared : 0;
    const toggle = () => {
      whole = !whole;
      context.redraw();
    };
    return section.request({ 'aria-label': `Request at event ${shown.seq}` },
      facts([['model', shown.model], ['tokens', tokens(usage)], ['cached', usage?.cached && number(usage.cached)],
        ['duration', kind.outcome?.duration != null && micros(kind.outcome.duration)], ['finish', finish && brief(finish)], ['answer id', id],
        ['answer', answer != null && a({ href: ui(`/runs/${model.id}/events/${answer}`) }, `event ${answer}`)]]),
      p.tools(copyButton(curl, 'Copy as curl'), cassette && copyButton(cassette, 'Copy for a cassette')),
      system && details({ open: old !== system }, summary('System prompt ', before && small(old === system ? 'as before' : 'changed')),
        prose(before && old !== system ? words(old, system) : system)),
      details(summary(plural(offered.length, 'tool'), ' ', small(offered.map((tool) => tool.id ?? tool.name).join(', '))), value(offered, 'Tools', 1)),
      Object.keys(settings).length > 0 && details(summary('Settings'), value(settings, 'Settings')),
      h2(plural(messages.length, 'message')),
      shared > 0 && button.fold({ 'aria-expanded': String(whole), onclick: toggle }, icon('chevron'), `${plural(shared, 'message')} as in the request before`),
      ol.messages(messages.map((message, i) => (i >= shared || whole) && li({ key: i, class: before && i >= shared ? `${message.role} new` : message.role },
        i === shared && lost > 0 && p.bad(icon('warn'), ` The provider's cache breaks here: ${plural(lost, 'message')} of the request before changed.`),
        messageOf(message)))));
  }
  function messageOf({ role, name, text: said, parts = [], files = [], ...others }) {
    return [span.role(role, name && code(' ', name)), said != null && prose(said),
      parts.map((part) => prose(part.type === 'call' ? [code(part.name), ' ', part.arguments] : part.text ?? value(part))),
      files.length > 0 && p.soft(files.map((file) => file.name).join(', ')), said == null && !parts.length && value(others)];
  }
}
