// Deciding by keys on the page of a run: a key says which item it is for before it decides it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { Project, waitingLog } from './server.mjs';

const project = new Project();
let [browser, page] = [];
const card = (to) => page.locator('.decide', { hasText: to });
const decisions = () => page.evaluate(async () => (await (await fetch('/api/v1/runs/two/events?type=LOOP_APPROVAL_DECIDED&limit=9')).json()).items.length);

before(async () => {
  project.import(waitingLog('two', { calls: ['Jo', 'Ann'].map((to) => ({ tool: 'pay', arguments: { to } })) }));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'), { viewport: { width: 1440, height: 900 } });
});
after(async () => { await browser?.close(); await project.close(); });

test('the first key goes to the item and shows its keys, a second one decides it, and the focus goes on to the next', async () => {
  await page.to('/runs/two', '.decide .primary:not([aria-disabled])');
  await page.keyboard.press('a');
  await card('Jo').and(page.locator(':focus')).waitFor();
  await eventually(async () => assert.match(await card('Jo').locator('.item-keys').innerText(), /A approves\s+R rejects\s+E edits/));
  await eventually(async () => assert.equal(await card('Ann').locator('.item-keys').isVisible(), false));
  await accessible(page, 'an item of a run that has the focus');
  assert.equal(await decisions(), 0);
  await card('Jo').locator('.primary:not([aria-disabled])').waitFor();
  await page.keyboard.press('a');
  await card('Ann').and(page.locator(':focus')).waitFor();
  await page.keyboard.press('a');
  await eventually(async () => assert.equal(await decisions(), 1, 'a key that is pressed twice decides one item'));
  await card('Jo').waitFor({ state: 'detached' });
  await card('Ann').and(page.locator(':focus')).waitFor();
  await card('Ann').locator('.primary:not([aria-disabled])').waitFor();
  await page.keyboard.press('a');
  await eventually(async () => assert.equal(await decisions(), 2));
  await eventually(async () => assert.equal(await page.evaluate(() => document.activeElement.id), 'main', 'the focus stays on the run'));
  page.check();
});

test('a key acts on what was shown when it was pressed, also if the item leaves at that moment', async () => {
  project.import(waitingLog('third', { calls: [{ tool: 'pay', arguments: { to: 'Lee' } }] }));
  await page.to('/runs/third', '.decide .primary:not([aria-disabled])');
  await page.keyboard.press('a');
  await card('Lee').and(page.locator(':focus')).waitFor();
  await card('Lee').locator('.primary:not([aria-disabled])').waitFor();
  // Right after the key, nothing finds the item any more.
  await page.evaluate(() => {
    const node = document.activeElement;
    node.dispatchEvent(new KeyboardEvent('keydown', { key: 'a', bubbles: true, cancelable: true }));
    node.removeAttribute('id');
  });
  await eventually(async () => assert.equal(await page.evaluate(async () => (await (await fetch('/api/v1/runs/third/events?type=LOOP_APPROVAL_DECIDED&limit=9')).json()).items.length), 1));
  page.check();
});
