// What runs come to: the sum of all that a search finds, not only of those that are shown, and the figures of each model.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { pricedLog, Project } from './server.mjs';

const project = new Project();
let [browser, page] = [];
/** More than a page of the list. */
const RUNS = 53;

before(async () => {
  for (let i = 0; i < RUNS; i++) project.import(pricedLog(`priced-${i}`, i ? [{ model: 'small', amount: '0.25', input: 999 }] : [{ model: 'large', amount: '2', input: 1999 }]));
  browser = await launch();
  const prices = join(project.folder, 'prices.toml');
  writeFileSync(prices, 'as_of = "2026-11-01"\ncurrency = "USD"\n[prices]\n"acme/forked" = { input = 250, output = 250 }\n');
  page = await open(browser, await project.serve(0, '--no-work', '--prices', prices));
});
after(async () => { await browser?.close(); await project.close(); });

test('the list says what all of its runs have cost, also of those that are not shown', async () => {
  await page.to('/runs', '.run-row');
  await eventually(async () => assert.match(await page.locator('.counts').innerText(), /53 runs[\s\S]*53 completed\s+\$15\.00\s+54k tokens$/));
  await eventually(async () => assert.match(await page.locator('.more').innerText(), /Showing 50, there are more/));
  await page.to('/runs?model=large', '.run-row');
  await eventually(async () => assert.match(await page.locator('.counts').innerText(), /1 run\s+1 completed\s+\$2\.00\s+2,000 tokens$/));
  await accessible(page, 'the sum of a search');
});

test('a search that is too large to be summed says so', async () => {
  await page.route(/\/runs\/sums/, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...await answer.json(), capped: true } });
  });
  await page.to('/runs?q=well', '.run-row');
  await eventually(async () => assert.match(await page.locator('.counts').innerText(), /at least, in the first 53:\s+\$15\.00/));
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

test('the overview has the figures of each model, which lead to its runs', async () => {
  project.import(pricedLog('unpriced', [{ model: 'odd', input: 9 }, { model: 'small', amount: '0.05', input: 9 }]));
  await page.to('/overview', '.tile');
  const rows = page.getByRole('region', { name: 'By model' }).locator('tbody tr');
  await eventually(async () => assert.deepEqual((await rows.allInnerTexts()).map((text) => text.replace(/\s+/g, ' ').trim()),
    ['acme/small 53 52k $13.05 86.7 %', 'acme/large 1 2,000 $2.00 13.3 %', 'acme/odd 1 10 unknown 0 %']), Date.now() + 15_000);
  const cost = page.locator('.tile').filter({ has: page.getByRole('heading', { name: 'Cost', exact: true }) });
  await eventually(async () => assert.match(await cost.locator('.series').innerText(), /small\s*large/));
  await accessible(page, 'the figures of models');
  await rows.filter({ hasText: 'odd' }).getByRole('link', { name: '1', exact: true }).click();
  await page.waitForURL(/model=acme%2Fodd/);
  await eventually(async () => assert.deepEqual(await page.locator('.run-row .mono').allInnerTexts(), ['unpriced']));
  page.check();
});

test('the overview of one model has its runs, with the tokens and the cost of its answers', async () => {
  const tile = (name) => page.locator('.tile').filter({ has: page.getByRole('heading', { name, exact: true }) }).locator('.figure');
  await page.to('/overview', '.tile');
  await page.getByRole('combobox', { name: 'Model' }).selectOption('large');
  await page.waitForURL(/overview\?model=acme%2Flarge/);
  await eventually(async () => assert.deepEqual(await Promise.all(['Runs', 'Cost', 'Tokens'].map(async (name) => (await tile(name).locator('b').innerText()).trim())), ['1', '$2.00', '2,000']));
  // The others can still be chosen, also after a reload.
  await page.reload();
  await page.locator('.tile').first().waitFor();
  await page.getByRole('combobox', { name: 'Model' }).selectOption('small');
  await eventually(async () => assert.match(await tile('Runs').innerText(), /^53 ended/));
  await page.getByRole('link', { name: 'Runs', exact: true }).last().click();
  await page.waitForURL(/runs\?model=acme%2Fsmall/);
  await accessible(page, 'the runs of a model');
  page.check();
});

test('what a fork shares counts only in its origin, in the head, the list and the overview', async () => {
  const answers = [{ model: 'forked', amount: '0.25', input: 999 }, { model: 'forked', amount: '0.25', input: 999 }];
  project.import(pricedLog('origin', answers));
  project.import(pricedLog('shares', answers).map((line) => {
    const event = JSON.parse(line);
    return JSON.stringify(event.seq === 0 ? { ...event, start: { forked_from: ['origin', 7] } } : event);
  }));
  await page.to('/runs/shares', '.run-head h1');
  const fact = (name) => page.locator('.run-head .facts > div', { has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) }).locator('dd').innerText();
  await eventually(async () => assert.deepEqual([await fact('tokens'), await fact('cost'), await fact('shared, not paid again')], ['1,000', '$0.2500', '$0.2500']));
  await page.to('/runs?model=forked', '.run-row');
  await eventually(async () => assert.match(await page.locator('.counts').innerText(), /2 runs\s+2 completed\s+\$0\.7500\s+3,000 tokens$/));
  await page.to('/overview?model=acme%2Fforked', '.tile');
  await eventually(async () => assert.match(await page.locator('.tile').filter({ has: page.getByRole('heading', { name: 'Cost', exact: true }) }).locator('.figure').innerText(), /^\$0\.75(00)?\s+of ended runs · mean \$0\.3\d+ of 2 priced runs$/));
  page.check();
});
