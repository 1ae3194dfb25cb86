// What was decided today, by whom; and a fork as a view, with what becomes different.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { Project, waitingLog } from './server.mjs';

const project = new Project();
let [browser, page, run] = [];

before(async () => {
  project.command('run', 'support');
  project.import(waitingLog('till', { calls: [{ tool: 'pay', arguments: { amount: 7 }, schema: { type: 'object', properties: { amount: { type: 'integer' } } } }, { tool: 'give', arguments: { amount: 8 } }] }));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'));
  await page.to('/runs', '.run-row');
  run = await page.evaluate(async () => (await (await fetch('/api/v1/runs?brain=Support')).json()).items[0].id);
});
after(async () => { await browser?.close(); await project.close(); });

test('the inbox lists what was decided today, with who did it and what they changed', async () => {
  await page.to('/inbox', '.decide');
  await eventually(async () => assert.match(await page.locator('.queue .decided').innerText(), /refund[\s\S]*the cassette/));
  const before = await page.locator('.queue .decided li').count();
  await page.evaluate(async () => {
    const { items } = await (await fetch('/api/v1/pending')).json();
    const body = items.map(({ run: of, id }, i) => (i ? { run: of, id, reject: true, reason: 'twice' } : { run: of, id, approve: true, arguments: { amount: 5 } }));
    await fetch('/api/v1/decisions', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  });
  await page.waitForFunction((n) => document.querySelectorAll('.queue .decided li').length === n, before + 2);
  await page.getByRole('button', { name: /Decided today/ }).click();
  const list = page.locator('.inbox .decided');
  await list.locator('li', { hasText: /pay amount: 7 5[\s\S]*approved as edited/ }).waitFor();
  await list.locator('li', { hasText: /rejected · Till till.*: “twice”/ }).waitFor();
  await eventually(async () => assert.deepEqual([await list.locator('del').innerText(), await list.locator('ins').innerText()], ['7', '5']));
  await accessible(page, 'what was decided today');
  await page.keyboard.press('a');
  await eventually(async () => assert.equal(await page.locator('.decide').count(), 0, 'nothing can be decided there'));
  await list.getByRole('link', { name: /twice/ }).click();
  await page.waitForURL(/\/runs\/till\/transcript\/\d+/);
});

test('a fork shows what becomes different, what happens again and what both runs share', async () => {
  await page.to(`/runs/${run}/transcript/23`, '.row.selected');
  await page.keyboard.press('f');
  await page.waitForURL(/\/fork\//);
  const prompt = page.getByLabel('System prompt');
  const before = await prompt.inputValue();
  await prompt.fill(`${before}\nNever refund more than the price.`);
  await eventually(async () => assert.deepEqual(await page.locator('.lines-diff .come').allInnerTexts(), ['+ Never refund more than the price.']));
  await eventually(async () => assert.equal(await page.locator('.lines-diff .out').count(), 0));
  await page.locator('.effects .tag', { hasText: /reach the world or a person/ }).waitFor();
  const stands = await page.locator('.shared-rows li a').allInnerTexts();
  assert.equal(stands.filter((text) => text === 'new from here').length, 1, stands.join());
  assert.equal(stands[0], 'shared');
  assert.equal(stands.at(-1), 'not shared');
  await accessible(page, 'the fork');
  await page.getByLabel('Model').fill('other-model');
  const sent = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/fork'));
  await page.getByRole('button', { name: 'Fork and run' }).click();
  const body = (await sent).postDataJSON();
  assert.deepEqual(Object.keys(body).sort(), ['at', 'model', 'system']);
  await page.getByText('forked from').waitFor();
  page.check();
});

test('an unchanged fork sends only its place, and the playground is beside it', async () => {
  await page.to(`/fork/${run}/23`, '.try-form');
  await page.getByRole('link', { name: 'Try the answer once' }).click();
  await page.waitForURL(/\/playground\//);
  await page.getByRole('link', { name: 'Fork the run' }).click();
  await page.waitForURL(/\/fork\//);
  const sent = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/fork'));
  await page.getByRole('button', { name: 'Fork and run' }).click();
  assert.deepEqual(Object.keys((await sent).postDataJSON()), ['at']);
  await page.getByText('forked from').waitFor();
});
