// The playground: a request of a run with edits, its cost before and after, and its answer beside the recorded one.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { modelServer, Project } from './server.mjs';

let [model, project, browser, page, run] = [];
let release = null;
const system = (asked) => asked.messages.find(({ role }) => role === 'system').content;
const trial = (n) => page.getByRole('region', { name: `Answer ${n}` });
const prompt = () => page.getByLabel('System prompt');
const send = () => page.getByRole('button', { name: /^Send/ }).and(page.locator('.primary'));
const head = async () => (await page.evaluate(async (id) => (await (await fetch(`/api/v1/runs/${id}`)).json()).head, run));

before(async () => {
  model = await modelServer((asked) => {
    if (system(asked).includes('Fail.')) return { status: 429 };
    if (system(asked).includes('Wait.')) return { text: 'Late.', held: new Promise((resolve) => { release = resolve; }) };
    if (system(asked).includes('Search.')) return { calls: [{ name: 'search', arguments: { query: 'tree' } }] };
    return { text: system(asked).includes('brief') ? 'The tallest tree has 116 metres.' : 'The tallest known tree is a redwood and has 116 metres.', calls: [{ name: 'done', arguments: {} }] };
  });
  project = new Project({ OPENAI_BASE_URL: model.address, POSITRONIC_MODEL: 'gpt-5-mini' });
  const prices = join(project.folder, 'prices.toml');
  writeFileSync(prices, 'as_of = "2026-11-01"\ncurrency = "USD"\n[prices]\n"gpt-5-mini" = { input = 1, output = 10 }\n');
  await project.run('run', 'minimal', '--prices', prices);
  browser = await launch();
  page = await open(browser, await project.serve(0, '--prices', prices));
  await page.to('/runs', '.run-row');
  run = await page.evaluate(async () => (await (await fetch('/api/v1/runs')).json()).items[0].id);
});
after(async () => { await browser?.close(); await project?.close(); model?.close(); });

test('the pane of an answer leads to its request, which stands as it was sent', async () => {
  await page.to(`/runs/${run}`, '.row.answer');
  await page.locator('.row.answer').first().click();
  await page.getByRole('link', { name: 'Try again with edits' }).click();
  await page.waitForURL(/\/playground\//);
  await eventually(async () => assert.match(await prompt().inputValue(), /You are a helpful assistant/));
  await eventually(async () => assert.match(await page.locator('.message-rows').innerText(), /How tall is the tallest tree\?/));
  await eventually(async () => assert.match(await page.getByRole('region', { name: 'Recorded answer' }).innerText(), /redwood[\s\S]*done[\s\S]*1,000 \+ 100[\s\S]*\$0\.0020/));
  await accessible(page, 'the playground');
});

test('the cost is expected before the request is sent, and follows the edits', async () => {
  await page.getByText('To openai/gpt-5-mini for about $0.0020: 1,000 tokens in, 100 out').waitFor();
  assert.equal(await page.getByText(/has answered so far/).count(), 0, 'the same model answers');
  await prompt().fill(`Be brief. ${'Explain. '.repeat(400)}`);
  await page.getByText(/about \$0\.00[3-9]\d*: \d,\d{3} tokens in, 100 out/).waitFor();
  assert.equal(model.requests.length, 1, 'an estimate asks no model');
});

test('an answer is compared with the recorded one, and the run gets nothing of it', async () => {
  const before = await head();
  await prompt().fill('You are brief.');
  await page.locator('.lines-diff .come', { hasText: 'You are brief.' }).waitFor();
  await send().click();
  const card = trial(1);
  await card.getByText('same call').waitFor();
  await eventually(async () => assert.match(await card.innerText(), /other system[\s\S]*1,000 \+ 100[\s\S]*\$0\.0020/));
  await eventually(async () => assert.ok(await card.locator('del').count() > 0, 'what the recorded answer has alone is marked'));
  assert.equal(system(model.requests.at(-1)), 'You are brief.');
  assert.equal(await head(), before);
  await accessible(page, 'the playground with an answer');
});

test('another call is named, and none is run', async () => {
  const before = model.requests.length;
  await prompt().fill('Search.');
  await send().click();
  await trial(2).getByText('other call').waitFor();
  await eventually(async () => assert.match(await trial(2).innerText(), /search query: tree/));
  assert.equal(model.requests.length, before + 1);
});

test('a failure of the model is shown with its cause, once', async () => {
  const before = model.requests.length;
  await prompt().fill('Fail.');
  await send().click();
  await trial(3).getByRole('alert').waitFor();
  await eventually(async () => assert.match(await trial(3).innerText(), /the model is overloaded[\s\S]*HTTP 429[\s\S]*not tried again/));
  assert.equal(model.requests.length, before + 1);
});

test('on a phone the recorded answer stands above the form, and a row of the runs has tokens', async () => {
  const before = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  const top = async (part) => (await part.boundingBox()).y;
  await eventually(async () => assert.ok(await top(page.getByRole('region', { name: 'Recorded answer' })) < await top(prompt())));
  await accessible(page, 'the playground on a phone');
  const own = await page.context().newPage();
  await own.setViewportSize({ width: 390, height: 844 });
  await own.goto(new URL('/ui/runs', page.url()).href);
  await eventually(async () => assert.match(await own.locator('.run-row .c-tokens').first().innerText(), /^[\d,.]+k?$/));
  await own.close();
  await page.setViewportSize(before);
});

test('messages are edited, and a request that is sent can be stopped', async () => {
  await page.locator('.message-rows .twist').first().click();
  await page.getByLabel('text', { exact: true }).fill('How old is the oldest tree?');
  await page.locator('.message-rows li.new').waitFor();
  await prompt().fill('Wait.');
  await send().click();
  await eventually(async () => assert.equal(model.requests.at(-1).messages.at(-1).content, 'How old is the oldest tree?'));
  await trial(4).getByRole('button', { name: 'Stop' }).click();
  await trial(4).getByText(/Stopped/).waitFor();
  release();
});

test('edits stay while one looks elsewhere, and can be undone', async () => {
  await page.goBack();
  await page.locator('.row').first().waitFor();
  await page.goForward();
  await eventually(async () => assert.equal(await prompt().inputValue(), 'Wait.'));
  await page.getByRole('button', { name: 'Undo all edits' }).click();
  await eventually(async () => assert.match(await prompt().inputValue(), /You are a helpful assistant/));
});

test('a caller without the scope sees the request and cannot send it', async () => {
  const token = project.command('token', 'create', 'reader', '--scope', 'read').trim();
  const other = await browser.newContext();
  const reader = await other.newPage();
  await reader.goto(`${new URL(page.url()).origin}/ui/runs`);
  await reader.getByLabel('Or sign in with a token').fill(token);
  await reader.getByRole('button', { name: 'Sign in' }).click();
  await reader.locator('.run-row').first().waitFor();
  await reader.goto(page.url());
  await reader.getByText('Sending needs the scope').waitFor();
  await eventually(async () => assert.equal(await reader.locator('.send-line').count(), 0));
  await other.close();
  page.check();
});

test('the model that answers is named before a request is sent, with its own price', async () => {
  await project.kill();
  const { OPENAI_BASE_URL: _, POSITRONIC_MODEL: __, ...keyless } = project.env;
  project.env = keyless;
  const other = await open(browser, await project.serve(0, '--prices', join(project.folder, 'prices.toml')));
  const seq = await other.evaluate(async (id) => (await (await fetch(`/api/v1/runs/${id}/requests`)).json()).items[0].seq, run);
  await other.to(`/playground/${run}/${seq}`, '.send-line');
  await other.getByText(/^openai\/gpt-5-mini has answered so far, and this server asks cassette\/\S+\. A cassette gives its own answers/).waitFor();
  await eventually(async () => assert.match(await other.locator('.send-line').innerText(), /To cassette\/\S+, which has no price: 1,000 tokens in/));
  assert.equal(await other.getByText('$', { exact: false }).and(other.locator('.send-line *')).count(), 0, 'no price of a model that does not answer');
  await accessible(other, 'a playground in which another model answers');
  await other.getByRole('button', { name: 'Send' }).click();
  await eventually(async () => assert.match(await other.getByRole('region', { name: 'Answer 1' }).locator('header').innerText(), /cassette\//));
  other.check();
});
