// A fork whose origin another model has answered than those of the server: the form says so before the fork is started.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { modelServer, Project } from './server.mjs';

const project = new Project();
let [browser, model, isOverloaded] = [];
const keyless = { ...project.env };

/** A gardener gets a text; the others are done at once, or refused after a search. */
function answer({ messages }) {
  if (JSON.stringify(messages).includes('look after a garden')) return { text: 'The beans are fine.' };
  if (!isOverloaded) return { text: 'It has 116 metres.', calls: [{ name: 'done', arguments: {} }] };
  return messages.some(({ role }) => role === 'tool') ? { status: 429 } : { calls: [{ name: 'search', arguments: { query: 'tree' } }] };
}

before(async () => {
  model = await modelServer(answer);
  project.env = { ...keyless, OPENAI_BASE_URL: model.address, OPENAI_API_KEY: 'none', POSITRONIC_MODEL: 'gpt-5-mini' };
  await project.run('run', 'minimal', '--id', 'tree');
  isOverloaded = true;
  await project.run('run', 'minimal', '--id', 'refused');
  isOverloaded = false;
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

test('a retry that no worker has a model for says so in the head, and is asked about first', async () => {
  project.env = keyless;
  const page = await open(browser, await project.serve());
  await page.to('/runs/refused', '.run-head h1');
  const words = /No worker has a model for a retry: openai\/gpt-5-mini has answered so far, and a cassette cannot continue for it\./;
  await eventually(async () => assert.match(await page.locator('.run-head').innerText(), words));
  assert.ok((await page.locator('.frame > .head').boundingBox()).height < 150, 'the head stays small');
  await accessible(page, 'a retry without a model');
  const sent = [];
  await page.route('**/runs/refused/retry', (route) => {
    sent.push(route.request().method());
    return route.fulfill({ json: { run: 'tree', forked: true, seq: 0 } });
  });
  const dialog = page.getByRole('dialog', { name: 'Retry' });
  for (const ask of [() => page.keyboard.press('r'), () => page.getByRole('button', { name: 'Retry iteration 2' }).click()]) {
    await ask();
    await eventually(async () => assert.match(await dialog.innerText(), /No worker of this server has a model for it: openai\/gpt-5-mini has answered so far.*The new run waits until a worker has one\./s));
    assert.deepEqual(sent, [], 'nothing starts before that is read');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
  }
  await page.keyboard.press('r');
  await dialog.getByRole('button', { name: 'Retry, and wait for a model' }).click();
  await page.waitForURL('**/ui/runs/tree');
  assert.deepEqual(sent, ['POST']);
  page.check();
  await project.kill();
});

/** What the server says of the models of a fork at an event. */
const missing = (page, run, at) => page.evaluate(async (path) => (await (await fetch(path)).json()).model.missing ?? null, `/api/v1/runs/${run}/fork?at=${at}`);

test('a fork of a fork, and one in a conversation, know the models that have answered before them', async () => {
  project.env = { ...keyless, OPENAI_BASE_URL: model.address, OPENAI_API_KEY: 'none', POSITRONIC_MODEL: 'gpt-5-mini' };
  const keyed = await open(browser, await project.serve());
  for (const text of ['Hello.', 'And the beans?']) {
    const said = await keyed.evaluate(async (body) => (await fetch('/api/v1/conversations/beds/messages', { method: 'POST', headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' }, body: JSON.stringify(body) })).text(), { brain: 'Gardener', text });
    assert.match(said, /The beans are fine/);
  }
  await project.kill();
  project.env = keyless;
  const page = await open(browser, await project.serve());
  await page.to('/runs', '.run-row');
  const seq = await answered(page);
  const fork = await page.evaluate(async (at) => (await (await fetch('/api/v1/runs/tree/fork', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ at }) })).json()).id, seq);
  const words = '`openai/gpt-5-mini` has answered so far, and a cassette cannot continue for it';
  assert.equal(await missing(page, fork, seq), words, 'the fork has the answers of its origin in its own log');
  assert.equal(await missing(page, fork, 0), null, 'before the first answer any model may answer');
  const second = await page.evaluate(async () => (await (await fetch('/api/v1/runs?brain=Gardener')).json()).items[0].id);
  assert.equal(await missing(page, second, 0), words, 'the run before it in its conversation');
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
