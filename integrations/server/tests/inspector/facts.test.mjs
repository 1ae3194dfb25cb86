// What the rows and the head of a run say of times, of reasoning, and of answers that another process gets.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { endedLog, limitedLog, modelServer, Project, refusedLog, waitingLog } from './server.mjs';

const project = new Project();
let [browser, page, model, release] = [];
const held = new Promise((resolve) => { release = resolve; });
const head = () => page.locator('.run-head').innerText().then((text) => text.replace(/\s+/g, ' '));

before(async () => {
  model = await modelServer(() => ({ text: 'Late.', calls: [{ name: 'done', arguments: {} }], held }));
  project.import(refusedLog('old', 'The order is late.'));
  const long = `I think of the order. ${'It was sent, and it has not come. '.repeat(8)}`;
  const thinks = (text) => `{"type":"reasoning","text":${JSON.stringify(text)}},{"type":"text"`;
  for (const [run, text] of [['brief', 'I look it up.'], ['wordy', long]]) project.import(refusedLog(run, 'Well.').map((line) => line.replace('{"type":"text"', thinks(text))));
  project.import(waitingLog('expiring', { calls: [{ tool: 'pay', arguments: { amount: 1 }, expires: (Date.now() + 3 * 86_400_000) * 1000 }] }));
  project.import(limitedLog('patient'));
  project.import(endedLog('asleep', { path: 'Settle', type: 'STAGE_WAIT', waits: [], due: 1_798_804_800_000_000 }).map((line) => line.replace('"stages":[]', '"stages":[{"name":"Settle","kind":"wait"}]')));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'), { viewport: { width: 1440, height: 900 } });
});
after(async () => { release(); await browser?.close(); await project.close(); model.close(); });

test('the loop of a fork has lasted since the fork, and not since its origin', async () => {
  const id = await page.evaluate(async () => {
    const { id: run } = await (await fetch('/api/v1/runs/old/fork', { method: 'POST', headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'fork-1' }, body: JSON.stringify({ at: 12 }) })).json();
    return run;
  });
  await page.to(`/runs/${id}`, '.row.stage');
  await eventually(async () => assert.match(await page.locator('.row.stage').first().locator('.fig').innerText(), /\b\d+(\.\d+)? m?s$/));
});

test('reasoning of one line does not unfold, and unfolded reasoning is not said twice', async () => {
  await page.to('/runs/brief', '.row.answer .reasoning');
  await eventually(async () => assert.equal(await page.locator('.row.answer').first().locator('details').count(), 0));
  await page.to('/runs/wordy', '.row.answer details.reasoning');
  await page.locator('details.reasoning > summary').first().click();
  await eventually(async () => assert.equal((await page.locator('.row.answer').first().innerText()).match(/I think of the order/g).length, 1));
});

test('a run that waits says when what it waits for expires', async () => {
  await page.to('/runs/expiring', '.run-head h1');
  await eventually(async () => assert.match(await head(), /expires in 3 d/));
  await eventually(async () => assert.doesNotMatch(await head(), /wakes/));
});

test('the events of waits and steps are in words', async () => {
  await page.to('/runs/asleep/events', '.event-row');
  await eventually(async () => assert.match(await page.locator('.event-row', { hasText: 'STAGE_WAIT' }).innerText(), /until 1 Jan 2027/));
  await page.to('/runs/patient/events', '.event-row');
  await eventually(async () => assert.match(await page.locator('.event-row', { hasText: 'STEP_COMPLETE' }).innerText(), /folder: \/tmp\/desk-patient · 0 ms/));
  page.check();
});

test('an answer that another process gets says that its text does not grow', async () => {
  project.env = { ...project.env, OPENAI_BASE_URL: model.address, OPENAI_API_KEY: 'none', POSITRONIC_MODEL: 'gpt-5-mini' };
  const run = project.run('run', 'minimal', '--id', 'elsewhere');
  await eventually(async () => assert.equal((await page.evaluate(async () => (await fetch('/api/v1/runs/elsewhere')).status)), 200), Date.now() + 10_000);
  await page.to('/runs/elsewhere', '.row.answer');
  await page.evaluate(() => {
    const now = Date.now;
    Date.now = () => now() + 60_000;
  });
  await page.locator('.row.answer').getByText('No text yet. From a worker in another process, the answer comes whole.').waitFor();
  await accessible(page, 'an answer without a text');
  release();
  await run;
  await eventually(async () => assert.match(await page.locator('.row.answer').innerText(), /Late\./), Date.now() + 10_000);
  await eventually(async () => assert.equal(await page.getByText('No text yet.').count(), 0));
  page.check();
});
