// Deciding in two windows, following over a crash of the server, and hostile texts.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { Project } from './server.mjs';

const project = new Project();
let [browser, page, port] = [];

before(async () => {
  browser = await launch();
  const address = await project.serve();
  port = Number(new URL(address).port);
  page = await open(browser, address);
});
after(async () => { await browser?.close(); await project.close(); });

/** Starts the support agent in the page, and answers its question as the customer. */
async function untilApproval(window) {
  await window.to('/brains/Support', '.start');
  await window.getByRole('button', { name: 'Start' }).click();
  await window.locator('.decide').waitFor();
  const field = window.locator('.decide').getByLabel('text');
  await field.pressSequentially('It does, the tank has a crack.');
  // A form that moved while one types would lose the focus, and the rest of the text.
  assert.equal(await field.evaluate((node) => node === document.activeElement && node.value), 'It does, the tank has a crack.');
  await window.getByRole('button', { name: 'Send answer' }).click();
  await window.locator('.decide', { hasText: 'a refund of 249 euros' }).waitFor();
  return /runs\/([^/]+)/.exec(window.url())[1];
}

test('a lost race shows who decided what and when', async () => {
  await untilApproval(page);
  await page.to('/inbox', '.decide');
  await accessible(page, 'the inbox with an approval');
  const second = await page.context().newPage();
  // The second window does not learn of the decision before it decides.
  await second.route(/\/stream/, (route) => route.abort());
  await second.goto(page.url());
  await second.locator('.decide').waitFor();
  await page.getByRole('button', { name: 'Edit arguments' }).click();
  await page.getByLabel('amount').fill('200');
  await page.locator('.edits ins', { hasText: '200' }).waitFor();
  await page.getByRole('button', { name: 'Approve as edited' }).click();
  await page.getByText('Nothing waits for a person').or(page.locator('.decide', { hasText: 'ask_customer' })).waitFor();
  await second.getByRole('button', { name: 'Reject…' }).click();
  await second.getByRole('button', { name: 'Reject', exact: true }).click();
  await second.locator('.note.lost .diff').waitFor();
  const lost = await second.locator('.note.lost').innerText();
  assert.match(lost, /approved this/);
  assert.match(lost, /Your decision was not recorded\./);
  assert.match(lost, /249 200/);
  await second.close();
  page.check();
});

test('following resumes after a crash without a gap or a double', async () => {
  const run = await untilApproval(page);
  await page.to(`/runs/${run}/events`, '.event-row');
  await project.kill();
  await page.locator('.link.lost').waitFor();
  const address = await project.serve(port);
  // A session lasts as long as its server: another tab signs the browser in again.
  const tab = await page.context().newPage();
  await tab.goto(address);
  await tab.locator('h1').first().waitFor();
  await tab.close();
  await page.locator('.link.live').waitFor({ timeout: 30000, state: 'attached' });
  project.command('approve', run, '--all');
  await page.waitForFunction(() => Number(document.querySelector('.head-seq').innerText) > 50, null, { timeout: 30000 });
  // The log grows until the run waits for its customer.
  const head = await page.evaluate(async (id) => {
    for (;;) {
      const read = await (await fetch(`/api/v1/runs/${id}`)).json();
      if (read.status === 'waiting' && read.head > 50) return read.head;
    }
  }, run);
  await page.waitForFunction((last) => document.querySelector('.head-seq').innerText === `${last + 1}`, head, { timeout: 15000 });
  const seqs = new Set();
  for (let y = 0; y < 40 && seqs.size <= head; y++) {
    const rows = await page.locator('.event-row').evaluateAll((nodes) => nodes.map((node) => [node.querySelector('.seq').innerText, node.querySelector('.type').innerText]));
    assert.equal(new Set(rows.map(([seq]) => seq)).size, rows.length, 'no row twice');
    for (const [seq, type] of rows) if (type) seqs.add(Number(seq));
    await page.evaluate((top) => { document.getElementById('main').scrollTop = top; }, y * 300);
    await page.waitForTimeout(60);
  }
  assert.deepEqual([...seqs].sort((a, b) => a - b), Array.from({ length: head + 1 }, (_, i) => i));
});

test('hostile text is text, with hidden characters shown', async () => {
  const hostile = '<img src=x onerror="alert(1)"> <script>alert(2)</script> javascript:alert(3) pay \u202e001\u202c euros \u001b[31mred\u001b[0m zero\u200bwidth';
  const id = await page.evaluate(async (message) => {
    const body = JSON.stringify({ brain: 'Support', options: { customer_id: 'C-7', message } });
    const answer = await fetch('/api/v1/runs', { method: 'POST', headers: { 'Content-Type': 'application/json', 'Idempotency-Key': crypto.randomUUID() }, body });
    return (await answer.json()).id;
  }, hostile);
  for (const tab of ['transcript', 'events/0', 'state', 'requests/7']) {
    await page.to(`/runs/${id}/${tab}`, '.tab *');
    // The state at the end has no message; the other tabs show it, and the first request has it unfolded.
    if (tab !== 'state') await page.locator('main mark.hidden-char:visible').nth(3).waitFor();
    else await page.locator('.state-view .json').first().waitFor();
    await eventually(async () => assert.equal(await page.locator('main img, main script, main a[href^="javascript"]').count(), 0, tab));
    const text = await page.locator('main').innerText();
    assert.doesNotMatch(text, /[\u202e\u001b\u200b]/, tab);
  }
  await eventually(async () => assert.match(await page.locator('main').innerText(), /⟨U\+202E⟩/));
  page.check();
});

test('the keyboard alone finds a run, decides and reads the help', async () => {
  await untilApproval(page);
  await page.to('/runs', '.run-row');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  await page.keyboard.press('Enter');
  await page.locator('.run-head').waitFor();
  await page.keyboard.press('2');
  await page.locator('.bar-row').first().waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('i');
  const asked = page.locator('.decide', { hasText: 'a refund of 249 euros' });
  await asked.first().waitFor();
  const before = await asked.count();
  while (!(await page.locator('.decide.selected').innerText()).includes('a refund of 249 euros')) await page.keyboard.press('j');
  await page.locator('.decide.selected .primary:not([aria-disabled])').waitFor();
  await page.keyboard.press('a');
  await page.waitForFunction((most) => [...document.querySelectorAll('.decide')].filter((node) => node.innerText.includes('a refund of 249')).length < most, before);
  await page.keyboard.press('ControlOrMeta+k');
  await page.keyboard.type('brains');
  await page.keyboard.press('Enter');
  await page.locator('h1', { hasText: 'Brains' }).waitFor();
});
