// Single keys while a person types: what takes the focus away must not turn the rest of a sentence into shortcuts.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { Project, waitingLog } from './server.mjs';

const project = new Project();
let [browser, page] = [];
const pay = (given) => ({ tool: 'pay', arguments: given });
const item = (text) => page.locator('.decide').filter({ has: page.locator('h2, .fields', { hasText: text }) });
/** The start of a sentence, and its rest, which has every shortcut of every view. */
const [START, REST] = ['Not ', 'a good great gift: ask Kim [x5] in 1/2 of 3 dogwood songs 4 cups, by joy and zeal; explain to New York why? 10 gb of gcm or gpt in Paris'];
const decided = async (run) => {
  const { items } = await page.evaluate(async (id) => (await fetch(`/api/v1/runs/${id}/events`)).json(), run);
  return items.filter(({ type }) => type.endsWith('_DECIDED')).map(({ path, decision }) => `${path} ${decision}`);
};
/** Asserts that the keys that were typed have done nothing. */
async function isUntouched(address) {
  const { origin, pathname } = new URL(page.url());
  assert.equal(`${origin}${pathname}`, address.split('?')[0]);
  assert.equal(await page.locator('dialog[open]').count(), 0);
  assert.equal(await page.locator('.decide [aria-pressed=true], .bulk').count(), 0);
}
/** Loads another view as the page does by itself, such as after an answer of the server. */
const replaceView = (path) => page.evaluate((to) => {
  history.pushState(null, '', `/ui${to}`);
  dispatchEvent(new PopStateEvent('popstate'));
}, path);

before(async () => {
  project.import(waitingLog('typed', { calls: ['Ann', 'Bob', 'Cas'].map((to) => pay({ to })) }));
  project.import(waitingLog('paged', { calls: ['Dee', 'Eve', 'Fay'].map((to) => pay({ to })) }));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'));
});
after(async () => { await browser?.close(); await project.close(); });

test('the sentence of these tests has every shortcut of every view', async () => {
  for (const [path, ready] of [['/runs', '.run-row'], ['/inbox', '.decide'], ['/runs/typed', '.decide'], ['/runs/typed/events', '.event-row'], ['/runs/typed/state', '.scrub'],
    ['/runs/typed/waterfall', '.bar-row'], ['/runs/typed/requests', '.requests'], ['/schedules', 'h1'], ['/overview', 'h1'], ['/conversations', 'h1'], ['/playground', 'h1']]) {
    await page.to(path, ready);
    await page.keyboard.press('?');
    const keys = await page.locator('dialog .keys dt').evaluateAll((all) => all.map((dt) => [...dt.querySelectorAll('kbd')].map((kbd) => kbd.textContent).join('')));
    assert.ok(keys.length > 5, path);
    for (const key of keys) if (!/^(Ctrl|↵|esc|[←→↑↓]|End|Home|Arrow)/.test(key)) assert.ok(`${START}${REST}`.includes(key), `${key} of ${path}`);
    await page.keyboard.press('Escape');
  }
});

test('an item that is decided while a person types the reason stays with it, and no key acts', async () => {
  await page.to('/inbox', '.decide');
  const address = page.url();
  await item('Ann').getByRole('button', { name: 'Reject…' }).click();
  await item('Ann').getByLabel('Reason').and(page.locator(':focus')).waitFor();
  await page.keyboard.type(START);
  project.command('approve', 'typed', 'Chat/0.0');
  await item('Ann').locator('.note.lost').waitFor();
  await page.keyboard.type(REST);
  await eventually(async () => assert.match(await item('Ann').locator('.note.lost').innerText(), / approved this[\s\S]*Your draft was not sent/));
  await eventually(async () => assert.equal(await item('Ann').getByLabel('Reason').inputValue(), START + REST));
  await eventually(async () => assert.equal(await item('Ann').getByRole('button', { name: /Approve|Reject/ }).count(), 0));
  await page.keyboard.press('Control+Enter');
  await isUntouched(address);
  assert.deepEqual(await decided('typed'), ['Chat/0.0 approved']);
  assert.deepEqual(await decided('paged'), []);
  await accessible(page, 'an item that was decided elsewhere');

  // It stays while the person looks elsewhere, until it is dismissed.
  await page.getByRole('link', { name: 'Schedules' }).click();
  await page.getByRole('heading', { name: 'Schedules' }).waitFor();
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: /^Inbox/ }).click();
  await item('Ann').locator('.note.lost').waitFor();
  await eventually(async () => assert.equal(await item('Ann').getByLabel('Reason').inputValue(), START + REST));
  const dismiss = item('Ann').getByRole('button', { name: 'Dismiss' });
  await dismiss.and(page.locator(':not([aria-disabled])')).click();
  await item('Ann').waitFor({ state: 'detached' });
  // The person's own click has removed the focus, so that keys act.
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await page.keyboard.press('Escape');
  page.check();
});

test('an item of a run page that is decided while a person types stays with the draft', async () => {
  await page.to('/runs/paged', '.decide');
  const address = page.url();
  await item('Dee').getByRole('button', { name: 'Reject…' }).click();
  await item('Dee').getByLabel('Reason').and(page.locator(':focus')).waitFor();
  await page.keyboard.type(START);
  project.command('reject', 'paged', 'Chat/0.0', '--reason', 'too late');
  await item('Dee').locator('.note.lost').waitFor();
  await page.keyboard.type(REST);
  await eventually(async () => assert.match(await item('Dee').locator('.note.lost').innerText(), /rejected this[\s\S]*too late/));
  await eventually(async () => assert.equal(await item('Dee').getByLabel('Reason').inputValue(), START + REST));
  await isUntouched(address);
  assert.deepEqual(await decided('paged'), ['Chat/0.0 rejected']);
});

test('an item without a draft leaves when it is decided elsewhere', async () => {
  await page.to('/inbox', '.decide');
  project.command('reject', 'paged', 'Chat/0.2');
  await item('Fay').waitFor({ state: 'detached' });
});

test('keys do nothing after a view was replaced while a person typed, until Escape, Tab or a click', async () => {
  for (const revive of [() => page.keyboard.press('Escape'), () => page.keyboard.press('Tab'), () => page.locator('h1').click()]) {
    await page.to('/runs/typed', '.decide');
    await page.keyboard.press('/');
    await page.getByRole('searchbox', { name: 'Search this run' }).and(page.locator(':focus')).waitFor();
    await page.keyboard.type('Not');
    await replaceView('/inbox');
    await page.locator('.decide').first().waitFor();
    const address = page.url();
    await page.keyboard.type(REST);
    await isUntouched(address);
    await page.getByText('keys are off:').waitFor();
    await accessible(page, 'a page whose keys are off');
    await revive();
    await page.getByText('keys are off:').waitFor({ state: 'detached' });
    await eventually(async () => assert.equal(page.url(), address, 'what revives the keys does nothing else'));
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
  }
  assert.deepEqual([...await decided('typed'), ...await decided('paged')].length, 3);
});

test('keys do nothing after a field of a run page was taken away', async () => {
  await page.to('/runs/typed', '.decide');
  await page.keyboard.press('/');
  await page.getByRole('searchbox', { name: 'Search this run' }).and(page.locator(':focus')).waitFor();
  await page.keyboard.type('Not');
  await replaceView('/runs/typed/events');
  await page.locator('.event-row').first().waitFor();
  const address = page.url();
  await page.keyboard.type(REST);
  await page.keyboard.press('Enter');
  await isUntouched(address);
});

test('keys do nothing after the focused row of a list has gone', async () => {
  project.import(waitingLog('leaving', { calls: [pay({ to: 'Gus' })] }));
  await page.to('/runs?needs=decision', '.run-row');
  const address = page.url();
  const box = page.locator('.run-row', { hasText: 'leaving' }).getByRole('checkbox');
  await box.focus();
  project.command('cancel', 'leaving');
  await box.waitFor({ state: 'detached' });
  await page.keyboard.type(REST);
  await page.keyboard.press('Enter');
  await isUntouched(address);
});

test('keys do nothing after a dialog was closed while a person typed in it', async () => {
  await page.to('/runs/typed', '.decide');
  let answer;
  const sent = new Promise((asked) => { page.route('**/signals', (route) => { asked(); answer = () => route.fulfill({ status: 200, json: { seqs: [] } }); }); });
  await page.locator('summary[title=Actions]').click();
  await page.getByRole('button', { name: 'Send a message…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Send a message' });
  await dialog.getByLabel('text').fill('Do it.');
  await dialog.getByRole('button', { name: 'Send' }).click();
  await sent;
  // The person has more to say before the answer comes.
  await dialog.getByLabel('text').click();
  await page.keyboard.type(START);
  const address = page.url();
  await answer();
  await dialog.waitFor({ state: 'detached' });
  await page.keyboard.type(REST);
  await isUntouched(address);
  await page.unroute('**/signals');
});

test('keys act after a dialog that a person has sent, and after a control that a press has removed', async () => {
  await page.to('/runs/typed', '.decide');
  await page.route('**/signals', (route) => route.fulfill({ status: 200, json: { seqs: [] } }));
  await page.locator('summary[title=Actions]').click();
  await page.getByRole('button', { name: 'Send a message…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Send a message' });
  await dialog.getByLabel('text').fill('Do it.');
  await dialog.getByRole('button', { name: 'Send' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.keyboard.press('3');
  await page.locator('.event-row').first().click();
  await page.locator('.detail').getByRole('button', { name: 'Close' }).click();
  await page.locator('.detail').waitFor({ state: 'detached' });
  await page.keyboard.press('1');
  await page.locator('.decide').first().waitFor();
  // A link that leaves with the tab that it is on, which loads for some time.
  await page.route('**/views/state.js', async (route) => {
    await page.evaluate(() => [1, 2, 3].reduce((before) => before.then(() => new Promise(requestAnimationFrame)), Promise.resolve())).catch(() => {}); // The page may be left meanwhile.
    return route.fallback();
  });
  await page.to('/runs/typed/events/5', '.detail h2');
  await page.getByRole('link', { name: 'State here' }).click();
  await page.locator('.scrub').waitFor();
  await page.keyboard.press('1');
  // The call is decided, and its details are beside the transcript.
  await page.getByRole('complementary', { name: 'Details' }).waitFor();
  await eventually(async () => {
    await page.keyboard.press('d');
    assert.ok(await page.locator('.decide:focus').count());
  });
  await page.unrouteAll({ behavior: 'ignoreErrors' });

  // A decision by a click, and by a key in the field of the reason.
  await page.to('/inbox', '.decide');
  project.import(waitingLog('own', { calls: [pay({ to: 'Hal' }), pay({ to: 'Ida' })] }));
  await item('Hal').getByRole('button', { name: 'Approve' }).and(page.locator(':not([aria-disabled])')).click();
  await item('Hal').waitFor({ state: 'detached' });
  await item('Ida').getByRole('button', { name: 'Reject…' }).and(page.locator(':not([aria-disabled])')).click();
  await item('Ida').getByLabel('Reason').fill('No.');
  await item('Ida').getByRole('button', { name: 'Reject', exact: true }).and(page.locator(':not([aria-disabled])')).waitFor();
  await page.keyboard.press('Control+Enter');
  await item('Ida').waitFor({ state: 'detached' });
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  page.check();
});
