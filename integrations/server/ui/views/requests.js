// Requests to models as they were sent, each compared with the one before it.
import { tags } from '../lib/dom.js';
import { get, at, ui } from '../lib/api.js';
import { icon } from '../lib/icons.js';
import { brief, micros, number, plural, tokens } from '../lib/format.js';
import { copyButton, empty, facts, failure, loading } from '../parts/common.js';
import { json } from '../parts/json.js';
import { words } from '../parts/change.js';

const { a, b, button, code, details, div, h2, li, nav, ol, p, section, small, span, summary } = tags;

export function requestsTab(tools) {
  const { model, view, context } = tools;
  let [items, seq, shown, before, whole, error] = [null, view.route.rest[0] == null ? null : Number(view.route.rest[0]), null, null, false, null];
  const tree = new Map();
  const path = (...rest) => `/runs${at(model.id, 'requests', ...rest)}`;
  const open = async (next) => {
    [seq, whole] = [next, false];
    const asked = seq;
    try {
      const one = await get(path(seq));
      const previous = one.previous == null ? null : await get(path(one.previous));
      if (asked !== seq) return;
      [shown, before, error] = [one, previous, null];
    } catch (problem) { error = problem; }
    context.redraw();
  };
  const go = (next) => context.go(`/runs/${model.id}/requests/${next}`, { replace: true });
  const load = async () => {
    items = (await get(path()).catch((problem) => { error = problem; return { items: [] }; })).items;
    // An event of the answer leads to its request.
    if (seq != null && !items.some((item) => item.seq === seq)) seq = items.findLast((item) => item.seq <= seq)?.seq ?? null;
    const first = seq ?? items.at(-1)?.seq;
    if (first != null) await open(first);
    context.redraw();
  };
  load();
  const step = (by) => { const index = items.findIndex((item) => item.seq === seq); const next = items[index + by]; if (next) go(next.seq); };
  return {
    keys: () => ({ j: ['Next request', () => step(1)], k: ['Request before', () => step(-1)] }),
    route(to) { if (to.rest[0] != null && Number(to.rest[0]) !== seq) open(Number(to.rest[0])); },
    render: () => (error && !shown ? failure(error, load) : !items ? loading() : !items.length ? empty('No model was asked', 'Requests appear as the run asks models.') : div.requests(
      nav({ 'aria-label': 'Requests' }, items.map((item) => a({ key: item.seq, href: ui(`/runs/${model.id}/requests/${item.seq}`), 'aria-current': item.seq === seq ? 'true' : null }, b(item.path || 'run'), small(`event ${item.seq}${item.attempt ? `, attempt ${item.attempt + 1}` : ''}`)))),
      shown ? one() : loading())),
  };
  function one() {
    const { request, shared, curl, answer_seq: answer } = shown;
    const messages = request.messages ?? request.transcript ?? [];
    const old = before?.request ?? null;
    const lost = old ? (old.messages?.length ?? 0) - shared : 0;
    const node = model.nodes.find((item) => item?.seq === shown.seq && item.kind.type === 'answer');
    const meta = (node?.kind.outcome?.answer ?? node?.kind.outcome)?.metadata;
    const system = text(request.system);
    return section.request({ 'aria-label': `Request at event ${shown.seq}` },
      facts([['model', node?.kind.model ?? request.model], ['tokens', meta && tokens(meta.usage)], ['cached', meta?.usage?.cached && number(meta.usage.cached)], ['duration', node?.kind.outcome?.duration != null && micros(node.kind.outcome.duration)], ['finish', meta?.finish && brief(meta.finish)], ['answer id', meta?.response_id],
        ['answer', answer != null && a({ href: ui(`/runs/${model.id}/events/${answer}`) }, `event ${answer}`)], ['copy', copyButton(curl, 'Copy as curl')]]),
      system && details({ open: !old || text(old.system) !== system }, summary('System prompt', old && (text(old.system) === system ? small.soft(' as before') : small.changedNote(' changed'))), div.prose({ dir: 'auto' }, old && text(old.system) !== system ? words(text(old.system), system) : system)),
      details(summary(plural(request.tools?.length ?? 0, 'tool'), small.soft(' ', (request.tools ?? []).map((tool) => tool.id ?? tool.name).join(', '))), json(request.tools ?? [], { state: tree, redraw: context.redraw, label: 'Tools', depth: 1 })),
      request.settings && Object.keys(request.settings).length ? details(summary('Settings'), json(request.settings, { label: 'Settings' })) : null,
      h2(plural(messages.length, 'message')),
      old && shared > 0 && button.fold({ 'aria-expanded': String(whole), onclick: () => { whole = !whole; context.redraw(); } }, icon('chevron'), `${plural(shared, 'message')} as in the request before`),
      ol.messages(messages.map((message, i) => (old && i < shared && !whole ? null : li({ key: i, class: `${message.role}${old && i >= shared ? ' new' : ''}` },
        i === shared && lost > 0 ? p.break(icon('warn'), `The provider's cache breaks here: ${plural(lost, 'message')} of the request before changed.`) : null, messageOf(message, i))))));
  }
  function messageOf(message, i) {
    const parts = message.parts ?? [];
    return [span.role(message.role, message.name && code(' ', message.name)),
      message.text != null && div.prose({ dir: 'auto' }, message.text), parts.map((part, n) => div.prose({ key: n, dir: 'auto' }, part.type === 'call' ? [code(part.name), ' ', part.arguments] : part.text ?? json(part, { state: tree, redraw: context.redraw }))),
      message.files?.length ? p.soft(message.files.map((file) => file.name).join(', ')) : null, !parts.length && message.text == null ? json(message, { label: `Message ${i}` }) : null];
  }
}

const text = (value) => (value == null ? '' : typeof value === 'string' ? value : value.body ?? JSON.stringify(value, null, 2));
