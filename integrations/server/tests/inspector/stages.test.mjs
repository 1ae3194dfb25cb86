// Stages beside steps, loops and brains: what they show, and a form that a person fills in.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { modelServer, Project } from './server.mjs';

const project = new Project();
let [browser, page] = [];

before(async () => {
  // It ends with the exit code of a run that waits.
  assert.throws(() => project.command('run', 'warranty', '--ask', '--id', 'claim'), /Sign off/);
  browser = await launch();
  page = await open(browser, await project.serve());
});
after(async () => { await browser?.close(); await project.close(); });

test('a form is filled in where a person decides, and the run goes on', async () => {
  await page.to('/inbox', '.decide.selected');
  const form = page.locator('.decide.selected');
  await eventually(async () => assert.match(await form.innerText(), /c-7: broken: the seal of the handle\. Refund\?/));
  await accessible(page, 'a form');
  await form.getByLabel('Comment').fill('Sorry.');
  await form.getByLabel('refund').selectOption('Yes');
  await form.getByRole('button', { name: 'Send answer' }).click();
  await form.waitFor({ state: 'detached' });
  await page.to('/runs/claim');
  await page.getByText('waits for bank c-7').waitFor();
  page.check();
});

test('the page of a run names the arm, and what a stage waited for', async () => {
  await page.to('/runs/claim');
  await page.getByText('branch → Diagnosis').waitFor();
  await page.getByText(/waited .* for c-7: broken: the seal of the handle\. Refund\?/).waitFor();
  await accessible(page, 'a run with stages');
  page.check();
});

test('a guard that does not pass is shown with its reason', async () => {
  project.command('run', 'warranty', '--id', 'old', '-o', 'months=30');
  await page.to('/runs/old');
  await page.getByText('did not pass: the rest is skipped').waitFor();
  await eventually(async () => assert.match(await page.locator('main').innerText(), /TooOld/));
  await accessible(page, 'a run that a guard has ended');
  page.check();
});

test('a question of a stage is answered in its run, on a phone too: no pane covers the form', async () => {
  assert.throws(() => project.command('run', 'warranty', '--ask', '--id', 'phone'), /Sign off/);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.to('/runs/phone', '.row');
  await page.getByRole('button', { name: 'Decide' }).click();
  const form = page.locator('.row .decide');
  await form.waitFor();
  await eventually(async () => assert.equal(await page.locator('.beside.pane').count(), 0));
  await accessible(page, 'a question in a run on a phone');
  await form.getByLabel('Comment').fill('Sorry.');
  await form.getByLabel('refund').selectOption('Yes');
  await form.getByRole('button', { name: 'Send answer' }).click();
  await form.waitFor({ state: 'detached' });
  // What was asked and answered is read in words.
  await page.locator('.row.stage', { hasText: 'Sign off' }).click();
  await eventually(async () => assert.match(await page.locator('.beside.pane').innerText(), /Waited for[\s\S]*the seal of the handle\. Refund\?[\s\S]*Answered[\s\S]*Sorry\./));
  await page.setViewportSize({ width: 1280, height: 900 });
  page.check();
});

test('what a group has run many times is folded, in words, and a failure of it is not', async () => {
  const suppliers = Array.from({ length: 12 }, (_, i) => `Supplier ${i + 1}`);
  const model = await modelServer(({ messages, tools }) => {
    const from = /from (Supplier \d+)/.exec(messages[0].content)?.[1];
    if (from === 'Supplier 7') return { status: 400 };
    const exit = tools?.find((one) => one.function.name !== 'write');
    return exit ? { calls: [{ name: exit.function.name, arguments: { euros: 70 } }] } : { text: '{"euros": 70}' };
  });
  const own = project.env;
  project.env = { ...own, OPENAI_BASE_URL: model.address, OPENAI_API_KEY: 'none', POSITRONIC_MODEL: 'gpt-5-mini' };
  await project.run('run', 'offers', '--id', 'many', '--options', JSON.stringify({ thing: 'kettle', budget: 80, suppliers }));
  project.env = own;
  model.close();
  await page.to('/runs/many/waterfall', '.bar-row');
  const label = (name) => page.locator('.bar-row', { has: page.getByText(name, { exact: true }) });
  await label('Item 1').getByRole('button', { name: 'Show what Item 1 did' }).waitFor();
  await label('Item 7').getByRole('button', { name: 'Hide what Item 7 did' }).waitFor();
  await eventually(async () => assert.equal(await page.getByText('#0').count(), 0));
  await accessible(page, 'a waterfall with folded items');
  await label('Item 1').getByRole('button').click();
  await label('Item 1').getByRole('button', { name: 'Hide what Item 1 did' }).waitFor();
  await page.locator('.tabs').getByRole('link', { name: 'Transcript' }).click();
  const row = page.locator('.row.stage', { hasText: 'Item 2' });
  // The transcript opens where the run waits.
  await page.locator('.row.stage', { hasText: 'Carriers' }).first().waitFor();
  await page.keyboard.press('Home');
  await eventually(async () => assert.match(await row.first().innerText(), /Item 2[\s\S]*Supplier 2/));
  await page.getByRole('button', { name: 'Show Item 2', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Hide Item 1', exact: true }).waitFor();
  await page.getByText('No answer: ').first().waitFor();
  await eventually(async () => assert.doesNotMatch(await page.locator('.lead').innerText(), /\d\.\d/, 'places are words'));
  // An event of what is folded unfolds it.
  await page.to('/runs/many', '.row');
  const seq = await page.evaluate(async () => (await (await fetch('/api/v1/runs/many/timeline')).json()).timeline.nodes.find(({ path, kind }) => path.startsWith('Suppliers/0.2/') && kind.type === 'answer').seq);
  await page.to(`/runs/many/transcript/${seq}`, '.row.selected.answer');
  page.check();
});

test('the structure lists the tools that a loop always has, also before any run', async () => {
  const tools = page.locator('.arms > li', { hasText: 'Diagnosis' }).locator('.tools-of li');
  await page.to('/brains/Warranty', '.flow li');
  await tools.filter({ hasText: 'done' }).waitFor();
  assert.match(await tools.first().innerText(), /manual\s*read only/, 'a run says what else it is');
  await page.route('**/api/v1/runs?*', (route) => route.fulfill({ json: { items: [], next: null } }));
  await page.to('/brains/Support', '.flow li');
  await page.to('/brains/Warranty', '.flow li');
  await tools.filter({ hasText: 'manual' }).waitFor();
  await eventually(async () => assert.equal(await tools.count(), 1));
  assert.equal(await tools.first().getAttribute('title'), 'Says what a part endures');
  await page.unroute('**/api/v1/runs?*');
  page.check();
});

test('an arrow of the structure stands before the stage that it leads to, and within its panel', async () => {
  for (const width of [1440, 900, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await page.to('/brains/Warranty', '.flow li');
    const arrows = () => page.locator('.panel:has(> .flow)').evaluate((panel) => [...panel.querySelectorAll('.flow > li')].map((stage) => {
      const [before, after] = ['::before', '::after'].map((part) => getComputedStyle(stage, part).content);
      return { isFirst: !stage.previousElementSibling, before, after, isInside: stage.getBoundingClientRect().left - 18 >= panel.getBoundingClientRect().left };
    }));
    await eventually(async () => {
      const list = await arrows();
      assert.ok(list.some(({ isFirst }) => !isFirst));
      for (const { isFirst, before, after, isInside } of list) assert.deepEqual([before === 'none', after, isFirst || isInside], [isFirst, 'none', true], `${width}`);
    });
  }
  page.check();
});
