// Conversations: the list, a thread with a decision in it, and the box to write in.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { Project } from './server.mjs';

const project = new Project();
let [browser, page] = [];
const write = () => page.getByLabel('Message to Kitchen');

before(async () => {
  project.talk('kitchen', 'dinner', 'ana', ['What can I cook tonight?', 'Please order the cheese.']);
  project.talk('gardener', 'garden', 'ben', ['Hello.']);
  browser = await launch();
  page = await open(browser, await project.serve());
});
after(async () => { await browser?.close(); await project.close(); });

test('the list says what was said last, and what waits for a person', async () => {
  await page.to('/conversations', '.talks a');
  const first = page.getByRole('link', { name: /Please order the cheese/ });
  await eventually(async () => assert.match(await first.innerText(), /order needs an approval: it costs 12 euros[\s\S]*Kitchen · ana · 2 turns · cost unknown · dinner/));
  await accessible(page, 'the conversations');
  await page.getByRole('button', { name: /Waits for a person/ }).click();
  await eventually(async () => assert.equal(await page.locator('.queue.talks:not(.in-main) a').count(), 1));
});

test('a thread shows messages and answers in their order, with calls folded and the decision in place', async () => {
  await page.to('/conversations/dinner', '.decide');
  const heads = await page.locator('.turn-head b').allInnerTexts();
  assert.deepEqual(heads, ['ana', 'Kitchen', 'Kitchen', 'ana']);
  await eventually(async () => assert.match(await page.locator('.thread').innerText(), /What can I cook tonight\?[\s\S]*eggs[\s\S]*Please order the cheese\.[\s\S]*it costs 12 euros/));
  await page.locator('.turn-calls summary', { hasText: 'larder' }).click();
  await page.locator('.turn-calls[open] li', { hasText: 'eggs, rice' }).waitFor();
  await accessible(page, 'a thread');
});

test('a decision and a further message continue the conversation', async () => {
  await page.getByRole('button', { name: 'Approve', exact: true }).and(page.locator(':not([aria-disabled])')).click();
  await page.getByText('That is settled.').waitFor();
  await page.locator('.decide').waitFor({ state: 'detached' });
  await write().fill('Thank you!');
  await write().press('Shift+Enter');
  await eventually(async () => assert.equal(await write().inputValue(), 'Thank you!\n', 'with Shift, Enter begins a line'));
  await write().press('Enter');
  await page.getByText('Enjoy your dinner!').waitFor();
  await eventually(async () => assert.equal(await write().inputValue(), ''));
  await page.getByRole('link', { name: '3 runs' }).waitFor();
});

test('a message without an answer is sent again under its key, and begins one turn', async () => {
  await page.to('/conversations/garden', '.thread');
  const keys = [];
  await page.route('**/conversations/garden/messages', async (route) => {
    keys.push(route.request().headers()['idempotency-key']);
    if (keys.length > 1) return route.continue();
    await route.fetch();
    return route.abort();
  });
  const box = page.getByLabel('Message to Gardener');
  await box.fill('Water the roses.');
  await box.press('Enter');
  await page.getByRole('alert').filter({ hasText: 'cannot be reached' }).waitFor();
  await eventually(async () => assert.equal(await box.inputValue(), 'Water the roses.', 'the text stays'));
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.waitForFunction(() => document.querySelector('#write').value === '');
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  assert.equal(new Set(keys).size, 1);
  const { items } = await page.evaluate(async () => (await fetch('/api/v1/conversations')).json());
  const said = await page.evaluate(async () => {
    const { runs } = await (await fetch('/api/v1/conversations/garden')).json();
    const logs = await Promise.all(runs.map(async ({ id }) => (await (await fetch(`/api/v1/runs/${id}/events?limit=500`)).json()).items));
    return logs.flat().filter((event) => JSON.stringify(event).includes('Water the roses.')).map(({ message_id: id, start }) => id ?? start?.message?.id);
  });
  assert.equal(new Set(said).size, 1, 'one message, in the event of the start and in that of its delivery');
  assert.equal(items.length, 2);
});

test('a conversation begins with a brain, a name and a first message', async () => {
  await page.to('/conversations', '.talks a');
  await page.getByRole('link', { name: 'New conversation' }).click();
  await page.getByLabel('Brain').selectOption('Kitchen');
  await page.getByLabel(/^Name/).fill('lunch');
  await accessible(page, 'the form of a new conversation');
  await write().fill('What is for lunch?');
  await write().press('Enter');
  await page.waitForURL(/\/conversations\/lunch$/);
  await page.getByText('There are eggs').waitFor();
  page.check();
});

test('with prices, the list, the thread and each answer say what they cost', async () => {
  const priced = new Project();
  const prices = join(priced.folder, 'prices.toml');
  writeFileSync(prices, 'as_of = "2026-11-01"\ncurrency = "EUR"\n[prices]\n"cassette/kitchen" = { input = 100, output = 1000 }\n');
  priced.env.POSITRONIC_PRICES = prices;
  priced.talk('kitchen', 'dinner', 'ana', ['What can I cook tonight?']);
  const window = await open(browser, await priced.serve(0, '--no-work'));
  await window.to('/conversations', '.talks a');
  await eventually(async () => assert.match(await window.getByRole('link', { name: /eggs/ }).innerText(), /Kitchen · ana · 1 turn · €0\.1661 · dinner/));
  await window.to('/conversations/dinner', '.turn-head small');
  await eventually(async () => assert.match((await window.locator('.turn', { hasText: 'eggs' }).locator('.turn-head').innerText()).replace(/\s+/g, ' '), /332 tokens €0\.0710/));
  await eventually(async () => assert.match((await window.locator('.beside .fields').innerText()).replace(/\s+/g, ' '), /Cost €0\.1661/));
  await accessible(window, 'a conversation with prices');
  window.check();
  await window.close();
  await priced.close();
});

test('the list is filtered by what a conversation is about', async () => {
  for (const name of ['tea', 'rose', 'fern', 'moss']) project.talk('gardener', name, name === 'moss' ? 'mia' : 'ben', ['Hello.']);
  await page.to('/conversations', '.talks .find');
  const listed = () => page.locator('.queue.talks:not(.in-main) nav a');
  await eventually(async () => assert.ok(await listed().count() >= 6));
  await page.keyboard.press('/');
  await page.keyboard.type('garden mia');
  await eventually(async () => assert.equal(await listed().count(), 1));
  await eventually(async () => assert.match(await listed().innerText(), /mia · 1 turn · cost unknown · moss$/));
  await accessible(page, 'a list that is filtered');
  await page.keyboard.type(' nothing');
  await page.locator('.queue.talks:not(.in-main)', { hasText: 'None of them has these words.' }).waitFor();
  page.check();
});
