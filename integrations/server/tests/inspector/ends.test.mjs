// The ends of runs: results of any type, and what goes on from a failure.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { endedLog, Project } from './server.mjs';

const project = new Project();
let [browser, page] = [];

before(async () => {
  project.import(endedLog('broke', { type: 'BRAIN_ERROR', code: 'step', message: 'cannot read `orders.csv`', retryable: false }));
  for (const [run, result] of [['number', 42], ['text', 'All is well.'], ['falsy', false], ['none', null], ['object', { total: 7 }]]) {
    project.import(endedLog(run, { type: 'BRAIN_COMPLETE', result }));
  }
  project.import(endedLog('limited', { type: 'BRAIN_ERROR', code: 'limit', message: 'the budget of the run is used up', retryable: false }));
  const guard = { path: 'In warranty', type: 'GUARD_CHECKED', passed: false, reason: 'too old' };
  project.import([...endedLog('guarded', guard), JSON.stringify({ seq: 2, at: 1_795_000_000_002_000, type: 'BRAIN_COMPLETE', result: 'It is too old.' })].map((line, i) => (i ? line : line.replace('"events":2', '"events":3'))
    .replace('"stages":[]', '"stages":[{"name":"In warranty","kind":"guard"}]')));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'));
});
after(async () => { await browser?.close(); await project.close(); });

test('a completed run shows its result, of whatever type it is', async () => {
  for (const [run, shown] of [['number', /42/], ['text', /All is well\./], ['falsy', /false/], ['object', /total\s+7/]]) {
    await page.to(`/runs/${run}`, '.run-head h1');
    await page.locator('.inout summary', { hasText: 'Result' }).click();
    await eventually(async () => assert.match(await page.getByRole('region', { name: 'Result' }).innerText(), shown, run));
    await eventually(async () => assert.match(await page.locator('.lead').innerText(), shown, 'the head begins with it'));
    await eventually(async () => assert.equal(await page.getByRole('button', { name: 'Retry' }).count(), 0));
  }
  await accessible(page, 'a run with a result');
  await page.to('/runs/none', '.run-head h1');
  await eventually(async () => assert.equal(await page.getByRole('region', { name: 'Result' }).count(), 0));
});

test('a run that a guard has ended says so, in its row and in its head', async () => {
  await page.to('/runs?brain=Sum', '.run-row');
  await eventually(async () => assert.equal((await page.locator('.run-row', { hasText: 'guarded' }).locator('.cause').innerText()).trim(), 'Ended by the guard In warranty: It is too old.'));
  await page.to('/runs/guarded', '.run-head h1');
  await eventually(async () => assert.equal(await page.locator('.lead').innerText(), 'Ended by the guard In warranty: It is too old.'));
});

test('an address that leads nowhere says so, and leads to the list', async () => {
  const said = { '/runs/nope': /There is no run nope[\s\S]*All runs/, '/runs/0': /too short/, '/conversations/nope': /There is no conversation nope[\s\S]*All conversations/, '/nonsense': /no page nonsense/, '/runs/guarded/foo/1': /no view foo/,
    '/runs?since=garbage': /garbage is not a time/, [`/runs?q=${'x'.repeat(3000)}`]: /No run matches x{50,200}…/ };
  for (const [address, words] of Object.entries(said)) {
    await page.to(address, '.empty');
    await eventually(async () => assert.match(await page.locator('.empty').first().innerText(), words, address));
  }
  await accessible(page, 'a search without a match');
});

test('a failed run says what a retry does, and why it was refused', async () => {
  await page.to('/runs/broke', '.run-head h1');
  await page.getByText('Retry starts a new run at the place of the failure. What has a result is not repeated.').waitFor();
  await accessible(page, 'a failed run');
  const refusal = { type: '/problems/not-failed', title: 'The run cannot be retried.', detail: 'the run has failed at a limit, which a retry would reach again', status: 409 };
  await page.route('**/runs/broke/retry', (route) => route.fulfill({ status: 409, json: refusal }));
  await page.getByRole('button', { name: 'Retry' }).click();
  const dialog = page.getByRole('dialog', { name: 'The action failed' });
  await eventually(async () => assert.match(await dialog.innerText(), /failed at a limit/));
  await dialog.getByRole('button', { name: 'Close' }).click();
  await page.unroute('**/runs/broke/retry');
});

test('a run that has failed at a limit offers no retry, and says why', async () => {
  await page.to('/runs/limited', '.run-head h1');
  await page.getByText('No retry: a retry would reach the same limit again: raise it in the code and fork the run before the stage').waitFor();
  await eventually(async () => assert.equal(await page.getByRole('button', { name: 'Retry' }).count(), 0));
  await page.keyboard.press('r');
  await accessible(page, 'a run without a retry');
  await eventually(async () => assert.equal(await page.getByRole('dialog').count(), 0));
});

test('a retry goes to the run in which the work continues', async () => {
  await page.to('/runs/broke', '.run-head h1');
  const sent = [];
  await page.route('**/runs/broke/retry', (route) => {
    sent.push(route.request().method());
    return route.fulfill({ json: { run: 'object', forked: true, seq: 0 } });
  });
  await page.getByRole('button', { name: 'Retry' }).dblclick();
  await page.waitForURL('**/ui/runs/object');
  assert.deepEqual(sent, ['POST'], 'once');
  await page.unroute('**/runs/broke/retry');
  page.check();
});

test('a parked run is retried in itself', async () => {
  await page.route('**/api/v1/runs/broke', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...await answer.json(), status: 'paused', parked: true } });
  });
  await page.route('**/runs/broke/retry', (route) => route.fulfill({ json: { run: 'broke', forked: false, seq: 2 } }));
  await page.to('/runs/broke', '.run-head h1');
  await page.getByText('Retry continues the run from where it was parked. What has a result is not repeated.').waitFor();
  const read = page.waitForRequest((request) => request.method() === 'GET' && request.url().endsWith('/api/v1/runs/broke'));
  await page.getByRole('button', { name: 'Retry' }).click();
  await read;
  await eventually(async () => assert.match(page.url(), /\/runs\/broke$/));
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  page.check();
});
