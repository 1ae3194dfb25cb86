// Actions on many runs, the last event in words, forks with changes, and the comparison with the requests.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { endedLog, Project, waitingLog } from './server.mjs';

const project = new Project();
let [browser, page] = [];
const dialog = () => page.locator('dialog');

before(async () => {
  project.command('run', 'support');
  for (let i = 0; i < 3; i++) project.import(waitingLog(`till-${i}`, { calls: [{ tool: 'pay', arguments: { amount: i } }] }));
  browser = await launch();
  page = await open(browser, await project.serve());
});
after(async () => { await browser?.close(); await project.close(); });

test('a row says what the run is about, and its result or why it waits', async () => {
  const rows = await page.evaluate(async () => (await (await fetch('/api/v1/runs')).json()).items.map(({ brain, last_event: last }) => [brain, last]));
  assert.deepEqual(rows.filter(([brain]) => brain === 'Support'), [['Support', { type: 'BRAIN_COMPLETE', path: '' }]]);
  for (const [, last] of rows.filter(([brain]) => brain === 'Till')) assert.deepEqual(last, { type: 'LOOP_APPROVAL_REQUESTED', path: 'Chat/0.0', name: 'pay' });
  await page.to('/runs?brain=Support', '.run-row');
  await eventually(async () => assert.match(await page.locator('.run-row').innerText(), /Completed[\s\S]*The espresso machine of my order A-1001 leaks\.[\s\S]*The tank is broken; 249 euros were paid back\./));
  await page.to('/runs?brain=Till', '.run-row');
  await eventually(async () => assert.match(await page.locator('.run-row .c-why').first().innerText(), /^Begin\.\s+pay needs an approval: money moves Chat, iteration 1/));
});

test('a failed run names its cause first, and its place after it', async () => {
  const message = 'the brain `Research` failed: the model of the loop `Research/Read` failed 4 times: rate limit reached (HTTP 429); ask for more';
  project.import(endedLog('broke', { type: 'BRAIN_ERROR', code: 'brain', message, retryable: false }));
  await page.to('/runs?status=failed', '.run-row');
  await eventually(async () => assert.equal((await page.locator('.run-row .c-why').innerText()).trim(), 'Rate limit reached (HTTP 429), after 4 attempts Research › Read'));
  await page.to('/runs/broke', '.run-head h1');
  await eventually(async () => assert.match(await page.locator('.run-head').innerText(), /Rate limit reached \(HTTP 429\), after 4 attempts/));
});

test('the end of an id, as the page prints it, opens the run from an address and in the palette', async () => {
  await page.to('/runs?brain=Support', '.run-row');
  const short = await page.locator('.run-row .mono').innerText();
  const id = await page.locator('.run-row .mono').getAttribute('title');
  assert.ok(short.length < 8 && id.endsWith(short), `${short} of ${id}`);
  await page.to(`/runs/${short}`, '.run-head h1');
  await eventually(async () => assert.match(page.url(), new RegExp(`/runs/${id}$`)));
  await page.keyboard.press('ControlOrMeta+k');
  await page.keyboard.type(short);
  await dialog().getByRole('option', { name: `Support ${short}` }).click();
  await page.waitForURL(`**/runs/${id}`);
});

test('a search is typed as words with keys, and kept as a view with its name', async () => {
  await page.to('/runs', '.run-row');
  await page.keyboard.press('/');
  await page.keyboard.type('brain:support status:completed');
  // Behind the text, each condition has a chip at its place; a key without a value has none.
  const chips = page.locator('.chips i');
  await eventually(async () => assert.deepEqual(await chips.allTextContents(), ['brain:support', 'status:completed']));
  await page.keyboard.type(' tool:');
  await eventually(async () => assert.equal(await page.locator('.chips').textContent(), 'brain:support status:completed tool:'));
  assert.equal(await chips.count(), 2);
  for (let n = 0; n < ' tool:'.length; n++) await page.keyboard.press('Backspace');
  await page.keyboard.press('Enter');
  await page.waitForURL(/brain=Support/);
  await eventually(async () => assert.match(page.url(), /status=completed/));
  await page.getByRole('button', { name: 'Save view' }).click();
  await dialog().getByLabel('Name').fill('Answered');
  await dialog().getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('link', { name: 'All' }).click();
  await page.getByRole('link', { name: 'Answered' }).click();
  await page.waitForURL(/brain=Support/);
  await eventually(async () => assert.equal(await page.getByRole('combobox', { name: 'Find runs' }).inputValue(), 'status:completed brain:Support'));
  await page.getByRole('button', { name: 'Forget view' }).click();
  await page.getByRole('link', { name: 'Answered' }).waitFor({ state: 'detached' });
});

test('cancelling many runs names their number first, and reports each', async () => {
  await page.to('/runs', '.run-row');
  await page.getByRole('button', { name: 'Choose all' }).click();
  await page.getByText('5 chosen').waitFor();
  await accessible(page, 'the list with chosen runs');
  await page.getByRole('button', { name: 'Cancel…' }).click();
  await dialog().getByRole('heading', { name: 'Cancel 3 runs?' }).waitFor();
  await eventually(async () => assert.match(await dialog().innerText(), /2 chosen runs have ended already/));
  // One of them ends before the dialog is confirmed.
  project.command('cancel', 'till-1');
  await dialog().getByRole('button', { name: 'Cancel 3 runs' }).click();
  await dialog().getByText('3 of 3 sent').waitFor();
  const results = await dialog().locator('.results li').allInnerTexts();
  assert.equal(results.filter((text) => text.endsWith(' cancelled')).length, 2, results.join('\n'));
  await accessible(page, 'the results of many actions');
  await dialog().getByRole('button', { name: 'Close' }).click();
  await page.getByText('3 cancelled').waitFor();
});

test('a chosen run runs again as a new one', async () => {
  await page.to('/runs?brain=Support', '.run-row');
  await page.keyboard.press('x');
  await page.getByRole('button', { name: 'Rerun…' }).click();
  await dialog().getByRole('button', { name: 'Rerun 1 run' }).click();
  await dialog().locator('.results', { hasText: 'runs again as' }).waitFor();
  await dialog().locator('.results a').last().click();
  await page.locator('.run-head').waitFor();
  await page.getByText('forked from').waitFor();
});

test('a fork with changed options is compared by its requests', async () => {
  const [run] = await page.evaluate(async () => (await (await fetch('/api/v1/runs?brain=Support&status=completed')).json()).items.map(({ id }) => id));
  await page.to(`/runs/${run}/transcript/0`, '.row');
  await page.keyboard.press('Escape');
  await page.locator('summary[title=Actions]').click();
  await page.getByRole('button', { name: 'Rerun from a stage…' }).click();
  await dialog().getByText(/will run again/).waitFor();
  await dialog().getByRole('combobox', { name: 'stage' }).selectOption('Chat');
  await dialog().getByText('More', { exact: true }).click();
  await dialog().getByRole('textbox', { name: 'system' }).fill('Be brief.');
  await accessible(page, 'the dialog of a rerun');
  await dialog().getByRole('button', { name: 'Rerun', exact: true }).click();
  await page.getByRole('link', { name: 'compare' }).waitFor();
  await page.locator('.row.call').first().waitFor();
  const running = () => page.evaluate(async () => (await (await fetch('/api/v1/runs?brain=Support&status=running')).json()).items.length);
  await eventually(async () => assert.equal(await running(), 0), Date.now() + 30_000);
  await page.getByRole('link', { name: 'compare' }).click();
  await page.getByRole('heading', { name: 'First difference' }).waitFor();
  const parts = await page.locator('.panel', { hasText: 'First difference' }).innerText();
  assert.match(parts, /A, event \d+: Chat, iteration 1, loop iteration · B, event \d+: Chat/);
  await accessible(page, 'the comparison with requests');
  page.check();
});

test('a run that waits for several decisions says how many, and of which tool', async () => {
  project.import(waitingLog('several', { calls: [1, 2, 3].map((amount) => ({ tool: 'pay', arguments: { amount } })) }));
  await page.to('/runs', '.run-row');
  const row = page.locator('.run-row', { hasText: 'several' });
  await eventually(async () => assert.match(await row.locator('.cause').innerText(), /^3 calls of pay need an approval: money moves Chat, iteration 1$/));
});

test('a cause is short in the list: without the address of the model, and with the status of its answer', async () => {
  const message = 'the model of the loop `Chat` failed: the key is refused (http://127.0.0.1:1/v1/chat/completions; no API key was sent); set OPENAI_API_KEY to a key of this endpoint (HTTP 401)';
  project.import(endedLog('keyless', { type: 'BRAIN_ERROR', code: 'model', message, retryable: true }));
  await page.to('/runs', '.run-row');
  const row = page.locator('.run-row', { hasText: 'keyless' });
  await eventually(async () => assert.equal((await row.locator('.cause').innerText()).trim(), 'The key is refused (HTTP 401) Chat'));
});
