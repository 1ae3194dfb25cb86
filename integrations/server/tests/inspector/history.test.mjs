// The browser's history: what opens on a page is closed by Back, and moving from one selection to another is no step.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually, launch, open } from './browser.mjs';
import { Project, refusedLog } from './server.mjs';

const project = new Project();
let [browser, page] = [];

before(async () => {
  project.import(refusedLog('refused', 'Let me see.'));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'));
});
after(async () => { await browser?.close(); await project.close(); });

const at = (path) => eventually(async () => assert.equal(new URL(page.url()).pathname, `/ui/runs${path}`));
const pane = () => page.locator('.beside.pane');
const answer = (n) => page.locator('.row.answer').nth(n);

test('Back closes the pane, and then leaves the run', async () => {
  await page.to('/runs', '.run-row');
  await page.locator('.run-row').click();
  await answer(0).click();
  await at('/refused/transcript/3');
  await answer(1).click();
  await at('/refused/transcript/9');
  await page.goBack();
  await pane().waitFor({ state: 'detached' });
  await at('/refused');
  await page.goForward();
  await pane().waitFor();
  await at('/refused/transcript/9');
  await page.goBack();
  await pane().waitFor({ state: 'detached' });
  await page.goBack();
  await at('');
});

test('Escape closes the pane as Back does, also after a reload', async () => {
  await page.to('/runs', '.run-row');
  await page.locator('.run-row').click();
  await answer(0).click();
  await pane().waitFor();
  await page.reload();
  await pane().waitFor();
  await page.keyboard.press('Escape');
  await pane().waitFor({ state: 'detached' });
  await at('/refused');
  await page.goBack();
  await at('');

  // A page that has begun with a pane has no step to go back to.
  await page.to('/runs/refused/transcript/3', '.beside.pane');
  await page.keyboard.press('Escape');
  await pane().waitFor({ state: 'detached' });
  await at('/refused/transcript');
});

test('an event opens and closes in the same way, and a tab is a step', async () => {
  await page.to('/runs/refused/events', '.event-row');
  await page.locator('.event-row').nth(2).click();
  await at('/refused/events/2');
  await page.keyboard.press('j');
  await at('/refused/events/3');
  await page.keyboard.press('2');
  await page.locator('.bar-row').first().waitFor();
  await page.goBack();
  await page.locator('.detail').waitFor();
  await at('/refused/events/3');
  await page.goBack();
  await page.locator('.detail').waitFor({ state: 'detached' });
  await at('/refused/events');
  page.check();
});
