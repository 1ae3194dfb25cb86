// The overview: whether all is well, and if not, what and since when. Each number leads to the list of its runs.
import { tags } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { go, query, ui } from '../lib/page.js';
import { icon } from '../lib/icons.js';
import { causeOf, inShort, quoted } from '../lib/cause.js';
import { cash, compact, date, duration, micros, millis, moment, number, plural, sentenceCase, zone } from '../lib/format.js';
import { chart, legend, meter, spark } from '../parts/chart.js';
import { empty, resource } from '../parts/common.js';

const { a, b, code, dd, div, dl, dt, h1, h2, header, nav, option, p, section, select, small, span, table, tbody, td, th, thead, tr } = tags;

const RANGES = { '1h': ['1 h', 'the last hour'], '24h': ['24 h', 'the last 24 h'], '7d': ['7 days', 'the last 7 days'], '30d': ['30 days', 'the last 30 days'] };
/** After how many milliseconds changes of runs are read again at the earliest. */
const PAUSE = 5000;
const WHY_STUCK = { no_brain: 'no worker knows the brain', changed: 'the code has changed of the brain', prices: 'a price is missing for a limit of the brain', no_model: 'no worker has a model for the brain' };
const stuckRuns = (stuck) => stuck.reduce((all, { runs }) => all + runs, 0);
const sum = ({ completed, failed, cancelled }) => completed + failed + cancelled;
const percent = (part, whole) => (whole ? `${number(Math.round((part / whole) * 1000) / 10)} %` : '–');
const sumsOf = (costs) => costs.map(({ amount, currency }) => cash(amount, currency)).join(' + ');
/** What runs have cost, in words: a part of it may be unknown, and runs that have asked no model cost nothing. */
const amounts = ({ costs, partly_priced: partly }) => (costs.length ? [partly > 0 && 'at least ', sumsOf(costs)] : partly ? 'unknown' : '–');
/** What open runs have used so far: the figures have a run when it ends. */
const soFar = (open, used) => open && used && `${used} more so far in ${plural(open.runs, 'open run')}`;
const isSingle = ({ cause, runs: own }) => own === 1 && /…/.test(cause);
/** How many of the last failed runs are read for their messages. */
const RECENT = 100;
/** How many parts of a cause are looked for at most. */
const PARTS = 4;
/** How long ago a time was, by its largest unit, and a time to the minute. */
const age = (time) => duration(Date.now() - millis(time)).split(' ').slice(0, 2).join(' ');
const minute = (time) => moment(time).replace(/(\d\d:\d\d):\d\d$/, '$1');
const sentence = (text) => quoted(sentenceCase(text));
const inCurrency = (costs, currency) => Number(costs.find((one) => one.currency === currency)?.amount ?? 0);
const used = ({ tokens }) => tokens.input + tokens.output;
/** A model without its provider. */
const shortModel = (model) => model.slice(model.indexOf('/') + 1);
const link = (to, ...content) => a({ href: ui(to) }, content);

export default function overviewView(route, frame) {
  let [range, brain, model, timer, readAt, titles, names, single] = ['24h', null, null, 0, 0, [], new Set(), new Map()];
  const read = (to) => { [range, brain, model] = [RANGES[to.query.get('range')] ? to.query.get('range') : '24h', to.query.get('brain'), to.query.get('model')]; };
  const address = (change) => {
    const wanted = { range, brain, model, ...change };
    return `/overview${query({ ...wanted, range: wanted.range === '24h' ? null : wanted.range })}`;
  };
  read(route);
  get('/brains').then(({ items }) => { titles = items.map(({ title }) => title); }, () => {});
  const noted = (all) => {
    all.models.forEach((one) => names.add(one.model));
    return all;
  };
  /** Reads the whole messages of the causes that one run has: nothing of them is the same in others. */
  const unmasked = (all) => {
    if (all.causes.some(isSingle)) get('/runs', { status: 'failed', since: all.from, brain, model, limit: RECENT }).then(({ items }) => { single = new Map(items.map(({ cause, why }) => [cause, why])); }, () => {});
    return all;
  };
  const data = resource(() => {
    readAt = performance.now();
    return get('/overview', { range, brain, model }).then(noted).then(unmasked);
  });
  // The figures of one model do not name the others.
  if (model) get('/overview', { range }).then(noted, () => {});
  /** The list of the runs that a number counts. */
  const runs = (filter = {}, from = data.value.from) => `/runs${query({ brain, model, since: from.replace(/\.\d+/, ''), ...filter })}`;
  const choose = (name) => [`Show ${RANGES[name][1]}`, () => go(address({ range: name }))];
  return {
    title: () => 'Overview',
    update(to) {
      read(to);
      data.load();
      return true;
    },
    keys: () => Object.fromEntries(Object.keys(RANGES).map((name, i) => [String(i + 1), choose(name)])),
    change() {
      clearTimeout(timer);
      timer = setTimeout(data.load, Math.max(0, PAUSE - (performance.now() - readAt)));
    },
    head: () => div.bar(h1('Overview'), span.grow(),
      nav.views({ 'aria-label': 'Range of time' }, Object.entries(RANGES).map(([name, [text]]) => a({ key: name, href: ui(address({ range: name })), 'aria-current': name === range && 'true' }, text))),
      choice('brain', brain, [...titles, brain]), choice('model', model, [...names, model]),
      a.button.primary({ href: ui('/brains') }, icon('plus'), 'Start a run')),
    render: () => data.show(shown),
    close: () => clearTimeout(timer),
  };

  /** Chooses one of the brains or models, or all. */
  function choice(noun, value, all) {
    return select.wide({ 'aria-label': sentenceCase(noun), value: value ?? '', onchange: ({ target }) => go(address({ [noun]: target.value || null })) },
      option({ value: '' }, `All ${noun}s`), [...new Set(all)].filter(Boolean).toSorted().map((name) => option({ key: name, value: name }, noun === 'model' ? shortModel(name) : name)));
  }

  function shown(all) {
    const none = !all.started && !sum(all.ended) && !all.waiting.items;
    const isIdle = none && !all.queue.claimed && !all.queue.queued && !all.queue.stuck.length && !all.queue.asleep && !all.queue.paused;
    if (isIdle) return empty(`No runs in ${RANGES[range][1]}`, brain || model ? `${[brain && `The brain ${brain}`, model && `${brain ? 'with the' : 'The'} model ${shortModel(model)}`].filter(Boolean).join(' ')} has none.` : 'Start a run, or choose a longer range.', a.button.primary({ href: ui('/brains') }, 'Start a run'));
    return div.overview(notes(all), tiles(all), div.halves(failures(all), standing(all)), all.models.length ? div.halves.even(byBrain(all), byModel(all)) : all.brains.length > 0 && byBrain(all));
  }

  /** A cause in a sentence; that of a single run with its numbers and names. */
  function saidBy(cause) {
    const why = isSingle(cause) && single.get(cause.cause);
    return why ? causeOf(why).brief : inShort(cause.cause);
  }

  /** What is wrong, in one line each: stuck runs, the newest cause of failures, and the oldest decision. */
  function notes({ causes, brains, ended, waiting, queue: { stuck }, from, now }) {
    const late = millis(from) + (millis(now) - millis(from)) * 0.75;
    const isNew = causes.filter(({ first }) => millis(first) >= late);
    const goodOf = (cause) => cause?.brains.length === 1 && brains.find(({ brain: title }) => title === cause.brains[0])?.last_completed;
    // A brain that has completed a run since is a lesser worry.
    const isOver = (cause) => Boolean(goodOf(cause)) && millis(goodOf(cause)) > millis(cause.last);
    const worst = isNew.find((cause) => !isOver(cause)) ?? isNew[0];
    const good = goodOf(worst);
    const failed = worst ? a.note({ key: 'cause', class: isOver(worst) ? '' : 'failed', href: ui(causeList(worst)) }, icon('warn'), span.grow(
      b(`${worst.brains.join(', ')} failed ${worst.runs === 1 ? 'once' : `${number(worst.runs)} times`} since ${minute(worst.first)}: `), span({ dir: 'auto', title: worst.cause }, quoted(saidBy(worst))), '.',
      good && ` Its last good run ended at ${minute(good)}.`), span.to(plural(worst.runs, 'run')))
      : ended.failed ? p.note({ key: 'cause' }, icon('skip'), span(b(`${number(ended.failed)} of ${plural(sum(ended), 'run')} failed`), `, none by a new cause since ${minute(late * 1000)}.`))
        : p.note({ key: 'cause' }, icon('check'), span(b(`Nothing has failed in ${RANGES[range][1]}`), waiting.items ? '.' : ', and nothing waits for a person.'));
    const lost = stuck.length > 0 && a.note.failed({ key: 'stuck', href: ui(`/runs${query({ model, status: 'stuck', brain: stuck.length === 1 ? stuck[0].brain : brain })}`) }, icon('warn'), span.grow(b(`${plural(stuckRuns(stuck), 'run')} stuck: `), [...new Set(stuck.map(({ brain: title, reason }) => `${WHY_STUCK[reason] ?? reason} ${title}`))].slice(0, 2).join('; '), '.'), span.to('Runs'));
    // What is known already gives way to what is not.
    return div.notes(lost, (worst || !lost) && failed, waiting.items > 0 && a.note.lost({ key: 'waits', href: ui('/inbox') }, icon('clock'), span.grow(
      b(`${plural(waiting.items, 'decision')} ${waiting.items === 1 ? 'waits' : 'wait'}, `), waiting.items > 1 && 'the oldest ', `for ${age(waiting.oldest)}.`), span.to('Inbox')));
  }

  /** The list of the runs with a cause: those that failed, and have the longest parts of it that are the same for all in their log. */
  function causeList({ cause, first, brains }) {
    // A log has a quote as `\"`, so the parts between quotes are looked for, each in quotes as one text.
    const parts = cause.split(/["\\…\n]/).map((part) => part.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '')).filter((part) => part.length > 2);
    const longest = parts.toSorted((one, other) => other.length - one.length).slice(0, PARTS);
    return runs({ status: 'failed', q: longest.map((part) => `"${part}"`).join(' '), brain: brains.length === 1 ? brains[0] : brain }, first);
  }

  function tiles({ from, now, buckets, started, ended, open, waiting, models, bucket_seconds: seconds }) {
    const columns = buckets.map(({ at }) => date(at));
    const [begin, end] = [millis(from), millis(from) + buckets.length * seconds * 1000];
    const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => mark(begin + part * (end - begin)));
    const of = (value) => buckets.map((bucket) => value(bucket));
    const currency = [...ended.costs].sort((one, other) => other.amount - one.amount)[0]?.currency;
    const version = `${now} ${zone()}`;
    const tile = (title, to, value, about, shape, names) => section.tile({ key: title },
      header(h2(link(to, title)), names && legend(shape.series)), p.figure(b(value), ' ', small(about)), chart({ label: `${title}, ${RANGES[range][1]}`, columns, marks, version, ...shape }));
    const [input, { output, cached }] = [ended.tokens.input, ended.tokens];
    return div.tiles(
      tile('Runs', runs(), number(sum(ended)), `ended, ${number(started)} started`, { format: number, series: [
        { name: 'completed', tone: 's1', of: of((one) => one.ended.completed) }, { name: 'failed', tone: 'failed', of: of((one) => one.ended.failed) },
        ended.cancelled && { name: 'cancelled', tone: 'idle', of: of((one) => one.ended.cancelled) }].filter(Boolean) }, true),
      tile('Failed', runs({ status: 'failed' }), number(ended.failed), `${percent(ended.failed, sum(ended))} of those that ended`, { format: number, series: [{ name: 'failed', tone: 'failed', of: of((one) => one.ended.failed) }] }),
      tile('Waiting for a person', '/inbox', number(waiting.items), waiting.items ? `oldest ${age(waiting.oldest)}, in ${plural(waiting.runs, 'run')}, by when they began to wait` : 'nothing waits',
        { kind: 'steps', format: number, series: [{ name: 'waiting now', tone: 'waits', of: of((one) => one.waiting) }] }),
      tile('Cost', runs(), ended.costs.length ? sumsOf(ended.costs) : '–', ['of ended runs', ended.costs.length === 1 && `mean ${cash(ended.costs[0].amount / ended.priced, currency)} of ${plural(ended.priced, 'priced run')}`, ended.partly_priced > 0 && `${number(ended.partly_priced)} partly unknown`, soFar(open, open && sumsOf(open.costs))].filter(Boolean).join(' · '),
        { format: (n) => cash(n, currency), series: costSeries(currency, models, of((one) => inCurrency(one.ended.costs, currency))) }, ended.costs.length > 1 || models.length > 1),
      tile('Tokens', runs(), compact(input + output), [`of ended runs · ${percent(cached, input)} of the input from the cache`, soFar(open, open && used(open) > 0 && compact(used(open)))].filter(Boolean).join(' · '), { format: compact, series: [
        { name: 'cached', tone: 's3', of: of((one) => one.ended.tokens.cached) }, { name: 'in', tone: 's2', of: of((one) => Math.max(0, one.ended.tokens.input - one.ended.tokens.cached)) },
        { name: 'out', tone: 's1', of: of((one) => one.ended.tokens.output) }] }, true),
      tile('Active time of a run', runs(), ended.active ? micros(ended.active.p50) : '–', ended.active ? `p50 · p95 ${micros(ended.active.p95)}` : 'time unknown', { kind: 'lines', format: micros, series: [
        { name: 'p50', tone: 's1', of: of((one) => one.ended.active?.p50 ?? null) }, { name: 'p95', tone: 's2', of: of((one) => one.ended.active?.p95 ?? null) }] }, true));
  }
  /** The cost by the two dearest models and all others, or as a whole. */
  function costSeries(currency, models, whole) {
    const dear = models.filter(({ costs }) => inCurrency(costs, currency) > 0).slice(0, 2).map(({ model, buckets }) => ({ name: shortModel(model), of: buckets.map((costs) => inCurrency(costs, currency)) }));
    if (dear.length < 2) return [{ name: currency ?? 'cost', tone: 's1', of: whole }];
    const rest = whole.map((amount, i) => amount - dear[0].of[i] - dear[1].of[i]);
    // What is left of a sum of decimals is no cost.
    const others = rest.some((amount, i) => amount > whole[i] * 1e-6) && { name: 'others', tone: 's3', of: rest.map((amount, i) => (amount > whole[i] * 1e-6 ? amount : 0)) };
    return [{ ...dear[0], tone: 's1' }, { ...dear[1], tone: 's2' }, others].filter(Boolean);
  }
  function mark(ms) {
    const text = date(ms * 1000);
    const [day, time] = text.split(', ');
    return range === '7d' || range === '30d' ? day.replace(/ \d{4}$/, '') : (time ?? '').slice(0, 5);
  }

  function failures({ causes, more_causes: more, ended, now }) {
    return section.panel.flush({ key: 'causes' }, header(h2.grow('Failures by cause'), ended.failed > 0 && link(runs({ status: 'failed' }), plural(ended.failed, 'run'))),
      causes.length ? div.scroll({ tabindex: '0', role: 'region', 'aria-label': 'Failures by cause' }, table(
        thead(tr(th({ scope: 'col' }, 'Cause'), th.right({ scope: 'col' }, 'Runs'), th.wide({ scope: 'col' }, RANGES[range][0]), th.right.wide({ scope: 'col' }, 'First'), th.right({ scope: 'col' }, 'Last'))),
        tbody(causes.map((cause) => tr({ key: cause.cause },
          td(a.name({ href: ui(causeList(cause)), dir: 'auto', title: cause.cause }, cause.cause ? sentence(saidBy(cause)) : 'No message'), small(cause.brains.join(', '))), td.right(b(number(cause.runs))),
          td.wide(spark(`${cause.cause}: ${number(cause.runs)} in ${RANGES[range][1]}`, cause.buckets, now)), td.right.wide(minute(cause.first)), td.right(minute(cause.last))))))) : p.pad.soft(`No run has failed in ${RANGES[range][1]}.`),
      more > 0 && p.pad.soft(`${plural(more, 'further cause')}, each with fewer runs.`));
  }

  function standing({ queue, workers }) {
    const { claimed, queued, oldest, stuck, asleep, paused } = queue;
    const lost = stuckRuns(stuck);
    const isLeft = queued > 0 && !workers.length;
    const [tone, shape, word] = lost ? ['bad', 'warn', `${plural(lost, 'run')} stuck`] : isLeft ? ['wait', 'warn', 'No worker has a run'] : workers.length ? ['good', 'check', 'Runs are worked on'] : ['quiet', 'check', 'Nothing to do'];
    const list = (filter) => `/runs${query({ brain, model, ...filter })}`;
    const row = (name, ...content) => div({ key: name }, dt(name), dd(content));
    return section.panel.flush({ key: 'queue' }, header(h2.grow('Workers and queue'), span.status({ class: tone }, icon(shape), span(word))),
      // The table stands without a worker, too, so that what is below it does not move when a run starts.
      table({ 'aria-label': 'Workers with runs' }, thead(tr(th({ scope: 'col' }, 'Worker'), th.right({ scope: 'col' }, 'Runs'))),
        tbody(workers.map(({ owner, runs: own }) => tr({ key: owner }, td(code(owner)), td.right(number(own)))), workers.length === 0 && tr({ key: 'none' }, td.soft('none'), td.right(0)))),
      dl.pad(
        row('Working', claimed ? link(list({ status: 'running' }), plural(claimed, 'run')) : 'no run; workers without a run do not show here'),
        row('Queue', queued ? [link(list({ status: 'queued,stuck' }), plural(queued, 'run')), ` ${queued === 1 ? 'waits' : 'wait'} for a worker, the oldest for ${age(oldest)}`] : 'no run waits for a worker'),
        row('Stuck', stuck.length ? stuck.map(({ brain: title, reason, runs: some }, i) => div({ key: i }, link(list({ status: 'stuck', brain: title }), plural(some, 'run')), `: ${WHY_STUCK[reason] ?? reason} `, code(title))) : 'none'),
        row('Asleep', asleep ? [link(list({ status: 'waiting' }), plural(asleep, 'run')), ' until a time or a webhook'] : 'none'),
        paused > 0 && row('Paused', link(list({ status: 'paused' }), plural(paused, 'run')))));
  }

  function byBrain({ brains, more_brains: more, ended }) {
    const currency = [...ended.costs].sort((one, other) => other.amount - one.amount)[0]?.currency;
    const whole = inCurrency(ended.costs, currency);
    const head = (name, more = {}) => th.right({ scope: 'col', ...more }, name);
    return section.panel.flush({ key: 'brains' }, header(h2.grow('By brain'), small('of ended runs')), div.scroll({ tabindex: '0', role: 'region', 'aria-label': 'By brain' }, table(
      thead(tr(th({ scope: 'col' }, 'Brain'), head('Runs'), head('Failed'), head('p50', { class: 'wide' }), head('p95', { class: 'wide' }), head(['Cost ', icon('down')], { 'aria-sort': 'descending' }), th.wide({ scope: 'col' }, 'Share of cost'))),
      tbody(brains.map(({ brain: title, ended: own }) => tr({ key: title },
        td(a.name({ href: ui(address({ brain: title })) }, title)), td.right(link(runs({ brain: title }), number(sum(own)))),
        td.right({ class: own.failed / sum(own) >= 0.1 && 'bad' }, own.failed ? link(runs({ brain: title, status: 'failed' }), percent(own.failed, sum(own))) : '0 %'),
        td.right.wide(own.active ? micros(own.active.p50) : '–'), td.right.wide(own.active ? micros(own.active.p95) : '–'), td.right({ title: own.partly_priced ? `The cost of ${plural(own.partly_priced, 'run')} is partly unknown` : null }, amounts(own)),
        td.wide.share(span.unseen(whole ? percent(inCurrency(own.costs, currency), whole) : '–'), meter(whole ? inCurrency(own.costs, currency) / whole : 0))))))),
    more > 0 && p.pad.soft(`${plural(more, 'further brain')}, each with a lower cost.`));
  }

  function byModel({ models, more_models: more, ended }) {
    const currency = [...ended.costs].sort((one, other) => other.amount - one.amount)[0]?.currency;
    const whole = inCurrency(ended.costs, currency);
    const rest = more ? 0 : used(ended) - models.reduce((all, one) => all + used(one), 0);
    const head = (name, more = {}) => th.right({ scope: 'col', ...more }, name);
    return section.panel.flush({ key: 'models' }, header(h2.grow('By model'), small('of ended runs')), div.scroll({ tabindex: '0', role: 'region', 'aria-label': 'By model' }, table(
      thead(tr(th({ scope: 'col' }, 'Model'), head('Runs'), head('Tokens'), head(['Cost ', icon('down')], { 'aria-sort': 'descending' }), th.wide({ scope: 'col' }, 'Share of cost'))),
      tbody(models.map(({ model: name, runs: own, costs, tokens, partly_priced: partly }) => tr({ key: name },
        td(a.name({ href: ui(address({ model: name })) }, code(name))), td.right(link(runs({ model: name }), number(own))), td.right({ title: `${number(tokens.input)} in, ${percent(tokens.cached, tokens.input)} of them from the cache, ${number(tokens.output)} out` }, compact(tokens.input + tokens.output)),
        td.right({ title: partly ? `The cost of ${plural(partly, 'run')} is partly unknown` : null }, amounts({ costs, partly_priced: partly })),
        td.wide.share(span.unseen(whole ? percent(inCurrency(costs, currency), whole) : '–'), meter(whole ? inCurrency(costs, currency) / whole : 0))))))),
    rest > 0 && p.pad.soft(`${compact(rest)} further tokens are of answers whose model is unknown.`),
    more > 0 && p.pad.soft(`${plural(more, 'further model')}, each with a lower cost.`));
  }
}
