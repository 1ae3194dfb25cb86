// Two runs side by side, a fork beside its origin, and what a list says of its search.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { Project, refusedLog, waitingLog } from './server.mjs';

const project = new Project();
let [browser, page] = [];

before(async () => {
  project.import(refusedLog('one', 'The order is on its way.'));
  project.import(refusedLog('two', 'The order is late.'));
  for (const [run, amount] of [['large', 249], ['small', 120]]) project.import(waitingLog(run, { calls: [{ tool: 'refund', arguments: { amount, order: 'A-1' } }] }));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'));
});
after(async () => { await browser?.close(); await project.close(); });

const differs = () => page.locator('table.sides').innerText().then((text) => text.replace(/\s+/g, ' '));

test('the first difference shows the fields that differ, side by side', async () => {
  await page.to('/diff?a=large&b=small', '.sides');
  await eventually(async () => assert.equal(await differs(), 'Field A, event 5 B, event 5 arguments › amount 249 120'));
  await accessible(page, 'the comparison of two runs');
  await page.to('/diff?a=one&b=two', '.sides');
  await eventually(async () => assert.equal(await differs(), 'Field A, event 4 B, event 4 parts › 0 › text The order is on its way. The order is late.'));
  await eventually(async () => assert.deepEqual(await page.locator('.sides :is(del, ins)').allInnerTexts(), ['on its way.', 'late.']));
});

test('a search counts the runs that match it, and an empty one says what was searched', async () => {
  await page.to('/runs?status=failed', '.run-row');
  await eventually(async () => assert.match(await page.locator('.counts').innerText(), /^2 runs/));
  await page.to('/runs?status=running', '.empty');
  await eventually(async () => assert.match(await page.locator('.counts').innerText(), /^0 runs/));
  await eventually(async () => assert.match(await page.locator('.empty').innerText(), /No run matches status:running/));
  await page.getByRole('link', { name: 'Clear the search' }).click();
  await page.locator('.run-row').first().waitFor();
  await eventually(async () => assert.match(await page.locator('.counts').innerText(), /^4 runs/));
  page.check();
});

test('a fork names one event, and says what it repeats while its prompt changes', async () => {
  await page.to('/fork/one/12', '.send-line');
  await eventually(async () => assert.match(await page.locator('.send-line').innerText(), /Repeats|no effect/));
  const shared = await page.locator('.try-form a', { hasText: /^event \d+$/ }).innerText();
  assert.match(shared, /^event \d+$/);
  page.check();
});
