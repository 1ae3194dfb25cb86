// Actions on many runs: a dialog says exactly how many first, and then reports what became of each.
import { tags, redraw } from '../lib/dom.js';
import { post } from '../lib/api.js';
import { ends, openDialog } from '../lib/keys.js';
import { at, runUrl } from '../lib/page.js';
import { number, plural, shortId } from '../lib/format.js';
import { CANCELS, hasEnded, loading } from '../parts/common.js';

const { a, b, button, h2, li, p, span, ul } = tags;

const MOST = 2000;
const link = (id) => a({ href: runUrl(id) }, shortId(id));
const ACTIONS = {
  Cancel: { fits: (run) => !hasEnded(run), note: CANCELS, danger: true,
    act: (path) => post(`${path}/signals`, { type: 'cancel' }).then(() => 'cancelled') },
  Rerun: { fits: () => true, note: 'Each becomes a new run with the same options. The old ones stay as they are.',
    act: (path) => post(`${path}/fork`, { at: 0 }).then(({ id }) => ['runs again as ', link(id)]) },
};

/** Opens the dialog of an action. `choose(most)` resolves to `{ runs, capped }`. */
export default async function bulkDialog(name, choose, done) {
  const { fits, act, note, danger } = ACTIONS[name];
  let [fit, skipped, capped, sent, problem] = [null, 0, false, null, null];
  const results = new Map();
  async function start() {
    sent = 0;
    for (const { id } of fit) {
      results.set(id, 'sending…');
      results.set(id, await act(`/runs${at(id)}`).catch((error) => span.bad(error.message)));
      sent++;
    }
    redraw();
    done();
  }
  openDialog(`${name} runs`, (close) => [
    h2(fit ? `${name} ${plural(fit.length, 'run')}${sent == null ? '?' : ''}` : `${name} runs`),
    problem ? p.problem({ role: 'alert' }, problem.message) : !fit ? loading('Counting…') : sent == null && p.soft(note),
    capped && p.note(`Only the first ${number(MOST)} runs that match are chosen.`),
    skipped > 0 && p.soft(`${plural(skipped, 'chosen run')} ${skipped === 1 ? 'has' : 'have'} ended already.`),
    fit && [sent != null && p({ role: 'status' }, `${sent} of ${fit.length} sent`), ul.results({ tabindex: '0', 'aria-label': 'Runs' },
      fit.map(({ id, brain }) => li({ key: id }, b(brain), ' ', link(id), ' ', results.get(id))))],
    ends(close, sent == null && button({ class: danger ? 'danger' : 'primary', disabled: !fit?.length, onclick: start }, fit ? `${name} ${plural(fit.length, 'run')}` : name))]);
  try {
    const chosen = await choose(MOST);
    [fit, capped] = [chosen.runs.filter(fits), chosen.capped];
    skipped = chosen.runs.length - fit.length;
  } catch (error) {
    problem = error;
  }
  redraw();
}
