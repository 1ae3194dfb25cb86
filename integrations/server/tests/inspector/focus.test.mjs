// What a person works with keeps its element, its focus and its text while events arrive, items move and the window changes.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually, launch, open } from './browser.mjs';
import { endedLog, Project, waitingLog } from './server.mjs';

const project = new Project();
let [browser, page] = [];
const schema = { type: 'object', properties: { to: { type: 'string' }, amount: { type: 'integer' } } };
const pay = (to, amount) => ({ tool: 'pay', arguments: { to, amount }, schema });
const item = (text) => page.locator('.decide').filter({ has: page.locator('.fields', { hasText: text }) });
/** Lets the lists of what waits have, for now, only the items that pass a test; returns how all of them arrive. */
async function hold(run, test) {
  let isHeld = true;
  const only = async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    const [name] = ['items', 'pending'].filter((one) => body[one]);
    await route.fulfill({ response, json: isHeld ? { ...body, [name]: body[name].filter((one) => one.run !== run || test(one)) } : body });
  };
  const isList = ({ pathname }) => ['/api/v1/pending', `/api/v1/runs/${run}`].includes(pathname);
  // A page that is left drops what it has asked for.
  await page.route(isList, (route) => only(route).catch(() => {}));
  return async () => {
    isHeld = false;
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  };
}
/** Begins to edit an item, and types the first half of a name. */
async function begin(text) {
  await item(text).getByRole('button', { name: 'Edit arguments' }).click();
  const field = item(text).getByLabel('to');
  await field.fill('');
  await field.pressSequentially('Ber');
  await field.evaluate((node) => { globalThis.typedIn = node; });
  return field;
}
/** Types the other half by the keyboard, into what has the focus. */
async function goOn(rest = 'tram') {
  await page.keyboard.type(rest, { delay: 10 });
  assert.equal(await page.evaluate(() => document.activeElement.value), `Ber${rest}`);
}
const isSame = () => page.evaluate(() => globalThis.typedIn === document.activeElement);

before(async () => {
  for (const run of ['inbox', 'beside', 'below']) project.import(waitingLog(run, { calls: [pay(`${run} one`, 1), pay(`${run} two`, 2)] }));
  for (const run of ['wide', 'other', 'reason']) project.import(waitingLog(run, { calls: [pay(`${run} one`, 1), pay(`${run} two`, 2)] }));
  for (let n = 0; n < 12; n++) project.import(endedLog(`ended-${n}`, { type: 'BRAIN_COMPLETE', result: n }));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'));
});
after(async () => { await browser?.close(); await project.close(); });

test('an item that becomes one of several keeps the field in which a person types', async () => {
  const arrive = await hold('inbox', ({ call }) => call.endsWith('.0'));
  await page.to('/inbox', '.alone');
  await begin('inbox one');
  await arrive();
  await page.locator('.batch', { hasText: 'inbox two' }).waitFor();
  assert.ok(await isSame());
  await goOn();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

test('an item in a run keeps it, too, beside the transcript and below its call', async () => {
  for (const [run, width] of [['beside', 1280], ['below', 1000]]) {
    await page.setViewportSize({ width, height: 900 });
    const arrive = await hold(run, ({ call }) => call.endsWith('.0'));
    await page.to(`/runs/${run}`, '.alone');
    await begin(`${run} one`);
    await arrive();
    await page.locator('.batch', { hasText: `${run} two` }).waitFor();
    assert.ok(await isSame(), run);
    await goOn();
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  }
  page.check();
});

test('a window that becomes wide or narrow moves a form with its focus and its caret', async () => {
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.to('/runs/wide', '.beside .decide');
  await begin('wide one');
  await page.keyboard.press('ArrowLeft');
  await page.setViewportSize({ width: 1000, height: 900 });
  await page.locator('.row .decide').first().waitFor();
  await page.keyboard.type('na');
  assert.equal(await page.evaluate(() => document.activeElement.value), 'Benar');
  // The caret of a number is at its end: digits before it would make another amount.
  const amount = item('wide one').getByLabel('amount');
  await amount.fill('');
  await amount.pressSequentially('2');
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.locator('.beside .decide').first().waitFor();
  await page.keyboard.type('49');
  assert.equal(await page.evaluate(() => document.activeElement.value), '249');
  page.check();
});

/** Approves a call in the name of another person. */
const decideElsewhere = (run, call) => page.evaluate(async ([id, place]) => {
  const { pending } = await (await fetch(`/api/v1/runs/${id}`)).json();
  const { id: asked } = pending.find((one) => one.call.endsWith(place));
  await fetch('/api/v1/decisions', { method: 'POST', headers: { 'Content-Type': 'application/json', 'Idempotency-Key': crypto.randomUUID() }, body: JSON.stringify([{ run: id, id: asked, approve: true }]) });
}, [run, call]);

test('the card of a selected call stays while a person edits it, also once it is decided elsewhere', async () => {
  await page.to('/runs/other', '.beside .batch');
  await page.locator('.row.call', { hasText: 'other one' }).click();
  await page.locator('.beside .decide.selected').waitFor();
  await begin('other one');
  await decideElsewhere('other', '.0');
  await page.locator('.beside .decide.closed', { hasText: 'approved this' }).waitFor();
  assert.equal(await page.locator('.beside .decide.closed').getByLabel('to').inputValue(), 'Ber');
  page.check();
});

test('the reason for all stays while others decide, up to the last call', async () => {
  await page.to('/inbox', '.batch');
  const card = page.locator('.batch', { hasText: 'reason two' });
  await card.locator(':scope > footer .primary:not([aria-disabled])').waitFor();
  await card.getByRole('button', { name: 'Reject all 2…' }).click();
  await card.getByLabel('Reason for all').and(page.locator(':focus')).waitFor();
  await page.keyboard.type('Ber');
  await card.getByLabel('Reason for all').evaluate((node) => { globalThis.typedIn = node; });
  await decideElsewhere('reason', '.0');
  await card.getByRole('button', { name: 'Reject the last one', exact: true }).waitFor();
  assert.ok(await isSame());
  await goOn();
  page.check();
});

test('a chosen run keeps its box and the focus while runs come above it', async () => {
  await page.to('/runs?brain=Sum', '.run-row');
  const box = page.locator('.run-row', { has: page.locator('[title=ended-3]') }).getByRole('checkbox');
  await box.check();
  await box.evaluate((node) => { globalThis.typedIn = node; });
  for (let n = 0; n < 9; n++) project.import(endedLog(`later-${n}`, { type: 'BRAIN_COMPLETE', result: n }));
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await eventually(async () => assert.equal(await page.locator('.run-row').count(), 21));
  assert.ok(await isSame());
  assert.ok(await box.isChecked());
  page.check();
});

test('what a person opens stays open while the page is drawn, until what opens it changes', async () => {
  const opened = await page.evaluate(async () => {
    const { render, tags } = await import(document.querySelector('script[type=module]').src.replace(/app\.js$/, 'lib/dom.js'));
    const host = document.createElement('div');
    const draw = (open) => {
      render(host, tags.details({ open }, tags.summary('Part')));
      return host.firstChild.open;
    };
    const first = draw(false);
    host.firstChild.open = true;
    return [first, draw(false), draw(true), draw(false)];
  });
  assert.deepEqual(opened, [false, true, true, false]);
  page.check();
});
