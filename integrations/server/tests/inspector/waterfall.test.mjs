// The waterfall of a failed run: it opens at the failure, and can show what has failed only.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { Project, refusedLog, waitingLog } from './server.mjs';

const project = new Project();
let [browser, page] = [];

before(async () => {
  project.import(refusedLog('refused', 'I look.'));
  project.import(waitingLog('asking', { calls: [{ tool: 'pay', arguments: { amount: 1 } }] }));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'), { viewport: { width: 1440, height: 900 } });
});
after(async () => { await browser?.close(); await project.close(); });

test('a failed run opens with its failure below the bars, where there is room', async () => {
  await page.to('/runs/refused/waterfall', '.beside.dock');
  await page.locator('.bar-row.selected', { hasText: 'model, 3 attempts' }).waitFor();
  await eventually(async () => assert.match(await page.locator('.beside.dock').innerText(), /Answer of iteration 3[\s\S]*Rate limit reached/));
  await accessible(page, 'a waterfall with its dock');
  await page.keyboard.press('Escape');
  await page.locator('.beside.dock').waitFor({ state: 'detached' });
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.to('/runs/refused/waterfall', '.bar-row');
  await eventually(async () => assert.equal(await page.locator('.bar-row').count(), 8));
  assert.equal(await page.locator('.bar-row.selected, .dock').count(), 0);
  page.check();
});

test('“Failed only” leaves what has failed and what it is in', async () => {
  await page.to('/runs/refused/waterfall', '.bar-row');
  const button = page.getByRole('button', { name: 'Failed only' });
  await button.click();
  await eventually(async () => assert.deepEqual(await page.locator('.bar-row .cut').allInnerTexts(), ['Chat', 'model, 3 attempts']));
  assert.equal(await button.getAttribute('aria-pressed'), 'true');
  await button.click();
  await eventually(async () => assert.equal(await page.locator('.bar-row').count(), 8));
  page.check();
});

test('a run that waits has the time of its wait, folded to a notch that says how long', async () => {
  await page.to('/runs/asking/waterfall', '.bar-row');
  await page.locator('.bar-row', { hasText: 'pay' }).locator('.seg.person').waitFor();
  await eventually(async () => assert.match(await page.locator('.legend').innerText(), /a person decides/));
  await eventually(async () => assert.match(await page.locator('.bar-row', { hasText: 'pay' }).locator('.bar-time').innerText(), /\d d/));
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await eventually(async () => assert.ok(await page.locator('.gap').last().evaluate((notch) => notch.scrollWidth <= notch.clientWidth + 1), `the length has room at ${width}`));
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  page.check();
});

test('a drag that ends outside of the bars leaves no zoom and no selection', async () => {
  await page.to('/runs/refused/waterfall', '.bar-row');
  const lane = await page.locator('.axis .lane').boundingBox();
  const whole = page.getByRole('button', { name: 'Show the whole time' });
  await page.mouse.move(lane.x + 100, lane.y + 60);
  await page.mouse.down();
  await page.mouse.move(lane.x + 200, lane.y + 60);
  await page.locator('.back .selection').waitFor();
  await page.mouse.move(60, 500);
  await page.mouse.up();
  await page.mouse.move(lane.x + 300, lane.y + 60);
  await page.locator('.back .selection').waitFor({ state: 'detached' });
  assert.equal(await whole.count(), 0);
  page.check();
});
