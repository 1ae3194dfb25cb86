// Actions on many runs: a dialog says exactly how many first, and then reports what became of each.
import { tags } from '../lib/dom.js';
import { post, at, ui } from '../lib/api.js';
import { openDialog } from '../lib/keys.js';
import { number, plural, shortId } from '../lib/format.js';
import { loading } from './common.js';

const { a, b, button, footer, h2, li, p, span, ul } = tags;

const MOST = 2000;
export const isOpen = ({ status }) => ['running', 'waiting', 'paused'].includes(status);
const ACTIONS = {
  Cancel: { fits: isOpen, note: 'Every open call gets a cancelled result. This cannot be undone.', danger: true,
    act: async ({ id }) => { await post(`/runs${at(id, 'signals')}`, { type: 'cancel' }); return 'cancelled'; } },
  Rerun: { fits: () => true, note: 'Each becomes a new run with the same options. The old ones stay as they are.',
    act: async ({ id }) => {
      const made = await post(`/runs${at(id, 'fork')}`, { at: 0 });
      return ['runs again as ', a({ href: ui(`/runs/${made.id}`) }, shortId(made.id))];
    } },
};

/** Opens the dialog of an action. `choose(most)` resolves to `{ runs, capped }`. */
export async function bulkDialog(context, name, choose, done) {
  const { fits, act, note, danger } = ACTIONS[name];
  let [fit, skipped, capped, started, problem] = [null, 0, false, false, null];
  const results = new Map();
  async function start(again) {
    started = true;
    for (const run of fit) {
      results.set(run.id, 'sending…');
      again();
      results.set(run.id, await act(run).catch((error) => span.bad(error.message)));
    }
    again();
    done();
  }
  const again = openDialog(`${name} runs`, (close, draw) => [
    h2(fit ? `${name} ${plural(fit.length, 'run')}${started ? '' : '?'}` : `${name} runs`),
    problem ? p.problem({ role: 'alert' }, problem.message) : !fit ? loading('Counting…') : !started && p.soft(note),
    capped && p.note(`Only the first ${number(MOST)} runs that match are chosen.`),
    skipped > 0 && p.soft(`${plural(skipped, 'chosen run')} ${skipped === 1 ? 'has' : 'have'} ended already.`),
    started && p({ role: 'status' }, `${results.size} of ${fit.length} sent`),
    started && ul.results({ tabindex: '0', 'aria-label': 'Results' }, fit.map((run) => li({ key: run.id },
      b(run.brain), ' ', a({ href: ui(`/runs/${run.id}`) }, shortId(run.id)), ' ', results.get(run.id)))),
    footer(!started && button({ class: danger ? 'danger' : 'primary', disabled: !fit?.length, onclick: () => start(draw) },
      fit ? `${name} ${plural(fit.length, 'run')}` : name), button.plain({ onclick: close }, 'Close'))]);
  try {
    const chosen = await choose(MOST);
    [fit, capped] = [chosen.runs.filter(fits), chosen.capped];
    skipped = chosen.runs.length - fit.length;
  } catch (error) { problem = error; }
  again();
}
