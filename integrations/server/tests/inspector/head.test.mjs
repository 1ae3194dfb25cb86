// The head of a run: what continues a paused one, its menu, what an interrupted wait says, and one rule for costs.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { endedLog, pricedLog, Project, waitingLog } from './server.mjs';

const project = new Project();
let [browser, page] = [];
const text = async (locator) => (await locator.innerText()).replace(/\s+/g, ' ').trim();
const sees = (locator, words) => eventually(async () => assert.match(await text(locator), words));
const head = () => page.locator('.run-head');
const row = (id) => page.locator('.run-row', { has: page.locator(`.mono[title="${id}"]`) });
const fact = (name) => page.locator('.run-head .facts > div', { has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) }).locator('dd');

before(async () => {
  project.import(waitingLog('asking', { calls: [{ tool: 'pay', arguments: { amount: 1 } }] }));
  project.import(endedLog('over', { type: 'BRAIN_COMPLETE', result: 'All is well.' }));
  project.import(pricedLog('late', [{ model: 'later', input: 999 }, { model: 'later', input: 999 }]));
  project.import(pricedLog('partly', [{ model: 'later', amount: '0.5', input: 999 }, { model: 'later', input: 999 }]));
  project.import(pricedLog('dearer', [{ model: 'later', amount: '0.5', input: 999 }]));
  project.import(pricedLog('nowhere', [{ model: 'unheard-of', input: 999 }]));
  assert.throws(() => project.command('run', 'warranty', '--ask', '--id', 'claim'), /Sign off/);
  project.command('cancel', 'claim');
  const prices = join(project.folder, 'prices.toml');
  writeFileSync(prices, 'as_of = "2026-11-01"\ncurrency = "USD"\n[prices]\n"acme/later" = { input = 250, output = 250 }\n');
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work', '--prices', prices), { viewport: { width: 1440, height: 900 } });
});
after(async () => { await browser?.close(); await project.close(); });

test('a paused run has one main action, which resumes it', async () => {
  await page.to('/runs/asking', '.decide');
  await page.locator('summary[title=Actions]').click();
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  const resume = head().getByRole('button', { name: 'Resume', exact: true }).and(page.locator('.primary'));
  await resume.waitFor();
  await sees(head(), /Paused/);
  assert.equal(await head().locator('.primary').count(), 1);
  await accessible(page, 'a paused run');
  await resume.click();
  await resume.waitFor({ state: 'detached' });
  await sees(head(), /Waits for you/);
  await head().getByRole('button', { name: /^Decide/ }).waitFor();
  page.check();
});

test('the menu of a run has what can be done before what cannot, with each reason once', async () => {
  await page.to('/runs/over', '.run-head h1');
  await page.locator('summary[title=Actions]').click();
  const items = page.locator('details.menu[open] li');
  await eventually(async () => assert.deepEqual(await items.locator('button, a').evaluateAll((all) => all.map((one) => `${one.textContent.trim()}${one.disabled ? ' off' : ''}`)),
    ['Fork…', 'Rerun from a stage…', 'Copy id', 'Copy link', 'Events as JSON', 'Pause off', 'Resume off', 'Send a message… off', 'Cancel… off']));
  assert.deepEqual(await items.locator('small').allInnerTexts(), ['The run has ended and accepts no more signals']);
  await accessible(page, 'the menu of a run');
  await page.locator('#main').click({ position: { x: 400, y: 500 } });
  await page.locator('details.menu[open]').waitFor({ state: 'detached' });
  page.check();
});

test('a wait that was interrupted says from when on it waited, and not that it waits', async () => {
  await page.to('/runs/claim', '.row');
  const line = page.locator('.row.stage .event-line', { hasText: 'broken: the seal of the handle' });
  await sees(line, /^waited for c-7: broken: the seal of the handle\. Refund\? from \d\d:\d\d:\d\d on, until it was interrupted$/);
  await sees(head(), /Cancelled by/);
  await accessible(page, 'a run that was cancelled while it waited');
  page.check();
});

test('the list and the page say the same cost: what was counted when the run ran, and beside it what it is worth today', async () => {
  await page.to('/runs?brain=Priced', '.run-row');
  const costs = { late: 'unknown', partly: '≥ $0.5000', dearer: '$0.5000', nowhere: 'unknown' };
  for (const [id, cost] of Object.entries(costs)) await eventually(async () => assert.equal(await row(id).locator('.c-cost').innerText(), cost, id));
  const today = { late: ' when it ran, ≈ $0.5000 by the prices of today', partly: ' when it ran, ≈ $0.7500 by the prices of today', dearer: '', nowhere: '' };
  for (const [id, cost] of Object.entries(costs)) {
    await page.to(`/runs/${id}`, '.row.answer');
    await eventually(async () => assert.equal(await text(fact('cost')), cost + today[id], id));
  }
  await page.to('/runs/partly', '.row.answer');
  await eventually(async () => assert.deepEqual(await page.locator('.row.answer .fig').evaluateAll((all) => all.map(({ children: [, cost] }) => cost.textContent)), ['$0.5000', '≈ $0.2500'], 'what was counted stays'));
  await sees(page.locator('.row.stage .fig'), /≈ \$0\.7500/);
  await page.locator('.row.answer').last().click();
  await sees(page.locator('.beside.pane .figures'), /≈ \$0\.2500 cost, estimated/);
  await accessible(page, 'an estimated cost');
  page.check();
});
