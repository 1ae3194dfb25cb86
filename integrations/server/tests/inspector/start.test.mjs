// The form that starts a run: what is sent is what the form shows.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { Project } from './server.mjs';

const project = new Project();
let [browser, page] = [];

before(async () => {
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'));
});
after(async () => { await browser?.close(); await project.close(); });

const budget = () => page.getByLabel('Budget', { exact: false }).first();
const started = () => page.evaluate(async () => (await (await fetch('/api/v1/runs')).json()).items.length);

test('letters in a number field stop the form once, and do not start the run with the default', async () => {
  await page.to('/brains/Offers', 'form.start input[type=number]');
  await page.evaluate(() => {
    globalThis.said = [];
    addEventListener('invalid', ({ target }) => globalThis.said.push(target.validationMessage), true);
  });
  await budget().click();
  await page.keyboard.type('many');
  await eventually(async () => assert.equal(await budget().inputValue(), ''));
  await page.keyboard.press('Enter');
  await eventually(async () => assert.deepEqual(await page.evaluate(() => globalThis.said), ['Letters are no number: the field is empty.']));
  assert.equal(await started(), 0);
  await page.keyboard.type('1e');
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await eventually(async () => assert.equal(await budget().evaluate((field) => field.validity.badInput), true));
  assert.equal(await started(), 0);
});

test('a list shows its default, and what is added follows it', async () => {
  await page.to('/brains/Offers', 'form.start fieldset');
  await page.getByText('By default: Adler, Brix, Cato.').waitFor();
  await accessible(page, 'the form that starts a run');
  await page.getByRole('button', { name: 'Add to suppliers' }).click();
  await eventually(async () => assert.deepEqual(await page.locator('fieldset .item input').evaluateAll((all) => all.map(({ value }) => value)), ['Adler', 'Brix', 'Cato', '']));
});

test('the page of conversations without any is as high as its words', async () => {
  await page.to('/conversations', '.empty a.button');
  await eventually(async () => assert.ok((await page.getByRole('link', { name: 'Begin one' }).boundingBox()).height < 40));
  assert.equal(await page.getByText('No conversation waits for a person').count(), 0);
  page.check();
});
