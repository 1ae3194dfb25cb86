// A fork whose origin another model has answered than those of the server: the form says so before the fork is started.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { modelServer, Project } from './server.mjs';

const project = new Project();
let [browser, model] = [];
const keyless = { ...project.env };

before(async () => {
  model = await modelServer(() => ({ text: 'It has 116 metres.', calls: [{ name: 'done', arguments: {} }] }));
  project.env = { ...keyless, OPENAI_BASE_URL: model.address, OPENAI_API_KEY: 'none', POSITRONIC_MODEL: 'gpt-5-mini' };
  await project.run('run', 'minimal', '--id', 'tree');
  browser = await launch();
});
after(async () => { await browser?.close(); await project.close(); model.close(); });

/** The event of the only answer of the run: it follows its request. */
const answered = (page) => page.evaluate(async () => (await (await fetch('/api/v1/runs/tree/requests')).json()).items[0].seq + 1);

test('the form of a fork says that no worker has a model for it, and offers a place from which one has', async () => {
  project.env = keyless;
  const page = await open(browser, await project.serve());
  await page.to(`/fork/tree/${await answered(page)}`, '.send-line');
  const note = page.locator('.try-form .note', { hasText: 'No worker of this server has a model' });
  await note.waitFor();
  await eventually(async () => assert.match(await note.innerText(), /openai\/gpt-5-mini has answered so far, and a cassette cannot continue for it/));
  await page.getByRole('button', { name: 'Fork, and wait for a model' }).waitFor();
  await accessible(page, 'a fork without a model');
  await page.getByRole('button', { name: 'Fork, and wait for a model' }).click();
  await page.locator('.run-head .lead', { hasText: /^No worker of this server has a model for it: openai\/gpt-5-mini has answered so far.*Start a worker with the key of its provider/ }).waitFor();
  await page.goBack();
  await note.getByRole('link', { name: /Fork after event \d+/ }).click();
  await page.getByRole('button', { name: 'Fork and run' }).waitFor();
  await eventually(async () => assert.equal(await page.locator('.try-form .note').count(), 0));
  page.check();
  await project.kill();
});

test('the form of a fork names the model that answers from there on, and suggests those with a price', async () => {
  project.env = { ...keyless, OPENAI_BASE_URL: model.address, OPENAI_API_KEY: 'none', POSITRONIC_MODEL: 'gpt-5' };
  const page = await open(browser, await project.serve());
  await page.to(`/fork/tree/${await answered(page)}`, '.send-line');
  await page.getByText('So far openai/gpt-5-mini has answered. This server asks openai/gpt-5.').waitFor();
  await eventually(async () => assert.ok(await page.locator('#fork-models option').count() > 0));
  await page.getByRole('button', { name: 'Fork and run' }).waitFor();
  page.check();
});
