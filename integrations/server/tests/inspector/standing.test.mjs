// What runs are called beside their status finds them: in the list, in its suggestions and in a terminal, with the command that the page shows.
import assert from 'node:assert/strict';
import { execSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { endedLog, limitedLog, longLog, pricedLog, Project } from './server.mjs';

const project = new Project();
let [browser, page] = [];
const field = () => page.getByRole('combobox', { name: 'Find runs' });
const ids = () => page.locator('.run-row .mono').allInnerTexts();
const counts = async () => (await page.locator('.counts').innerText()).replace(/\s+/g, ' ').trim();

before(async () => {
  project.import(longLog(20));
  project.import(limitedLog('cut', 500));
  project.import(endedLog('over', { type: 'BRAIN_COMPLETE', result: 'All is well.' }));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'), { viewport: { width: 1440, height: 900 } });
});
after(async () => { await browser?.close(); await project.close(); });

test('a run that no worker has is found by the word that its row shows', async () => {
  await page.to('/runs', '.run-row');
  await eventually(async () => assert.match(await page.locator('.run-row', { hasText: 'long-run' }).innerText(), /^\s*Stuck/));
  await field().fill('stu');
  await page.getByRole('option', { name: /^status:stuck/ }).click();
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/runs\?status=stuck$/);
  await eventually(async () => assert.deepEqual(await ids(), ['long-run']));
  await eventually(async () => assert.match(await counts(), /^1 run Not in this list: 2 completed$/));
  await accessible(page, 'a list of stuck runs');
  page.check();
});

test('a word of two words is suggested with its quotes', async () => {
  await page.to('/runs', '.run-row');
  await field().fill('status:cut');
  await page.getByRole('option', { name: /^cut off/i }).click();
  assert.equal((await field().inputValue()).trim(), 'status:"cut off"');
  await page.keyboard.press('Enter');
  await eventually(async () => assert.deepEqual(await ids(), ['cut']));
  await eventually(async () => assert.match(await counts(), /^1 run 500 tokens Not in this list: 1 running 1 completed/));
  page.check();
});

test('the command beside a search lists the same runs in a terminal', async () => {
  const listed = (command) => execSync(command, { cwd: project.folder, env: project.env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  for (const [search, run] of [['status=stuck', 'long-run'], ['status=cut+off', 'cut'], ['q=all+%22is+well%22', 'over']]) {
    await page.to(`/runs?${search}`, '.run-row');
    const command = await page.locator('.head .command code').innerText();
    const rows = listed(command).trim().split('\n').filter((line) => /long-run|cut|over/.test(line));
    assert.equal(rows.length, 1, command);
    assert.match(rows[0], new RegExp(run), command);
  }
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.locator('.head .command').getByRole('button', { name: 'Copy' }).click();
  await eventually(async () => assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await page.locator('.head .command code').innerText()));
});

test('a caller who may not do all of it gets no command, which would name a folder of the server', async () => {
  const token = /\S{20,}/.exec(project.command('token', 'create', 'reader', '--scope', 'read'))[0];
  const other = await browser.newPage({ baseURL: new URL(page.url()).origin, extraHTTPHeaders: { Authorization: `Bearer ${token}` } });
  await other.goto('/ui/runs?status=stuck');
  await other.locator('.run-row').waitFor();
  await eventually(async () => assert.match(await other.locator('.head').innerText(), /Times in/));
  assert.equal(await other.locator('.command').count(), 0);
  await other.close();
});

test('a click beside the small box of a row chooses the run, and does not leave the list', async () => {
  await page.to('/runs', '.run-row');
  const cell = page.locator('.run-row', { hasText: 'long-run' }).locator('.c-pick');
  const { height } = await cell.boundingBox();
  for (const isChosen of [true, false]) {
    await cell.click({ position: { x: 4, y: height - 4 } });
    await eventually(async () => assert.equal(await cell.getByRole('checkbox').isChecked(), isChosen));
  }
  await cell.getByRole('checkbox').click();
  await eventually(async () => assert.equal(await cell.getByRole('checkbox').isChecked(), true, 'once'));
  assert.match(page.url(), /\/runs$/);
  page.check();
});

test('a run whose row nothing else explains says what it has done last', async () => {
  const priced = pricedLog('', [{ model: 'one', input: 1 }, { model: 'one', input: 1 }]).map((line) => JSON.parse(line));
  const words = { LOOP_START: 'Chat started', LOOP_MODEL_CALL: 'Asked acme/one', LOOP_TOOL_START: 'look started', LOOP_TOOL_RESULT: 'A call returned' };
  for (const type of Object.keys(words)) {
    const [header, ...events] = priced.slice(0, priced.findIndex((event) => event.type === type) + 1);
    project.import([{ ...header, run: type.toLowerCase(), events: events.length }, ...events].map((line) => JSON.stringify(line)));
  }
  await page.to('/runs?brain=Priced', '.run-row');
  for (const [type, said] of Object.entries(words)) {
    const row = page.locator('.run-row').filter({ has: page.locator(`[title="${type.toLowerCase()}"]`) });
    await eventually(async () => assert.equal((await row.locator('.cause').innerText()).trim(), said));
  }
  page.check();
});
