// A page that loses its server or is loaded anew shows what it has shown, and what was opened meanwhile recovers by itself.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually, launch, open } from './browser.mjs';
import { modelServer, Project } from './server.mjs';

const project = new Project();
let [browser, page, model, address] = [];
/** Begins and ends the answer of the run of a test. */
let [begin, finish] = [];
let [held, end] = [];
function answer() {
  held = new Promise((resolve) => { begin = resolve; });
  end = new Promise((resolve) => { finish = resolve; });
}

before(async () => {
  model = await modelServer(() => ({ text: 'The tallest tree is a redwood.', calls: [{ name: 'done', arguments: {} }], held, end }));
  Object.assign(project.env, { OPENAI_BASE_URL: model.address, OPENAI_API_KEY: 'none', POSITRONIC_MODEL: 'gpt-5-mini' });
  browser = await launch();
  address = await project.serve();
  page = await open(browser, address);
});
after(async () => { await browser?.close(); await project.close(); model?.close(); });

const start = () => page.evaluate(async () => (await (await fetch('/api/v1/runs', { method: 'POST', headers: { 'Content-Type': 'application/json', 'Idempotency-Key': crypto.randomUUID() }, body: JSON.stringify({ brain: 'Minimal' }) })).json()).id);

test('the first window that is opened in mid-stream has the text so far', async () => {
  answer();
  begin();
  const run = await start();
  // The worker writes what has come beside the store.
  const live = `${project.store}-live`;
  await eventually(async () => assert.match(readdirSync(live).map((name) => readFileSync(join(live, name), 'utf8')).join(), /redwood/));
  await page.to(`/runs/${run}`, '.row.answer');
  await eventually(async () => assert.match(await page.locator('.streaming').innerText(), /The tallest tree is a redwood\./));
  finish();
  await eventually(async () => assert.match(await page.locator('.run-head').innerText(), /Completed/));
  page.check();
});

test('a reload in mid-stream keeps the text so far, and a new window has it', async () => {
  answer();
  const run = await start();
  await page.to(`/runs/${run}`, '.row.answer');
  await page.locator('.link.live').waitFor();
  begin();
  const stream = page.locator('.streaming');
  await eventually(async () => assert.match(await stream.innerText(), /redwood\./));
  const text = await stream.innerText();
  await page.reload();
  await eventually(async () => assert.equal(await stream.innerText(), text));
  const other = await page.context().newPage();
  await other.goto(page.url());
  await eventually(async () => assert.equal(await other.locator('.streaming').innerText(), text));
  await other.close();
  finish();
  await page.locator('.row.answer', { hasText: 'The tallest tree is a redwood.' }).waitFor();
  await eventually(async () => assert.match(await page.locator('.run-head').innerText(), /Completed/));
  page.check();
});

test('a view that was opened without the server recovers once it is back', async () => {
  const to = (name) => page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click();
  for (const [name, shown] of [['Brains', 'Answers one question and is done'], ['Runs', 'Minimal']]) {
    await to('Schedules');
    await page.getByText('No schedules').waitFor();
    await project.kill();
    await to(name);
    await page.getByText('The server cannot be reached').first().waitFor();
    await project.serve(new URL(address).port);
    await page.locator('#main').getByText(shown).first().waitFor({ timeout: 20_000 });
  }
});

test('a view whose code was not loaded before the server went away recovers, too', async () => {
  await page.route('**/views/brains.js', (route) => route.abort());
  await page.to('/schedules', 'h1');
  await page.reload();
  await page.getByText('No schedules').waitFor();
  await project.kill();
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Brains' }).click();
  await page.getByText('The server cannot be reached').first().waitFor();
  await page.getByText('The page asks it again by itself.').waitFor();
  await page.unroute('**/views/brains.js');
  await project.serve(new URL(address).port);
  await page.locator('#main').getByText('Answers one question and is done').first().waitFor({ timeout: 20_000 });
});
