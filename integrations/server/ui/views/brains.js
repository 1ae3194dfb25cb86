// Brains: what each does, its stages, how its last runs went, and the form that starts one.
import { tags } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { at, commandOf, go, query, runUrl, ui } from '../lib/page.js';
import { icon, status } from '../lib/icons.js';
import { cause, cutOff, endOf, plain, quoted, standing, whyOf } from '../lib/cause.js';
import { cash, micros, moment, money, number, plural, runCost, runCostTitle, shortId, titleWord } from '../lib/format.js';
import { command, empty, idText, resource } from '../parts/common.js';
import { noModel } from '../parts/next_model.js';
import { requestForm } from '../parts/request.js';

const { a, b, button, code, div, h1, h2, header, li, nav, ol, p, section, small, span, ul } = tags;
const SHAPES = { loop: 'retry', brain: 'brain', prompt: 'model', loop_to: 'retry', wait: 'clock', guard: 'flag' };
/** What a tool does to the world or to its loop, as `[icon, words]`. */
const FLAGS = { approval: ['person', 'can need an approval'], exit: ['exit', 'ends the loop'], destructive: ['warn', 'destructive'], brain: ['brain', 'a brain'], read_only: ['tool', 'read only'] };

/** The tools of a loop: those that it always has, and others that the run that is named below them was offered. */
const toolsOf = (tools) => ul.toolsOf(tools.map(({ id, description, flags }) => {
  const set = Object.keys(FLAGS).filter((name) => flags?.[name]).map((name) => FLAGS[name]);
  return li({ key: id, title: description, class: flags?.destructive && 'wait' }, icon(set[0]?.[0] ?? 'tool'), span.mono(id), small(set.map(([, words]) => words).join(', ')));
}));
/** A tool that a loop always has, with what a run says of it, too. */
const always = ({ name, description, approval, exit, brain }, offered) => ({ id: name, description, flags: { ...offered?.flags, approval, exit, brain } });
/** The stages of a brain in their order, with the brains that they run and the tools of their loops. */
const stagesOf = ({ stages }, offered, path = '') => ol.flow(stages.map(({ name, kind, brain, arms = [], tools = [], webhooks, rounds }) => {
  const at = path + name;
  const others = (offered[at] ?? []).filter(({ id }) => !tools.some(({ name }) => name === id));
  const known = [...tools.map((tool) => always(tool, offered[at]?.find(({ id }) => id === tool.name))), ...others];
  const brains = [...arms, ...tools.filter((tool) => tool.brain)];
  return li({ key: name, class: (brain || brains.length > 0 || known.length > 0) && 'group' },
    div(kind !== 'step' && [icon(SHAPES[kind] ?? 'run'), ' '], b(name), small(' ', kind.replace('_', ' to '), brain && brain.title !== name && ` ${brain.title}`, rounds && `, at most ${rounds} rounds`)),
    webhooks?.length > 0 && small(icon('hook'), ` waits for ${webhooks.join(' or ')}`), known.length > 0 && toolsOf(known),
    brain && stagesOf(brain, offered, `${at}/`), brains.length > 0 && ul.arms(brains.map((arm) => li({ key: arm.name }, small('→ '), b(arm.name), arm.brain && stagesOf(arm.brain, offered, `${at}/`)))));
}));

/** The tools that each loop of a run was offered: a brain says them when it runs only. Rounds and members of groups are one loop. */
async function offeredIn(run) {
  const { items } = await get(`/runs${at(run)}/events`, { type: 'LOOP_ITERATION', limit: 100 });
  const loops = {};
  for (const { path, tools = [] } of items) {
    const loop = path.split('/').filter((part) => !/^[#\d]/.test(part)).join('/');
    const known = loops[loop] ?? [];
    loops[loop] = [...known, ...tools.filter(({ id, body }) => body && !known.some((tool) => tool.id === id)).map(({ id, body }) => ({ id, ...body }))];
  }
  return Object.fromEntries(Object.entries(loops).filter(([, tools]) => tools.length));
}
/** The tools of the last run that was offered some, a completed one before the others: a run that failed early has reached no loop. */
async function offered(runs) {
  for (const last of runs.toSorted((one, other) => Number(other.status === 'completed') - Number(one.status === 'completed'))) {
    const tools = await offeredIn(last.id).catch(() => ({}));
    if (Object.keys(tools).length) return { tools, last };
  }
  return { tools: {}, last: null };
}

const figure = (value, name, to) => div(b(to ? a({ href: ui(to) }, value) : value), span(name));
/** The figures of 30 days, as the overview has them. */
function figuresOf(title, { from, started, open, ended: { completed, failed, cancelled, active, costs, priced }, waiting }) {
  const [all, runs] = [completed + failed + cancelled, (filter) => `/runs${query({ brain: title, since: from, ...filter })}`];
  const [cost] = [...costs].sort((one, other) => other.amount - one.amount);
  return section.brainFigures({ 'aria-label': 'Figures of the last 30 days' }, figure(number(started), ['started in 30 days, ', number(all), ' ended'], runs()),
    figure(all ? `${Math.round((failed / all) * 1000) / 10} %` : '–', 'failed', failed && runs({ status: 'failed' })),
    figure(active ? micros(active.p50) : '–', 'p50 active'), figure(active ? micros(active.p95) : '–', 'p95 active'),
    figure(cost && priced ? money(String(cost.amount / priced), cost.currency) : '–', all && !priced ? 'mean cost, none is known' : priced < all ? `mean cost of ${plural(priced, 'priced run')}` : 'mean cost'),
    open?.costs.length > 0 && figure(open.costs.map(({ amount, currency }) => money(amount, currency)).join(' + '), `so far in ${plural(open.runs, 'open run')}`),
    figure(number(waiting.items), waiting.items === 1 ? 'decision waits' : 'decisions wait', waiting.items && '/inbox'));
}

/** How a brain has fared in 30 days, in a line of the list. */
function inBrief(figures) {
  if (!figures) return '';
  const { ended: { completed, failed, cancelled, costs, partly_priced: partly }, last_completed: last } = figures;
  const [all, [cost]] = [completed + failed + cancelled, costs];
  return [`${plural(all, 'run')} ended`, failed > 0 && span.bad(`${number(failed)} failed`), cost && `${partly ? 'at least ' : ''}${cash(cost.amount, cost.currency)}`, last && `last good ${moment(last).replace(/:\d\d$/, '')}`]
    .filter(Boolean).flatMap((one, i) => (i ? [' · ', one] : [one]));
}

/** How a run stands, in a line. */
function stands(run) {
  if (standing(run) === 'limited') return cutOff(run);
  return run.status === 'completed' ? quoted(endOf(run) || plural(run.head + 1, 'event')) : cause(whyOf(run));
}

const runsOf = (title, { items, next }) => section.panel(header(h2('Last runs'), span.grow(), a({ href: ui(`/runs${query({ brain: title })}`) }, next ? 'All runs' : 'As a list')),
  items.length ? ul.lastRuns(items.map((run) => li({ key: run.id }, a({ href: runUrl(run.id) }, status(standing(run)), span.mono({ title: run.id }, idText(run.id)),
    span.twoLines(span.cut({ class: run.status === 'failed' ? 'bad' : run.pending || run.cut_off != null ? 'wait' : '', dir: 'auto' }, stands(run)), run.input && small.cut({ dir: 'auto', title: run.input }, plain(run.input))),
    span.quiet(moment(run.started)), span.wide.cost({ title: runCostTitle(run.cost) }, runCost(run.cost)))))) : p.soft('It has not run yet.'));

/** Goes to the form, which stands below the rest in a narrow window. */
function toStart() {
  const form = document.querySelector('.brain .start');
  form?.scrollIntoView({ block: 'start' });
  form?.querySelector('input, textarea, select, button')?.focus({ preventScroll: true });
}

export default function brainsView(route) {
  const list = resource(() => get('/brains'));
  const sums = resource(() => get('/overview', { range: '30d' }));
  let [chosen, one] = [];
  const show = (title) => {
    if (title === chosen) return;
    chosen = title;
    one = title && resource(async () => {
      const [brain, runs, figures] = await Promise.all([get(`/brains${at(title)}`), get('/runs', { brain: title, limit: 5 }), get('/overview', { range: '30d', brain: title }).catch(() => null)]);
      return { brain, runs, figures, ...await offered(runs.items), form: requestForm({
        title: 'Start a run', verb: 'Start', below: () => noModel(brain.model), route: 'POST /runs', name: 'start', hide: ['brain'], first: ['options'], flat: ['options'], more: 'User, tags and more',
        value: { brain: title, options: brain.default_options }, schemas: { options: brain.options_schema }, done: ({ id }) => go(at('runs', id)) }) };
    });
  };
  show(route.rest[0]);
  const link = ({ title, description, stages }) => a({ key: title, href: ui(at('brains', title)) }, icon('brain'), b(title), small({ title: description }, description), small.wide(stages.map(({ name }) => name).join(' → ')), small(inBrief(sums.value?.brains.find(({ brain }) => brain === title))));
  const links = ({ items }) => nav.whole({ 'aria-label': 'Brains' }, items.map(link));
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
    head: () => div.bar(chosen ? [a.quiet({ href: ui('/brains') }, 'Brains'), span.quiet('/'), h1(chosen), span.cut.soft.grow(one.value?.brain.description),
      one.value?.brain.start.allowed && button.primary.toStart({ onclick: toStart }, icon('run'), 'Start a run')] : [h1('Brains'), span.soft.cut(list.value && `Choose one of ${plural(list.value.items.length, 'brain')} to start a run. The numbers are of its runs that ended in the last 30 days`)]),
    render: () => (one ? one.show(({ brain, runs, figures, tools, last, form }) => div.brain({ key: chosen },
      div(figures && figuresOf(chosen, figures), brain.structure && section.panel(header(h2('Structure'), span.grow(), small({ title: brain.fingerprint }, `version ${brain.version}, code ${brain.fingerprint.slice(0, 4)}`)), stagesOf(brain.structure, tools),
        Object.keys(tools).length > 0 && p.soft('Tools that depend on the run are those of ', a({ href: runUrl(last.id) }, shortId(last.id)), last.models?.length > 0 && [', answered by ', last.models.map((name, i) => [i > 0 && ', ', code({ key: name }, name)])], '.')), runsOf(chosen, runs)),
      div(section.panel({ 'aria-label': 'Start a run' }, brain.starts_on && p.soft(`Started by the webhook ${brain.starts_on.join(', ')}.`), brain.start.allowed ? [form(), command(commandOf('run', titleWord(chosen)))] : p.soft(brain.start.reason)))))
      : list.show((all) => (all.items.length ? div.queue.inMain(links(all)) : empty('This server has no brains', 'Register brains with `Runner::brain`, or start `serve` in a project.')))),
  };
}
