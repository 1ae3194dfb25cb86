// Stages beside steps, loops and brains: what they show, and a form that a person fills in.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { Project } from './server.mjs';

const project = new Project();
let [browser, page] = [];

before(async () => {
  // It ends with the exit code of a run that waits.
  assert.throws(() => project.command('run', 'warranty', '--ask', '--id', 'claim'), /Sign off/);
  browser = await launch();
  page = await open(browser, await project.serve());
});
after(async () => { await browser?.close(); await project.close(); });

test('a form is filled in where a person decides, and the run goes on', async () => {
  await page.to('/inbox', '.decide.selected');
  const form = page.locator('.decide.selected');
  await eventually(async () => assert.match(await form.innerText(), /c-7: broken: the seal of the handle\. Refund\?/));
  await accessible(page, 'a form');
  await form.getByLabel('Comment').fill('Sorry.');
  await form.getByLabel('refund').check();
  await form.getByRole('button', { name: 'Send answer' }).click();
  await form.waitFor({ state: 'detached' });
  await page.to('/runs/claim');
  await page.getByText('waits for bank c-7').waitFor();
  page.check();
});

test('the page of a run names the arm, and what a stage waited for', async () => {
  await page.to('/runs/claim');
  await page.getByText('branch → Diagnosis').waitFor();
  await page.getByText(/waited .* for c-7: broken: the seal of the handle\. Refund\?/).waitFor();
  await accessible(page, 'a run with stages');
  page.check();
});

test('a guard that does not pass is shown with its reason', async () => {
  project.command('run', 'warranty', '--id', 'old', '-o', 'months=30');
  await page.to('/runs/old');
  await page.getByText('did not pass: the rest is skipped').waitFor();
  await eventually(async () => assert.match(await page.locator('main').innerText(), /TooOld/));
  await accessible(page, 'a run that a guard has ended');
  page.check();
});

test('a question of a stage is answered in its run, on a phone too: no pane covers the form', async () => {
  assert.throws(() => project.command('run', 'warranty', '--ask', '--id', 'phone'), /Sign off/);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.to('/runs/phone', '.row');
  await page.getByRole('button', { name: 'Decide' }).click();
  const form = page.locator('.row .decide');
  await form.waitFor();
  await eventually(async () => assert.equal(await page.locator('.beside.pane').count(), 0));
  await accessible(page, 'a question in a run on a phone');
  await form.getByLabel('Comment').fill('Sorry.');
  await form.getByLabel('refund').check();
  await form.getByRole('button', { name: 'Send answer' }).click();
  await form.waitFor({ state: 'detached' });
  // What was asked and answered is read in words.
  await page.locator('.row.stage', { hasText: 'Sign off' }).click();
  await eventually(async () => assert.match(await page.locator('.beside.pane').innerText(), /Waited for[\s\S]*the seal of the handle\. Refund\?[\s\S]*Answered[\s\S]*Sorry\./));
  await page.setViewportSize({ width: 1280, height: 900 });
  page.check();
});
