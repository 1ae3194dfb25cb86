// Requests to models as they were sent, each compared with the one before it.
import { h } from '../lib/dom.js';
import { get, at, ui } from '../lib/api.js';
import { icon } from '../lib/icons.js';
import { brief, micros, number, plural, tokens } from '../lib/format.js';
import { copyButton, empty, facts, failure, loading } from '../parts/common.js';
import { json } from '../parts/json.js';
import { words } from '../parts/change.js';

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
    render: () => (error && !shown ? failure(error, load) : !items ? loading() : !items.length ? empty('No model was asked', 'Requests appear as the run asks models.') : h('div.requests', null,
      h('nav', { 'aria-label': 'Requests' }, items.map((item) => h('a', { key: item.seq, href: ui(`/runs/${model.id}/requests/${item.seq}`), 'aria-current': item.seq === seq ? 'true' : null }, h('b', null, item.path || 'run'), h('small', null, `event ${item.seq}${item.attempt ? `, attempt ${item.attempt + 1}` : ''}`)))),
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
    return h('section.request', { 'aria-label': `Request at event ${shown.seq}` },
      facts([['model', node?.kind.model ?? request.model], ['tokens', meta && tokens(meta.usage)], ['cached', meta?.usage?.cached && number(meta.usage.cached)], ['duration', node?.kind.outcome?.duration != null && micros(node.kind.outcome.duration)], ['finish', meta?.finish && brief(meta.finish)], ['answer id', meta?.response_id],
        ['answer', answer != null && h('a', { href: ui(`/runs/${model.id}/events/${answer}`) }, `event ${answer}`)], ['copy', copyButton(curl, 'Copy as curl')]]),
      system && h('details', { open: !old || text(old.system) !== system }, h('summary', null, 'System prompt', old && (text(old.system) === system ? h('small.soft', null, ' as before') : h('small.changed-note', null, ' changed'))), h('div.prose', { dir: 'auto' }, old && text(old.system) !== system ? words(text(old.system), system) : system)),
      h('details', null, h('summary', null, plural(request.tools?.length ?? 0, 'tool'), h('small.soft', null, ' ', (request.tools ?? []).map((tool) => tool.id ?? tool.name).join(', '))), json(request.tools ?? [], { state: tree, redraw: context.redraw, label: 'Tools', depth: 1 })),
      request.settings && Object.keys(request.settings).length ? h('details', null, h('summary', null, 'Settings'), json(request.settings, { label: 'Settings' })) : null,
      h('h2', null, plural(messages.length, 'message')),
      old && shared > 0 && h('button.fold', { 'aria-expanded': String(whole), onclick: () => { whole = !whole; context.redraw(); } }, icon('chevron'), `${plural(shared, 'message')} as in the request before`),
      h('ol.messages', null, messages.map((message, i) => (old && i < shared && !whole ? null : h('li', { key: i, class: `${message.role}${old && i >= shared ? ' new' : ''}` },
        i === shared && lost > 0 ? h('p.break', null, icon('warn'), `The provider's cache breaks here: ${plural(lost, 'message')} of the request before changed.`) : null, messageOf(message, i))))));
  }
  function messageOf(message, i) {
    const parts = message.parts ?? [];
    return [h('span.role', null, message.role, message.name && h('code', null, ' ', message.name)),
      message.text != null && h('div.prose', { dir: 'auto' }, message.text), parts.map((part, n) => h('div.prose', { key: n, dir: 'auto' }, part.type === 'call' ? [h('code', null, part.name), ' ', part.arguments] : part.text ?? json(part, { state: tree, redraw: context.redraw }))),
      message.files?.length ? h('p.soft', null, message.files.map((file) => file.name).join(', ')) : null, !parts.length && message.text == null ? json(message, { label: `Message ${i}` }) : null];
  }
}

const text = (value) => (value == null ? '' : typeof value === 'string' ? value : value.body ?? JSON.stringify(value, null, 2));
