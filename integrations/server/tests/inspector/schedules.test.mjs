// Schedules and webhooks: their forms, previews, dialogs, ticks and deliveries, on a server that fires and delivers.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { Project } from './server.mjs';

const project = new Project();
let [browser, page, receiver] = [];
const received = [];
const dialog = () => page.locator('dialog');
const submit = (name) => dialog().getByRole('button', { name, exact: true }).click();
const closed = () => dialog().waitFor({ state: 'detached' });
const field = (name) => dialog().getByRole('textbox', { name });

before(async () => {
  receiver = createServer((request, response) => {
    request.resume();
    received.push(request.headers['webhook-id']);
    response.writeHead(204).end();
  });
  await new Promise((resolve) => { receiver.listen(0, '127.0.0.1', resolve); });
  browser = await launch();
  page = await open(browser, await project.serve(0, '--private-webhooks'));
});
after(async () => { await browser?.close(); await project.close(); receiver?.close(); });

test('a schedule is added with a preview of its next times', async () => {
  await page.to('/schedules', '.empty');
  await page.getByRole('button', { name: 'Add a schedule' }).click();
  await field('schedule name').fill('Every night');
  await eventually(async () => assert.ok(await dialog().getByRole('combobox', { name: 'brain', exact: true }).isVisible()));
  await dialog().getByRole('combobox', { name: 'brain', exact: true }).selectOption('Support');
  await submit('Save');
  await dialog().getByText('“Every night” cannot be a name. Letters from a to z and A to Z, digits').waitFor();
  await eventually(async () => assert.equal(await field('schedule name').evaluate((node) => node === document.activeElement), true));
  await field('schedule name').fill('nightly');
  await dialog().getByRole('combobox', { name: 'brain', exact: true }).selectOption('Support');
  await eventually(async () => assert.equal(await dialog().getByRole('combobox', { name: /^When/ }).inputValue(), 'daily'));
  await dialog().getByLabel('At', { exact: true }).fill('02:30');
  await dialog().getByText(/02:30/).first().waitFor();
  await accessible(page, 'the form of a schedule');
  await dialog().getByRole('combobox', { name: /^When/ }).selectOption('expression');
  await eventually(async () => assert.equal(await dialog().getByRole('textbox', { name: 'cron 1' }).inputValue(), '30 2 * * *', 'the expression of what was chosen'));
  await dialog().getByRole('button', { name: 'Remove cron 1' }).click();
  await dialog().getByRole('button', { name: 'Add to cron' }).click();
  await dialog().getByRole('textbox', { name: 'cron 1' }).and(page.locator(':focus')).waitFor();
  await field('cron 1').fill('30 2 * * X');
  await dialog().locator('.preview .error').waitFor();
  await field('cron 1').fill('30 2 * * *');
  await field('zone').fill('Europe/Berlin');
  await dialog().locator('.preview .times li').nth(4).waitFor();
  await eventually(async () => assert.match(await dialog().locator('.preview').innerText(), /Next times\s+20\d\d-\d\d-\d\d 02:30\s+\+0[12]:00/));
  await field('customer id').fill('C-7');
  await accessible(page, 'the form of a schedule');
  await submit('Save');
  await closed();
  await page.locator('.panel h2', { hasText: 'nightly' }).waitFor();
  await eventually(async () => assert.match(page.url(), /\/schedules\/nightly$/));
  await eventually(async () => assert.match(await page.locator('.panel').innerText(), /Starts every day at 02:30 in Europe\/Berlin[\s\S]*30 2 \* \* \*[\s\S]*the time is skipped[\s\S]*C-7/));
  await accessible(page, 'a schedule');
});

test('a schedule that starts no runs says why in the list and beside it', async () => {
  const broken = { at: '2026-11-20T08:00:00Z', reason: 'the time zone `Europe/Berlin` is not in the database of this machine' };
  const problem = { type: '/problems/schedule-invalid', title: 'The schedule is invalid.', detail: broken.reason, status: 422 };
  const asBroken = (item) => ({ ...item, status: 'broken', broken, next: undefined });
  await page.route('**/api/v1/schedules*', async (route) => {
    const answer = await route.fetch();
    const list = await answer.json();
    await route.fulfill({ response: answer, json: { ...list, items: list.items.map(asBroken) } });
  });
  await page.route('**/api/v1/schedules/nightly', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: asBroken(await answer.json()) });
  });
  await page.route('**/api/v1/schedules/nightly/preview*', (route) => route.fulfill({ status: 422, json: problem }));
  await page.to('/schedules/nightly', '.panel h2');
  await eventually(async () => assert.match(await page.locator('.cards li').innerText(), /nightly\s+broken[\s\S]*is not in the database/));
  await eventually(async () => assert.match(await page.locator('.panel [role=alert]').innerText(), /^Starts no runs since 20 Nov 2026, .*: the time zone/));
  await eventually(async () => assert.match(await page.locator('.panel').innerText(), /Next times\s+the time zone/));
  await accessible(page, 'a broken schedule');
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.to('/schedules/nightly', '.panel h2');
});

test('an invalid schedule is explained at its field, and nothing is saved', async () => {
  await page.getByRole('button', { name: 'Edit…' }).click();
  await eventually(async () => assert.equal(await dialog().getByLabel('At', { exact: true }).inputValue(), '02:30', 'a daily time is shown as one'));
  await dialog().getByRole('combobox', { name: /^When/ }).selectOption('expression');
  await field('cron 1').fill('never');
  await submit('Save');
  await dialog().locator('.problem').waitFor();
  await eventually(async () => assert.equal(await field('cron 1').getAttribute('aria-invalid'), 'true'));
  await dialog().getByRole('button', { name: 'Close' }).click();
  await eventually(async () => assert.match(await page.locator('.panel').innerText(), /30 2 \* \* \*/));
});

test('an edited schedule keeps its options', async () => {
  await page.getByRole('button', { name: 'Edit…' }).click();
  await field('customer id').waitFor();
  await eventually(async () => assert.equal(await field('customer id').inputValue(), 'C-7'));
  await submit('Save');
  await closed();
  await eventually(async () => assert.match(await page.locator('.panel').innerText(), /C-7/));
});

test('pause, resume, start now and backfill are recorded', async () => {
  await page.getByRole('button', { name: 'Pause…' }).click();
  await field('reason').fill('Stocktaking');
  await accessible(page, 'the dialog of a pause');
  await submit('Pause');
  await page.getByText(/Paused .*: Stocktaking/).waitFor();
  await page.getByRole('button', { name: 'Resume' }).click();
  await submit('Resume');
  await page.getByRole('button', { name: 'Pause…' }).waitFor();
  await page.getByRole('button', { name: 'Start now…' }).click();
  await submit('Start');
  await page.locator('table', { hasText: 'manual' }).waitFor();
  await page.getByRole('button', { name: 'Backfill…' }).click();
  const ago = (days) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 19);
  await dialog().getByLabel('from').fill(ago(3));
  await dialog().getByLabel('until').fill(ago(1));
  await submit('Start');
  await page.locator('td', { hasText: 'backfill' }).first().waitFor();
  await page.waitForFunction(() => document.querySelectorAll('td a').length >= 2);
});

test('ticks that start no run say why', async () => {
  // The first run waits for a person. A tick before the run has started says so in other words.
  await page.evaluate(() => fetch('/api/v1/schedules/often', { method: 'PUT', headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ brain: 'Support', every: [{ seconds: 1 }], overlap: 'skip' }) }));
  await page.to('/schedules/often', '.panel');
  await page.waitForFunction(() => {
    document.dispatchEvent(new Event('visibilitychange'));
    return [...document.querySelectorAll('td .tag')].some((tag) => tag.innerText === 'skipped');
  }, null, { polling: 500, timeout: 60_000 });
  await eventually(async () => assert.match(await page.locator('tr', { hasText: 'skipped' }).first().innerText(), /skipped\s+(the run often-\S+ has not ended|an earlier tick has not started its run yet)/));
  await accessible(page, 'the ticks of a schedule');
  await page.getByRole('button', { name: 'Remove…' }).click();
  await submit('Remove');
  await page.waitForFunction(() => location.pathname === '/ui/schedules');
  await page.locator('.cards', { hasText: 'often' }).waitFor({ state: 'detached' });
});

test('a webhook is added, shows its secret once, and sends a delivery again', async () => {
  await page.to('/webhooks', '.empty');
  await page.getByRole('button', { name: 'Add a webhook' }).click();
  await field('webhook name').fill('ops');
  await field('url').fill('ftp://nowhere');
  await dialog().getByLabel('run.started').check();
  await submit('Save');
  await dialog().locator('p.error').waitFor();
  await accessible(page, 'the form of a webhook');
  await field('url').fill(`http://127.0.0.1:${receiver.address().port}/hook`);
  await submit('Save');
  await dialog().getByText(/^whsec_/).waitFor();
  await dialog().getByRole('button', { name: 'Close' }).click();
  await page.locator('.panel h2', { hasText: 'ops' }).waitFor();
  await page.evaluate(() => fetch('/api/v1/runs', { method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'a-run-of-the-test' }, body: '{"brain":"Support"}' }));
  await page.waitForFunction(() => {
    document.dispatchEvent(new Event('visibilitychange'));
    return document.querySelector('td .tag.good')?.innerText === 'delivered';
  }, null, { polling: 500 });
  await eventually(async () => assert.match(await page.locator('tbody tr').first().innerText(), /run\.started\s+event 0[\s\S]*delivered/));
  await accessible(page, 'a webhook');
  const before = received.length;
  await page.getByRole('button', { name: 'Send again' }).first().click();
  for (let tries = 0; received.length === before && tries < 100; tries++) await page.waitForTimeout(100);
  assert.equal(received.at(-1), received[0], 'the same delivery again');
  await page.getByRole('button', { name: 'Edit…' }).click();
  await dialog().getByText('More').click();
  await dialog().getByLabel('enabled').uncheck();
  await submit('Save');
  await page.getByText('Disabled: a person has disabled it').waitFor();
  await page.getByRole('button', { name: 'Remove…' }).click();
  await submit('Remove');
  await page.getByText('No webhooks').waitFor();
  page.check();
});
