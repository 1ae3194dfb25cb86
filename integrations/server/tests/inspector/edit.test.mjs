// Editing the arguments of a call before its approval, by keyboard alone, in the inbox and in a run.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { Project, waitingLog } from './server.mjs';

const project = new Project();
const NOTE = 'The tank of the machine is broken and not loose, and it arrived twelve days ago.';
let [browser, page] = [];

before(async () => {
  const schema = { type: 'object', properties: { amount: { type: 'integer' }, note: { type: 'string' } }, required: ['amount', 'note'] };
  const call = (amount) => ({ tool: 'refund', arguments: { amount, note: NOTE }, schema });
  for (const [run, ...amounts] of [['single', 249], ['second', 120], ['several', 30, 40], ['emptied', 777]]) project.import(waitingLog(run, { calls: amounts.map(call) }));
  const order = { type: 'object', properties: { order: { type: 'string', pattern: '^A-' } }, required: ['order'] };
  project.import(waitingLog('refused', { calls: [{ tool: 'cancel', arguments: { order: 'A-888' }, schema: order }] }));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'), { viewport: { width: 1440, height: 900 } });
});
after(async () => { await browser?.close(); await project.close(); });

const card = (run, n = 0) => page.locator('.decide', { hasText: n ? '40' : { single: '249', second: '120', several: '30', emptied: '777', refused: '888' }[run] }).first();
const decisions = (run) => page.evaluate(async (id) => (await (await fetch(`/api/v1/runs/${id}/events?type=LOOP_APPROVAL_DECIDED&limit=9`)).json()).items.map(({ decision, arguments: given }) => [decision, given?.amount]), run);
const places = (of) => of.locator('footer button').evaluateAll((all) => all.map((node) => { const { x, y, width } = node.getBoundingClientRect(); return [x, y, width]; }));
/** Selects an item of the inbox, which can be decided then. */
async function select(of) {
  await page.to('/inbox', '.decide');
  for (let n = await page.locator('.decide').count(); n > 0; n--) {
    if (await of.and(page.locator('.selected')).count()) break;
    const before = await page.locator('.decide.selected').getAttribute('id');
    await page.keyboard.press('j');
    await page.locator(`.decide.selected:not(#${before})`).waitFor();
  }
  await of.and(page.locator('.selected')).locator('.primary:not([aria-disabled])').waitFor();
}
/** Types a further digit, and sends the form at once. */
async function edit(of, key) {
  await of.locator('input[type=number]:focus').waitFor();
  const before = await places(of);
  await page.keyboard.press('End');
  await page.keyboard.type('5');
  await eventually(async () => assert.match(await of.locator('.edits').innerText(), /5/));
  assert.deepEqual(await places(of), before, 'no button moves while one types');
  assert.equal(await of.locator('.primary').getAttribute('aria-disabled'), null);
  await page.keyboard.press(key);
}

test('E, an edit and Ctrl+Enter decide an item of the inbox', async () => {
  const single = card('single');
  await select(single);
  await page.keyboard.press('e');
  await accessible(page, 'an item that is edited');
  await eventually(async () => assert.match(await single.locator('footer').innerText(), /Ctrl ↵ approves the form/));
  await single.locator('.primary:not([aria-disabled])').waitFor();
  await edit(single, 'Control+Enter');
  await eventually(async () => assert.deepEqual(await decisions('single'), [['approved', 2495]]));
});

test('a text keeps its height when its field is left, and a key of the page sends the form', async () => {
  const second = card('second');
  await select(second);
  await page.keyboard.press('e');
  await second.locator('input:focus').waitFor();
  await page.keyboard.press('Tab');
  const note = second.getByLabel('note');
  await note.and(page.locator(':focus')).waitFor();
  const { height } = await note.boundingBox();
  await note.fill('Short.');
  await page.keyboard.press('Escape');
  await eventually(async () => assert.equal(await page.locator(':focus').and(note).count(), 0));
  await eventually(async () => assert.equal((await note.boundingBox()).height, height));
  await second.locator('.primary:not([aria-disabled])').waitFor();
  await page.keyboard.press('Meta+Enter');
  await eventually(async () => assert.deepEqual(await decisions('second'), [['approved', 120]]));
});

test('what the server refuses stands at its field, once', async () => {
  const refused = card('refused');
  await select(refused);
  await page.keyboard.press('e');
  await refused.getByLabel('order').fill('B-1');
  await refused.locator('.primary:not([aria-disabled])').waitFor();
  await page.keyboard.press('Control+Enter');
  await refused.getByRole('alert').waitFor();
  await eventually(async () => assert.equal(await refused.getByLabel('order').getAttribute('aria-invalid'), 'true'));
  await eventually(async () => assert.match(await refused.getByRole('alert').innerText(), /^The edited arguments of Chat\/0\.0 are invalid$/));
  await eventually(async () => assert.match(await refused.locator('.field .error').innerText(), /does not match/));
  await accessible(page, 'an item that was refused');
});

test('an argument that is emptied is asked about once, by the keyboard alone', async () => {
  const emptied = card('emptied');
  await select(emptied);
  await page.keyboard.press('e');
  await emptied.locator('input:focus').waitFor();
  await page.keyboard.press('Tab');
  await emptied.getByLabel('note').and(page.locator(':focus')).waitFor();
  await page.keyboard.press('Control+a');
  await page.keyboard.press('Delete');
  await eventually(async () => assert.match(await emptied.locator('h2').innerText(), /\(empty\)/));
  await emptied.locator('.primary:not([aria-disabled])').waitFor();
  await page.keyboard.press('Control+Enter');
  await emptied.getByRole('alert').getByText('note would be sent empty.').waitFor();
  assert.deepEqual(await decisions('emptied'), []);
  await accessible(page, 'the question about an empty argument');
  await emptied.getByLabel('note').fill('Late.');
  await eventually(async () => assert.equal(await emptied.getByRole('alert').count(), 0));
  await emptied.getByLabel('note').fill('');
  await emptied.getByRole('button', { name: 'Approve with note empty' }).and(page.locator(':not([aria-disabled])')).waitFor();
  await page.keyboard.press('Control+Enter');
  await eventually(async () => assert.deepEqual(await decisions('emptied'), [['approved', 777]]));
});

test('D, E and Cmd+Enter decide a call of a run, and Escape leaves the field before the form', async () => {
  await page.to('/runs/several', '.batch');
  await page.keyboard.press('d');
  const first = card('several');
  await first.and(page.locator(':focus')).waitFor();
  await page.keyboard.press('e');
  await first.locator('input:focus').waitFor();
  await page.keyboard.press('Escape');
  await first.and(page.locator(':focus')).waitFor();
  await page.keyboard.press('Escape');
  await first.getByRole('button', { name: 'Edit arguments' }).waitFor();
  await page.keyboard.press('e');
  await first.locator('.primary:not([aria-disabled])').waitFor();
  await edit(first, 'Meta+Enter');
  await eventually(async () => assert.deepEqual(await decisions('several'), [['approved', 305]]));
  await eventually(async () => assert.match(page.url(), /runs\/several/));
  page.check();
});
