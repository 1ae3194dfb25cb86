// Brains: what each does, its stages, how its last runs went, and the form that starts one.
import { tags } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { at, go, query, runUrl, ui } from '../lib/page.js';
import { icon, status } from '../lib/icons.js';
import { cause, standing } from '../lib/cause.js';
import { duration, moment, number, plural, shortId } from '../lib/format.js';
import { empty, resource } from '../parts/common.js';
import { requestForm } from '../parts/request.js';

const { a, aside, b, div, h1, h2, header, li, nav, ol, p, section, small, span, ul } = tags;
/** From how many runs on their durations say something about the next one. */
const MANY = 10;
const SHAPES = { loop: 'retry', brain: 'brain', prompt: 'model', loop_to: 'retry', wait: 'clock', guard: 'flag' };

/** The stages of a brain in their order, with the brains that they run. */
const stagesOf = ({ stages }) => ol.flow(stages.map(({ name, kind, brain, arms, webhooks, rounds }) => li({ key: name, class: (brain || arms) && 'group' },
  div(icon(SHAPES[kind] ?? 'run'), ' ', b(name), small(' ', kind.replace('_', ' to '), brain && brain.title !== name && ` ${brain.title}`, rounds && `, at most ${rounds} rounds`)),
  webhooks?.length > 0 && small(icon('hook'), ` waits for ${webhooks.join(' or ')}`),
  brain && stagesOf(brain), arms && ul.arms(arms.map((arm) => li({ key: arm.name }, small('→ '), b(arm.name), arm.brain && stagesOf(arm.brain)))))));

const figure = (value, name) => div(b(value), span(name));
function figuresOf({ completed, failed, cancelled, p50_ms: half, p95_ms: most }) {
  const all = completed + failed + cancelled;
  const ended = completed + failed;
  return section.brainFigures({ 'aria-label': 'Figures of the last runs' }, figure(number(all), 'of the last runs have ended'), figure(ended ? `${Math.round((failed / ended) * 1000) / 10} %` : '–', 'failed'),
    figure(ended >= MANY ? duration(half) : '–', 'p50'), figure(ended >= MANY ? duration(most) : '–', ended >= MANY ? 'p95' : `p95, from ${MANY} runs on`));
}

const runsOf = (title, { items, next }) => section.panel(header(h2('Last runs'), span.grow(), a({ href: ui(`/runs${query({ brain: title })}`) }, next ? 'All runs' : 'As a list')),
  items.length ? ul.lastRuns(items.map((run) => li({ key: run.id }, a({ href: runUrl(run.id) }, status(standing(run)), span.mono({ title: run.id }, shortId(run.id)),
    span.cut({ class: run.status === 'failed' ? 'bad' : run.pending ? 'wait' : '' }, run.status === 'completed' ? plural(run.head + 1, 'event') : cause(run.why ?? run.last)), span.quiet(moment(run.started)))))) : p.soft('It has not run yet.'));

export default function brainsView(route) {
  const list = resource(() => get('/brains'));
  let [chosen, one] = [];
  const show = (title) => {
    if (title === chosen) return;
    chosen = title;
    one = title && resource(async () => {
      const [brain, runs] = await Promise.all([get(`/brains${at(title)}`), get('/runs', { brain: title, limit: 5 })]);
      return { brain, runs, form: requestForm({
        title: 'Start a run', verb: 'Start', route: 'POST /runs', name: 'start', hide: ['brain'], first: ['options'], flat: ['options'], more: 'User, tags and more',
        value: { brain: title, options: brain.default_options }, schemas: { options: brain.options_schema }, done: ({ id }) => go(at('runs', id)) }) };
    });
  };
  show(route.rest[0]);
  const link = ({ title, description, stages }) => a({ key: title, href: ui(at('brains', title)), 'aria-current': title === chosen && 'true' }, icon('brain'), b(title), description && small({ title: description }, description), !chosen && small.wide(stages.map(({ name }) => name).join(' → ')));
  const links = ({ items }) => nav({ 'aria-label': 'Brains', class: chosen ? '' : 'whole' }, items.map(link));
  return {
    title: () => chosen ?? 'Brains',
    update(to) {
      show(to.rest[0]);
      return true;
    },
    change() {
      // The form keeps what is typed, so that only the runs are read again.
      if (one?.value) get('/runs', { brain: chosen, limit: 5 }).then((runs) => { if (one.value) one.value.runs = runs; }, () => {});
    },
    head: () => div.bar(chosen ? [a.quiet({ href: ui('/brains') }, 'Brains'), span.quiet('/'), h1(chosen), span.cut.soft(one.value?.brain.description)] : [h1('Brains'), span.soft.cut(list.value && `${plural(list.value.items.length, 'brain')} that this server can run`)]),
    queue: () => chosen && list.value && aside.queue({ key: 'queue', 'aria-label': 'All brains' }, links(list.value)),
    render: () => (one ? one.show(({ brain, runs, form }) => div.brain({ key: chosen },
      div(brain.recent && figuresOf(brain.recent), brain.structure && section.panel(header(h2('Stages'), span.grow(), small({ title: brain.fingerprint }, `version ${brain.version}, code ${brain.fingerprint.slice(0, 4)}`)), stagesOf(brain.structure)), runsOf(chosen, runs)),
      div(section.panel({ 'aria-label': 'Start a run' }, brain.starts_on && p.soft(`Started by the webhook ${brain.starts_on.join(', ')}.`), brain.start.allowed ? form() : p.soft(brain.start.reason)))))
      : list.show((all) => (all.items.length ? div.queue.inMain(links(all)) : empty('This server has no brains', 'Register brains with `Runner::brain`, or start `serve` in a project.')))),
  };
}
