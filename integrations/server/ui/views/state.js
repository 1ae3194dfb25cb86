// The state at an event, with the change that the event makes, or the change since an earlier one.
import { tags } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { at, go, query } from '../lib/page.js';
import { copyButton, failure } from '../parts/common.js';
import { json } from '../parts/json.js';
import { patchList } from '../parts/patch.js';

const { a, b, button, div, h2, input, section, span } = tags;

export default function stateTab(run) {
  const { model, view: { route } } = run;
  let [seq, since, shown, error, timer] = [Number(route.rest[0] ?? model.head), route.query.get('since'), null, null, 0];
  const [cache, open] = [new Map(), new Map()];
  async function load() {
    const key = query({ at: seq, since });
    try {
      if (!cache.has(key)) {
        const [after, before] = await Promise.all([key, query({ at: Math.max(0, since ?? seq - 1) })].map((place) => get(`${model.path}/state${place}`)));
        cache.set(key, { ...after, before: before.state });
      }
      if (key === query({ at: seq, since })) [shown, error] = [cache.get(key), null];
    } catch (problem) {
      error = problem;
    }
  }
  const show = (to) => {
    seq = Math.max(0, Math.min(model.head, to));
    go(at('runs', model.id, 'state', seq) + query({ since }), true);
    clearTimeout(timer);
    timer = setTimeout(load, 60);
  };
  const step = (by) => ({ shiftKey }) => show(seq + by * (shiftKey ? 10 : 1));
  const compare = () => {
    since = since == null ? seq : null;
    show(seq);
  };
  const link = (tab, text) => a({ href: run.url(tab, seq) }, text);
  load();
  return {
    keys: () => ({ ArrowLeft: ['Event before (shift: 10)', step(-1)], ArrowRight: ['Next event (shift: 10)', step(1)] }),
    route(to) {
      if (to !== seq) show(to);
    },
    reveal: (node) => show(node.seq),
    render: () => div.stateView(
      div.scrub(button({ onclick: step(-1), disabled: seq <= 0, 'aria-label': 'Event before' }, '←'),
        input({ type: 'range', min: 0, max: model.head, value: String(seq), 'aria-label': 'Event', 'aria-valuetext': `event ${seq} of ${model.head}`,
          oninput: ({ target }) => show(Number(target.value)) }),
        button({ onclick: step(1), disabled: seq >= model.head, 'aria-label': 'Next event' }, '→'),
        b(`event ${seq}`), span.soft(`of ${model.head}`), link('events', 'Event'), link('transcript', 'Transcript')),
      error ? failure(error, load) : shown && div.columns(
        section({ 'aria-label': 'State' }, h2('State', copyButton(JSON.stringify(shown.state, null, 2), 'Copy JSON')),
          json(shown.state, { open, marks: shown.changes?.map((op) => op.path).filter(Boolean), label: 'State', depth: 3 })),
        section({ 'aria-label': 'Change' }, h2(since == null ? 'Change of this event' : `Change since event ${since}`,
          button.plain.small({ onclick: compare }, since == null ? 'Compare from here' : 'This event only')), patchList(shown.changes, shown.before)))),
  };
}
