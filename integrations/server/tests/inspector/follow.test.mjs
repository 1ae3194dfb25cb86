// A run that works opens at its end and stays there until the reader scrolls up or stops it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually, launch, open } from './browser.mjs';
import { modelServer, Project } from './server.mjs';

const project = new Project();
let [browser, page, model] = [];
/** Lets the model answer, up to a number of times. */
let allowed = 0;
let wake = () => {};
const allow = (times) => {
  allowed = times;
  wake();
};
async function turn(number) {
  while (number >= allowed) await new Promise((resolve) => { wake = resolve; });
}

before(async () => {
  const ANSWERS = 40;
  model = await modelServer(({ messages }) => {
    const number = messages.filter(({ role }) => role === 'assistant').length;
    return { text: `Search number ${number}.`, calls: number < ANSWERS ? [{ name: 'search_knowledge_base', arguments: { query: `part ${number}` } }] : [{ name: 'resolve_ticket', arguments: { resolution: 'Done.' } }], held: turn(number) };
  });
  Object.assign(project.env, { OPENAI_BASE_URL: model.address, OPENAI_API_KEY: 'none', POSITRONIC_MODEL: 'gpt-5-mini' });
  browser = await launch();
  page = await open(browser, await project.serve());
});
after(async () => { await browser?.close(); await project.close(); model?.close(); });

const answer = (number) => page.locator('.row.answer', { hasText: `Search number ${number}.` });
const isAtEnd = () => page.evaluate(() => { const main = document.getElementById('main'); return main.scrollHeight - main.scrollTop - main.clientHeight < 160 && main.scrollTop > 0; });

test('a running run opens at its end, follows it, and stops when the reader scrolls up or says so', async () => {
  allow(12);
  const run = await page.evaluate(async () => (await (await fetch('/api/v1/runs', { method: 'POST', headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'follow' }, body: JSON.stringify({ brain: 'Support' }) })).json()).id);
  const head = (least) => eventually(async () => assert.ok(await page.evaluate(async (id) => (await (await fetch(`/api/v1/runs/${id}`)).json()).head, run) >= least), Date.now() + 20_000);
  await head(50);
  await page.to(`/runs/${run}`, '.row.answer');
  await eventually(async () => assert.ok(await isAtEnd()));
  await answer(11).waitFor();
  await page.getByRole('button', { name: 'Following the end: stop' }).waitFor();
  allow(15);
  await answer(14).waitFor();
  await eventually(async () => assert.ok(await isAtEnd()));

  // A reader who scrolls up is left alone, and reads how much is new.
  await page.locator('#main').hover();
  await page.mouse.wheel(0, -1500);
  await page.getByRole('button', { name: 'Following the end: stop' }).waitFor({ state: 'detached' });
  allow(18);
  const fresh = page.getByRole('button', { name: /\d+ new, jump to the end/ });
  await fresh.waitFor();
  await eventually(async () => assert.ok(!await isAtEnd()));
  await fresh.click();
  await answer(17).waitFor();
  await page.getByRole('button', { name: 'Following the end: stop' }).click();
  await page.getByRole('button', { name: /Follow the end/ }).waitFor();
  allow(26);
  await fresh.waitFor();
  await eventually(async () => assert.ok(!await isAtEnd()));
  await page.keyboard.press('End');
  await eventually(async () => assert.ok(await isAtEnd()));
  allow(99);
  await eventually(async () => assert.match(await page.locator('.run-head').innerText(), /Completed|Cut off/), Date.now() + 20_000);
  await page.getByRole('button', { name: 'Following the end: stop' }).waitFor({ state: 'detached' });
  page.check();
});

test('attempts that fail for one reason are one line with their number', async () => {
  const at = 1_795_000_000_000_000;
  const retry = (attempt, message) => ({ path: 'Fetch', type: 'STEP_RETRY', attempt, message, due: at + 9_000_000 });
  const start = (attempt) => ({ path: 'Fetch', type: 'STEP_START', attempt });
  const events = [{ type: 'BRAIN_START', title: 'Feed', fingerprint: '0'.repeat(32), stages: [{ name: 'Fetch', kind: 'step' }], options: {} },
    start(0), retry(0, 'the host is down'), start(1), retry(1, 'the host is down'), start(2), retry(2, 'the host is down'), start(3), retry(3, 'no route'), start(4)];
  const lines = events.map((event, seq) => ({ seq, at: at + seq * 1000, ...event }));
  project.import([{ positronic_run: 1, run: 'retries', brain: 'Feed', events: lines.length }, ...lines].map((line) => JSON.stringify(line)));
  await page.to('/runs/retries', '.row.retry');
  await eventually(async () => assert.deepEqual((await page.locator('.row.retry .event-line').allInnerTexts()).map((text) => text.replace(/\s+/g, ' ').replace(/ Tried again.*/, '').trim()),
    ['3 attempts failed: the host is down', 'Attempt 4 failed: no route']));
  page.check();
});
