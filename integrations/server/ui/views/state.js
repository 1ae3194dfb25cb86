// The state at an event, with the change that the event makes, or the change since an earlier one.
import { tags } from '../lib/dom.js';
import { get, at, ui } from '../lib/api.js';
import { copyButton, failure } from '../parts/common.js';
import { json } from '../parts/json.js';
import { patchList } from '../parts/change.js';

const { a, b, button, div, h2, input, section, span } = tags;

export function stateTab(tools) {
  const { model, view, context } = tools;
  const { rest, query } = view.route;
  let [seq, since, shown, error, timer] = [Number(rest[0] ?? model.head), query.get('since'), null, null, 0];
  const [cache, tree] = [new Map(), new Map()];
  async function load() {
    const key = `${seq}/${since}`;
    const asked = seq;
    try {
      if (!cache.has(key)) cache.set(key, await get(`/runs${at(model.id, 'state')}`, { at: seq, since }));
      if (asked === seq) [shown, error] = [cache.get(key), null];
    } catch (problem) {
      error = problem;
    }
    context.redraw();
  }
  const go = (to) => {
    seq = Math.max(0, Math.min(model.head, to));
    context.go(`/runs/${model.id}/state/${seq}${since == null ? '' : `?since=${since}`}`, { replace: true });
    clearTimeout(timer);
    timer = setTimeout(load, 60);
  };
  const step = (by) => (event) => go(seq + by * (event.shiftKey ? 10 : 1));
  const compare = () => {
    since = since == null ? seq : null;
    go(seq);
  };
  const link = (tab, text) => a({ href: ui(`/runs/${model.id}/${tab}/${seq}`) }, text);
  load();
  return {
    keys: () => ({ ArrowLeft: ['Event before (shift: 10)', step(-1)], ArrowRight: ['Next event (shift: 10)', step(1)] }),
    route(to) {
      const next = Number(to.rest[0] ?? seq);
      if (next === seq) return;
      seq = next;
      load();
    },
    reveal: (node) => go(node.seq),
    render: () => div.stateView(
      div.scrub(button({ onclick: step(-1), disabled: seq <= 0, 'aria-label': 'Event before' }, '←'),
        input({ type: 'range', min: 0, max: model.head, value: String(seq), 'aria-label': 'Event',
          'aria-valuetext': `event ${seq} of ${model.head}`, oninput: ({ target }) => go(Number(target.value)) }),
        button({ onclick: step(1), disabled: seq >= model.head, 'aria-label': 'Next event' }, '→'),
        b(`event ${seq}`), span.soft(`of ${model.head}`), link('events', 'Event'), link('transcript', 'Transcript')),
      error ? failure(error, load) : shown && div.columns(
        section({ 'aria-label': 'State' }, h2('State', copyButton(JSON.stringify(shown.state, null, 2), 'Copy JSON')),
          json(shown.state, { state: tree, redraw: context.redraw, marks: shown.changes?.map((op) => op.path), label: 'State', depth: 3 })),
        section({ 'aria-label': 'Change' }, h2(since == null ? 'Change of this event' : `Change since event ${since}`,
          button.plain.small({ onclick: compare }, since == null ? 'Compare from here' : 'This event only')), patchList(shown.changes)))),
    close: () => clearTimeout(timer),
  };
}
