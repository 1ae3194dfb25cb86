// The list of runs: suggestions of its search, hits that lead to their event, and sorting by columns.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { endedLog, Project, waitingLog } from './server.mjs';

const project = new Project();
let [browser, page] = [];
const field = () => page.getByRole('combobox', { name: 'Find runs' });
const option = (name) => page.getByRole('listbox', { name: 'Suggestions' }).getByRole('option', { name });
const ids = () => page.locator('.run-row .mono').evaluateAll((all) => all.map((one) => one.title));

before(async () => {
  project.command('run', 'support');
  project.command('run', 'agent loop', '--json');
  project.import(waitingLog('till', { calls: [{ tool: 'pay', arguments: { amount: 7 } }] }));
  project.import(endedLog('sum', { type: 'BRAIN_COMPLETE', result: 1 }));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'));
});
after(async () => { await browser?.close(); await project.close(); });

test('the search suggests keys, and after a key the values that are known', async () => {
  await page.to('/runs', '.run-row');
  await page.keyboard.press('/');
  await option(/^status:/).waitFor();
  await field().pressSequentially('stat');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Tab');
  await eventually(async () => assert.equal(await field().inputValue(), 'status:'));
  await option(/completed\s*3 runs/).waitFor();
  await accessible(page, 'the suggestions of the search');
  await field().pressSequentially('wai');
  await option(/waiting/).click();
  await eventually(async () => assert.equal(await field().inputValue(), 'status:waiting '));
  await field().pressSequentially('brain:t');
  await option('Till').waitFor();
  await field().pressSequentially('ill');
  await page.keyboard.press('Enter');
  await page.waitForURL(/status=waiting/);
  await page.waitForFunction(() => document.querySelectorAll('.run-row').length === 1);
  assert.deepEqual(await ids(), ['till']);
});

test('a brain is suggested by a part of its title, and Escape closes the menu first', async () => {
  await page.to('/runs', '.run-row');
  await field().click();
  await field().pressSequentially('supp');
  await option(/brain:Support/).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('listbox', { name: 'Suggestions' }).waitFor({ state: 'detached' });
  await eventually(async () => assert.equal(await field().inputValue(), 'supp'));
  await eventually(async () => assert.match(page.url(), /\/runs$/));
});

test('a tool that has asked a person is suggested, and finds the runs that called it', async () => {
  await page.to('/runs', '.run-row');
  await field().click();
  await field().pressSequentially('tool:');
  await option(/^pay/).click();
  await page.keyboard.press('Enter');
  await page.waitForURL(/tool=pay/);
  await page.waitForFunction(() => document.querySelectorAll('.run-row').length === 1);
  assert.deepEqual(await ids(), ['till']);
  await eventually(async () => assert.equal(await field().inputValue(), 'tool:pay'));
  await page.to('/runs?tool=pay&q=amount', '.run-row');
  assert.deepEqual(await ids(), ['till']);
});

test('a hit is the call with the text, shows the words around it and leads to it', async () => {
  await page.to('/runs?q=249', '.run-row');
  await eventually(async () => assert.equal(await page.locator('.run-row').count(), 1));
  const hit = page.locator('.run-row .hit');
  await eventually(async () => assert.match(await hit.innerText(), /^event \d+ call .*249/));
  await eventually(async () => assert.equal(await hit.locator('mark').innerText(), '249'));
  await accessible(page, 'hits of a search');
  const seq = /event (\d+)/.exec(await hit.innerText())[1];
  await hit.getByRole('link').click();
  await page.waitForURL(new RegExp(`/transcript/${seq}$`));
  await page.locator('.beside.pane', { hasText: '249' }).waitFor();
});

test('the columns sort what is shown, and say when that is not all', async () => {
  await page.to('/runs', '.run-row');
  const started = await ids();
  await page.getByRole('columnheader', { name: 'Tokens' }).getByRole('button').click();
  await page.waitForURL(/sort=-tokens/);
  const tokens = await page.evaluate(async () => Object.fromEntries((await (await fetch('/api/v1/runs')).json()).items.map(({ id, usage }) => [id, (usage.input ?? 0) + (usage.output ?? 0)])));
  const inOrder = async (order) => {
    const shown = async () => (await ids()).map((id) => tokens[id]);
    for (let tries = 0; tries < 50 && String(await shown()) !== String((await shown()).toSorted(order)); tries += 1) await page.waitForTimeout(40);
    assert.deepEqual(await shown(), (await shown()).toSorted(order));
    return shown();
  };
  const down = await inOrder((a, b) => b - a);
  assert.ok(down[0] > 0);
  await page.getByRole('columnheader', { name: 'Tokens' }).getByRole('button').click();
  await page.waitForURL(/sort=tokens/);
  await inOrder((a, b) => a - b);
  await eventually(async () => assert.equal(await page.getByRole('columnheader', { name: 'Tokens' }).getAttribute('aria-sort'), 'ascending'));
  await page.getByRole('columnheader', { name: 'Started' }).getByRole('button').click();
  await page.waitForURL(/\/runs$/);
  await eventually(async () => assert.deepEqual(await ids(), started));

  await page.route(/\/api\/v1\/runs\?/, async (route) => {
    const answer = await route.fetch();
    const body = await answer.json();
    return route.fulfill({ response: answer, json: { ...body, next: new URL(route.request().url()).searchParams.has('cursor') ? null : 'more', items: new URL(route.request().url()).searchParams.has('cursor') ? [] : body.items } });
  });
  await page.to('/runs?sort=-cost', '.run-row');
  await page.getByText('The dearest first of the 4 last started; older runs are not sorted in.').waitFor();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  page.check();
});

test('each word of a search is looked for by itself, and a text in quotes as one', async () => {
  const found = async (typed, brains) => {
    await page.to('/runs', '.run-row');
    await field().fill(typed);
    await field().press('Enter');
    await page.waitForURL(/q=/);
    await eventually(async () => assert.deepEqual(await page.locator('.run-row .c-brain a').allInnerTexts(), brains, typed));
  };
  // No event has the two beside each other.
  await found('249 refund', ['Support']);
  await eventually(async () => assert.match((await page.locator('.run-row .hit').innerText()).split(/refund|249/)[0], /^event \d+ [a-z ]+…?.{0,40}$/s, 'the word is not far from the beginning'));
  await eventually(async () => assert.ok(await page.locator('.run-row .hit mark').count() >= 1));
  await found('"friendly support agent" 249', ['Support']);
  await found('"agent friendly"', []);
  await page.getByText('No run matches').waitFor();
  await found('friendly mountain', []);
  await page.getByText('No run has all of these words. Or look for:').waitFor();
  await accessible(page, 'a search without a match');
  await page.getByRole('link', { name: 'friendly', exact: true }).click();
  await page.waitForURL(/q=friendly$/);
  await eventually(async () => assert.deepEqual(await page.locator('.run-row .c-brain a').allInnerTexts(), ['Support']));
});

test('the list says what its runs have cost, and at least that much if a part is not known', async () => {
  await page.route(/\/api\/v1\/runs\?/, async (route) => {
    const answer = await route.fetch();
    const body = await answer.json();
    const priced = (run, i) => ({ ...run, usage: { input: 1_000_000, output: 1 }, cost: { amount: i ? '0.05' : '1.2', currency: 'USD', partial: i === 1 } });
    await route.fulfill({ response: answer, json: { ...body, items: body.items?.map(priced) } });
  });
  await page.to('/runs', '.run-row');
  await eventually(async () => assert.match(await page.locator('.counts').innerText(), /4 runs[\s\S]*at least \$1\.35\s+4M tokens$/));
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

test('the counts of a list with a status say apart what is not in it', async () => {
  await page.to('/runs?status=completed', '.run-row');
  await eventually(async () => assert.match((await page.locator('.counts').innerText()).replace(/\s+/g, ' '), /^(\d+) runs? \1 completed.* Not in this list: \d+ waiting$/));
  await accessible(page, 'a list of runs with a status');
});

test('a hit of the palette opens the run at its event', async () => {
  await page.to('/runs', '.run-row');
  await page.keyboard.press('ControlOrMeta+k');
  await page.getByRole('combobox', { name: 'Find a command or a run' }).fill('refund 249');
  await page.getByRole('option', { name: /^Support/ }).click();
  await page.waitForURL(/\/runs\/[^/]+\/transcript\/\d+$/);
  await page.locator('.row.selected').waitFor();
});
