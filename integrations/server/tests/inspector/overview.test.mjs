// The start page: whether all is well, its figures and charts, and the lists behind them, by mouse and by keyboard.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { Project, waitingLog } from './server.mjs';

const [project, bare] = [new Project(), new Project()];
let [browser, page] = [];
const tile = (name) => page.locator('.tile').filter({ has: page.getByRole('heading', { name, exact: true }) });
const figure = async (name) => (await tile(name).locator('.figure b').innerText()).trim();

/** The log of a run of today that failed, each with another number in its message. */
function failedLog(run, order) {
  const at = Date.now() * 1000 - 60_000_000;
  const lines = [
    { seq: 0, at, type: 'BRAIN_START', title: 'Shop', fingerprint: '0'.repeat(32), stages: [{ name: 'Load', kind: 'step' }], options: {} },
    { seq: 1, at: at + 1000, path: 'Load', type: 'STEP_START' },
    { seq: 2, at: at + 2000, type: 'BRAIN_ERROR', code: 'step', message: `the step \`Load\` failed: the stock has no order ${order} (HTTP 404)` },
  ];
  return [{ positronic_run: 1, run, brain: 'Shop', events: lines.length }, ...lines].map((line) => JSON.stringify(line));
}

before(async () => {
  project.command('run', 'support');
  for (const order of [4711, 815]) project.import(failedLog(`failed-${order}`, order));
  project.import(waitingLog('till', { calls: [{ tool: 'pay', arguments: { amount: 1 } }, { tool: 'pay', arguments: { amount: 2 } }] }));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'));
});
after(async () => { await browser?.close(); await project.close(); await bare.close(); });

test('the page begins with what is wrong, and since when', async () => {
  await page.locator('.tile').first().waitFor();
  await eventually(async () => assert.equal(await page.locator('h1').innerText(), 'Overview'));
  const notes = await page.locator('.notes > *').allInnerTexts();
  assert.equal(notes.length, 2);
  assert.match(notes[0], /^Shop failed 2 times since .*\d\d:\d\d: the stock has no order … \(HTTP 404\)\.\s+2 runs$/);
  assert.match(notes[1], /^2 decisions wait, the oldest for \d+ .+\.\s+Inbox$/);
  await eventually(async () => assert.equal(await page.title(), '(2) Overview · Positronic'));
  await eventually(async () => assert.match(await page.locator('link[rel=icon]').getAttribute('href'), /icon-waits\.svg$/));
  await accessible(page, 'the overview');
  page.check();
});

test('figures are those of the lists that they lead to', async () => {
  await page.to('/overview', '.tile');
  assert.deepEqual([await figure('Runs'), await figure('Failed'), await figure('Waiting for a person')], ['3', '2', '2']);
  await tile('Failed').click();
  await page.locator('.run-row').nth(1).waitFor();
  await eventually(async () => assert.match(page.url(), /status=failed/));
  await eventually(async () => assert.equal(await page.locator('.run-row').count(), 2));
  await page.goBack();
  await page.locator('.note.failed').click();
  await page.locator('.run-row').nth(1).waitFor();
  await eventually(async () => assert.deepEqual(new Set(await page.locator('.run-row .c-brain a').allInnerTexts()), new Set(['Shop'])));
  await page.to('/overview', '.tile');
  await tile('Waiting for a person').click();
  await page.locator('.decide').first().waitFor();
});

test('each chart has a table of its values, which add up to its figure', async () => {
  await page.to('/overview', '.tile');
  const tables = page.locator('.chart table');
  await eventually(async () => assert.equal(await tables.count(), 6));
  const failed = await tile('Failed').locator('table td').allTextContents();
  assert.equal(failed.reduce((sum, text) => sum + Number(text), 0), 2);
  await eventually(async () => assert.equal(await tile('Failed').locator('tbody tr').count(), 48));
  await eventually(async () => assert.equal(await tile('Failed').locator('caption').textContent(), 'Failed, the last 24 h'));
  await eventually(async () => assert.ok(await tile('Runs').locator('rect.s1').count() >= 1));
  await eventually(async () => assert.equal(await page.locator('[style]').count(), 0, 'no element has an attribute that the policy forbids'));
});

test('runs that no worker continues are among what is wrong', async () => {
  await page.route('**/api/v1/overview*', async (route) => {
    const response = await route.fetch();
    const all = await response.json();
    await route.fulfill({ response, json: { ...all, queue: { ...all.queue, stuck: [{ brain: 'Shop', reason: 'no_model', runs: 2 }] } } });
  });
  await page.to('/overview', '.tile');
  await eventually(async () => assert.match(await page.locator('.notes > *').first().innerText(), /^2 runs stuck: no worker has a model for the brain Shop\./));
  await eventually(async () => assert.equal(await page.locator('.notes > *').count(), 3));
  await eventually(async () => assert.match(await page.locator('.notes > *').last().innerText(), /decisions? waits?, /, 'what waits gives way to nothing'));
  await page.unroute('**/api/v1/overview*');
});

test('a cause of one run has its message with what is masked in others', async () => {
  await page.route('**/api/v1/overview*', async (route) => {
    const response = await route.fetch();
    const all = await response.json();
    await route.fulfill({ response, json: { ...all, causes: all.causes.map((cause) => ({ ...cause, runs: 1 })) } });
  });
  await page.to('/overview', '.tile');
  await eventually(async () => assert.match(await page.locator('.flush').first().innerText(), /The stock has no order (4711|815) \(HTTP 404\)/));
  await eventually(async () => assert.match(await page.locator('.notes > *').first().innerText(), /no order (4711|815)/));
  await page.unroute('**/api/v1/overview*');
});

test('the list of brains says how each has fared', async () => {
  await page.to('/brains', 'nav.whole a');
  await eventually(async () => assert.match(await page.locator('nav.whole a', { hasText: 'Support' }).innerText(), /1 run ended · .*last good .*\d\d:\d\d$/));
  await accessible(page, 'the list of brains');
  // Its page has the same number beside those that have started.
  await page.locator('nav.whole a', { hasText: 'Support' }).click();
  await eventually(async () => assert.match(await page.locator('.brain-figures').innerText(), /started in 30 days, 1 ended/));
});

test('a step that made its run fail says why in its place', async () => {
  await page.to('/runs/failed-815', '.run-head h1');
  await eventually(async () => assert.match(await page.locator('.row .error-box').innerText(), /^The stock has no order 815 \(HTTP 404\)/));
  await accessible(page, 'a run with a failed step');
});

test('causes, the queue and brains have their own tables', async () => {
  await page.to('/overview', '.tile');
  const [causes, queue, brains] = await page.locator('.flush').allInnerTexts();
  assert.match(causes, /The stock has no order … \(HTTP 404\)\s+Shop\s+2/);
  assert.match(queue, /Nothing to do|Runs are worked on/);
  assert.match(queue, /no run waits for a worker/);
  assert.match(brains, /Shop\s+2\s+100 %/);
  assert.match(brains, /Support\s+1\s+0 %/);
  await page.getByRole('link', { name: 'Shop', exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll('[aria-label="By brain"] tbody tr').length === 1);
  await eventually(async () => assert.match(page.url(), /\/overview\?brain=Shop/));
  await eventually(async () => assert.equal(await figure('Runs'), '2'));
});

test('keys open the page and change the range, and tiles are links', async () => {
  await page.to('/runs', '.run-row');
  await page.keyboard.press('g');
  await page.keyboard.press('o');
  await page.locator('.tile').first().waitFor();
  await page.keyboard.press('3');
  await page.waitForURL(/range=7d/);
  await page.locator('.tile caption', { hasText: 'Runs, the last 7 days' }).waitFor({ state: 'attached' });
  await eventually(async () => assert.equal(await page.locator('.views [aria-current=true]').innerText(), '7 days'));
  await accessible(page, 'the overview of a week');
  await page.getByRole('link', { name: 'Failed', exact: true }).focus();
  await page.keyboard.press('Enter');
  await page.locator('.run-row').nth(1).waitFor();
  await page.goBack();
  await page.locator('.tile').first().waitFor();
  await eventually(async () => assert.match(page.url(), /range=7d/));
});

test('the page follows what happens', async () => {
  await page.to('/overview', '.tile');
  project.import(failedLog('failed-9', 9));
  await page.waitForFunction(() => [...document.querySelectorAll('.tile')].some((one) => /^Failed\s+3/.test(one.innerText)), null, { timeout: 15_000 });
});

test('a cause with quotes leads to its runs', async () => {
  project.import(failedLog('quoted', '"A-1" of "Bea"'));
  await page.to('/overview', '.tile');
  await page.locator('.flush a.name', { hasText: 'Bea' }).click({ timeout: 15_000 });
  await page.locator('.run-row').first().waitFor();
  await eventually(async () => assert.equal(await page.locator('.run-row').count(), 1));
  assert.match(decodeURIComponent(page.url()), /"Bea"/);
});

test('a narrow window has all of it, without scrolling sideways', async () => {
  for (const width of [390, 900]) {
    await page.setViewportSize({ width, height: 844 });
    await page.to('/overview', '.tile');
    const [wide, seen] = await page.evaluate(() => [document.getElementById('main').scrollWidth, document.getElementById('main').clientWidth]);
    assert.ok(wide <= seen, `${wide} in ${seen}`);
    await accessible(page, `the overview at ${width} px`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  page.check();
});

test('a store without runs offers to start one', async () => {
  const empty = await open(browser, await bare.serve());
  await empty.getByText('No runs in the last 24 h').waitFor();
  await accessible(empty, 'the empty overview');
  await empty.locator('#main').getByRole('link', { name: 'Start a run' }).click();
  await empty.waitForURL(/\/brains/);
  empty.check();
});
