// The calls of one answer that need approvals are one card, in the inbox and in the run: a decision for each, and one for all.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { Project, waitingLog } from './server.mjs';

const project = new Project();
let [browser, page] = [];
const pay = (to, more) => ({ tool: 'pay', arguments: { to }, ...more });
const three = (run, ...names) => project.import(waitingLog(run, { calls: [pay(names[0]), pay(names[1], { schema: { type: 'object', properties: { to: { type: 'string' } } } }), { tool: 'mail', arguments: { to: names[2] } }] }));
const card = (text) => page.locator('.batch', { hasText: text });
const part = (text) => page.locator('.batch .decide').filter({ has: page.locator('.fields', { hasText: text }) });
const ready = (text) => page.locator('.batch', { hasText: text }).locator(':scope > footer .primary:not([aria-disabled])').waitFor();
const decided = (run) => page.evaluate(async (id) => {
  const { items } = await (await fetch(`/api/v1/runs/${id}/events?type=LOOP_APPROVAL_DECIDED`)).json();
  return items.map(({ path, decision, reason, arguments: edited }) => [path, decision, reason ?? edited?.to ?? null]);
}, run);

before(async () => {
  three('each', 'Ann', 'Ben', 'Cem');
  three('all', 'Dea', 'Eli', 'Fay');
  three('none', 'Gus', 'Hal', 'Ida');
  three('run', 'Jon', 'Kim', 'Lea');
  project.import(waitingLog('single', { calls: [pay('Max')] }));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'));
});
after(async () => { await browser?.close(); await project.close(); });

test('the calls of one answer are one card and one line of the queue', async () => {
  await page.to('/inbox', '.batch');
  await eventually(async () => assert.equal(await page.locator('.batch').count(), 4));
  await eventually(async () => assert.equal(await page.locator('.queue > button').count(), 5));
  await eventually(async () => assert.equal(await page.locator('.inbox > .alone > .decide').count(), 1, 'one call alone is a card of its own'));
  await eventually(async () => assert.match(await card('Ann').innerText(), /^3 approvals[\s\S]*pay ×2, mail money moves\s+3 calls of one answer\s+Till each/));
  await eventually(async () => assert.match(await page.locator('.queue > button', { hasText: 'Till each' }).innerText(), /pay ×2, mail: money moves/));
  await accessible(page, 'cards with several calls');
});

test('each call of a card has a decision of its own, and the others stay', async () => {
  await ready('Ann');
  await part('Ben').getByRole('button', { name: 'Approve', exact: true }).click();
  await part('Ben').waitFor({ state: 'detached' });
  assert.deepEqual(await decided('each'), [['Chat/0.1', 'approved', null]]);
  await ready('Ann');
  await card('Ann').getByRole('button', { name: 'Approve all 2' }).waitFor();
  await part('Ann').getByRole('button', { name: 'Approve', exact: true }).click();
  await part('Ann').waitFor({ state: 'detached' });
  await eventually(async () => assert.equal(await card('Cem').locator(':scope > footer').count(), 0, 'for one call there is no decision about all'));
});

test('all calls of a card are approved at once, with the edits of each', async () => {
  await part('Eli').getByRole('button', { name: 'Edit arguments' }).click();
  await part('Eli').getByLabel('to').fill('Eva');
  await ready('Dea');
  await card('Dea').getByRole('button', { name: 'Approve all 3, 1 as edited' }).click();
  await card('Dea').waitFor({ state: 'detached' });
  assert.deepEqual(await decided('all'), [['Chat/0.0', 'approved', null], ['Chat/0.1', 'approved', 'Eva'], ['Chat/0.2', 'approved', null]]);
});

test('all calls of a card are rejected with one reason, which a key does not send', async () => {
  await ready('Gus');
  await card('Gus').getByRole('button', { name: 'Reject all 3…' }).click();
  await card('Gus').getByLabel('Reason for all').fill('Not today');
  await page.keyboard.press('a');
  await accessible(page, 'the reason for all');
  assert.deepEqual(await decided('none'), []);
  await card('Gus').getByLabel('Reason for all').fill('Not today');
  await ready('Gus');
  await card('Gus').getByRole('button', { name: 'Reject all 3', exact: true }).click();
  await card('Gus').waitFor({ state: 'detached' });
  assert.deepEqual(await decided('none'), [0, 1, 2].map((call) => [`Chat/0.${call}`, 'rejected', 'Not today']));
});

test('a run has the card beside its transcript, or below the last call of the answer in a narrow window, and its key leads there', async () => {
  await page.setViewportSize({ width: 1000, height: 900 });
  await page.to('/runs/run', '.row .batch');
  await eventually(async () => assert.match(await page.locator('.row', { has: page.locator('.batch') }).innerText(), /mail\s+to: Lea[\s\S]*Jon[\s\S]*Kim[\s\S]*Lea/));
  await page.setViewportSize({ width: 1280, height: 420 });
  await page.locator('.beside .batch').waitFor();
  await eventually(async () => assert.equal(await page.locator('.row .batch').count(), 0));
  await accessible(page, 'a run with what waits beside it');
  await ready('Jon');
  // A key decides what is seen only, and the foot of the card covers the last call.
  await part('Lea').evaluate((item) => item.focus({ preventScroll: true }));
  await page.keyboard.press('a');
  await part('Lea').getByRole('button', { name: 'Approve', exact: true }).evaluate((button) => button.focus({ preventScroll: true }));
  await page.keyboard.press('Enter');
  assert.deepEqual(await decided('run'), []);
  // A call that waits is read with its decision, and what else is selected with its details.
  await page.locator('.row.call', { hasText: 'Lea' }).click();
  await page.locator('.beside .decide.selected', { hasText: 'Lea' }).waitFor();
  await page.getByText('No text, 3 calls').click();
  await page.getByRole('complementary', { name: 'Details' }).waitFor();
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.keyboard.press('d');
  await page.locator('.batch .decide:focus').waitFor();
  await ready('Jon');
  await card('Jon').getByRole('button', { name: 'Approve all 3' }).click();
  await card('Jon').waitFor({ state: 'detached' });
  await eventually(async () => assert.equal((await decided('run')).length, 3));
  page.check();
});

test('a click on the foot of a card does not hit it after it has moved', async () => {
  three('late', 'Nora', 'Ole', 'Pam');
  await page.to('/inbox', '.batch');
  await ready('Nora');
  const all = card('Nora').getByRole('button', { name: 'Approve all 3' });
  await all.scrollIntoViewIfNeeded();
  // What is added above moves the foot without a drawing.
  await all.evaluate((button) => {
    button.closest('.batch').style.paddingTop = '90px';
    button.click();
  });
  assert.deepEqual(await decided('late'), []);
  page.check();
});
