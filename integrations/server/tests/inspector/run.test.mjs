// The page of a run: its cause first, numbered iterations, the failure where it happened, safe Markdown, the pane, and keys that go where they say.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { modelServer, pricedLog, Project, refusedLog, waitingLog } from './server.mjs';

const project = new Project();
let [browser, page] = [];
const TEXT = ['The tank is **broken**, see [our rules](https://rules.example.org/a) and [this](javascript:alert(1)) or [that](data:text/html,x).', '',
  '| Case | Paid back |', '|---|---|', '| within 30 days | <img src=x onerror=alert(2)> |', '', '![a picture](https://evil.example.org/x.png)', '', '- one', '- two', '', '```', '**as it is**', '```', '', '<script>alert(3)</script>'].join('\n');
const selected = () => page.locator('.row.selected');
const decided = async (run) => (await page.evaluate(async (id) => (await (await fetch(`/api/v1/runs/${id}`)).json()).head, run));

before(async () => {
  project.import(refusedLog('refused', TEXT));
  project.import(waitingLog('asking', { calls: [{ tool: 'pay', arguments: { amount: 1 } }, { tool: 'pay', arguments: { amount: 2 } }] }));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'));
});
after(async () => { await browser?.close(); await project.close(); });

test('the head says the cause first, without the chain of what is around it, and stays small', async () => {
  await page.to('/runs/refused', '.row');
  await eventually(async () => assert.match(await page.locator('.run-head .lead').innerText(), /^Rate limit reached for model \(HTTP 429\), after 3 attempts Chat, iteration 3$/));
  assert.ok((await page.locator('.frame > .head').boundingBox()).height < 120, 'two lines and the tabs');
  const main = page.locator('.run-head .primary');
  await eventually(async () => assert.deepEqual((await main.allInnerTexts()).map((text) => text.replace(/\s+/g, ' ')), ['Retry iteration 3 R'], 'one main action'));
});

test('iterations are numbered, and an answer that has only calls has a row', async () => {
  await eventually(async () => assert.deepEqual(await page.locator('.row > .n').allInnerTexts(), ['1', '2', '3']));
  await page.getByText('No text, 2 calls').waitFor();
  await eventually(async () => assert.equal(await page.getByText(/2 calls in parallel/).count(), 1, 'calls that ran together say so'));
  await eventually(async () => assert.equal(await page.locator('.row.parallel').count(), 2));
});

test('the failure is shown where it happened, with each attempt once and the cause once', async () => {
  const row = page.locator('.row.no-answer');
  await eventually(async () => assert.equal(await row.count(), 1));
  const text = await row.innerText();
  assert.match(text, /No answer: Rate limit reached for model/);
  assert.equal(text.match(/Rate limit reached/g).length, 1);
  await eventually(async () => assert.deepEqual((await row.locator('.attempts li').allInnerTexts()).map((line) => /HTTP 429|no answer/.exec(line)?.[0]), ['HTTP 429', 'HTTP 429', 'no answer']));
  await eventually(async () => assert.doesNotMatch(await page.locator('main').innerText(), /after a crash/));
  await eventually(async () => assert.match(await page.locator('.row.stage', { hasText: 'Report' }).innerText(), /not reached/));
  await eventually(async () => assert.match(await page.locator('.row.stage', { hasText: 'Chat' }).locator('.fig').innerText(), /^2,992/, 'the tokens of all answers of the loop'));
  await accessible(page, 'a failed run');
});

test('a result that is cut has a mark and unfolds, and an empty one says so', async () => {
  const outputs = [{ words: 'so long '.repeat(20), end: 'whole' }, '', []];
  project.import(pricedLog('long-results', Array.from({ length: 4 }, () => ({ model: 'small', amount: '0.1', input: 9 }))).map((line) => {
    const event = JSON.parse(line);
    return JSON.stringify(event.type === 'LOOP_TOOL_RESULT' ? { ...event, result: { type: 'success', output: outputs.shift() } } : event);
  }));
  await page.to('/runs/long-results', '.row.call');
  const result = page.locator('.row.call .result');
  await eventually(async () => assert.deepEqual([await result.nth(1).innerText(), await result.nth(2).innerText()], ['empty text', 'empty list']));
  const summary = result.first().locator('summary');
  assert.notEqual(await summary.evaluate((node) => getComputedStyle(node, '::before').content), 'none', 'the mark');
  await summary.click();
  await result.first().getByText('whole', { exact: true }).waitFor();
  await page.keyboard.press('Escape');
  await accessible(page, 'a result that is unfolded');
  page.check();
});

test('the key e goes to the failure that ended the run, and not to what is around it', async () => {
  await page.to('/runs/refused', '.row');
  await page.keyboard.press('e');
  await selected().and(page.locator('.no-answer')).waitFor();
  await page.keyboard.press('[');
  await selected().filter({ hasText: 'No text, 2 calls' }).waitFor();
  await page.keyboard.press(']');
  await eventually(async () => assert.equal(await selected().count(), 1));
  await page.keyboard.press('u');
  await selected().filter({ hasText: 'Chat' }).and(page.locator('.stage')).waitFor();
});

test('the Markdown of a model is nodes: a table, emphasis, links to http only, no picture and no markup', async () => {
  await page.to('/runs/refused', '.row .md table');
  const md = page.locator('.row .md');
  await eventually(async () => assert.equal(await md.locator('b').first().innerText(), 'broken'));
  await eventually(async () => assert.deepEqual(await md.locator('td').allInnerTexts(), ['within 30 days', '<img src=x onerror=alert(2)>']));
  await eventually(async () => assert.deepEqual(await md.locator('a').evaluateAll((links) => links.map((link) => [link.href, link.rel])), [['https://rules.example.org/a', 'noopener noreferrer nofollow']]));
  await eventually(async () => assert.match(await md.innerText(), /our rules \(rules\.example\.org\)/, 'the host stands beside the text of a link'));
  await eventually(async () => assert.equal(await page.locator('main img, main script').count(), 0));
  await eventually(async () => assert.match(await md.locator('pre').innerText(), /\*\*as it is\*\*/));
  await eventually(async () => assert.match(await md.innerText(), /<script>alert\(3\)<\/script>/));
  page.check();
});

test('selecting an answer opens a pane with its request, what is new, the state, the times and the data', async () => {
  await page.to('/runs/refused', '.row');
  await page.getByText('No text, 2 calls').click();
  const pane = page.getByRole('complementary', { name: 'Details' });
  await pane.getByRole('heading', { name: 'Answer of iteration 2' }).waitFor();
  await pane.locator('.sent.new').first().waitFor();
  await eventually(async () => assert.match(await pane.innerText(), /1,400 \+ 96\s+tokens in, out/));
  await accessible(page, 'a run with its pane');
  for (const [tab, shown] of [['What is new', /new message/], ['State', /State after it/], ['Timing', /took/], ['JSON', /outcome/]]) {
    await pane.getByRole('link', { name: new RegExp(`^${tab}( \\d+)?$`) }).click();
    await pane.locator('.pane-body', { hasText: shown }).waitFor();
  }
  await pane.getByRole('link', { name: 'Request and answer' }).click();
  await pane.getByRole('button', { name: 'Fork from here' }).click();
  await page.getByRole('form', { name: 'The fork' }).waitFor();
  await page.goBack();
  await pane.waitFor();
  await page.keyboard.press('Escape');
  await pane.waitFor({ state: 'detached' });
  await eventually(async () => assert.match(page.url(), /\/runs\/refused(\/|$)/, 'Escape leaves one thing at a time'));
});

test('the key r says first what a retry does', async () => {
  await page.to('/runs/refused', '.row');
  const sent = [];
  await page.route('**/runs/refused/retry', (route) => {
    sent.push(route.request().method());
    return route.fulfill({ json: { run: 'asking', forked: true, seq: 0 } });
  });
  await page.keyboard.press('r');
  const dialog = page.getByRole('dialog', { name: 'Retry' });
  await eventually(async () => assert.match(await dialog.innerText(), /What has a result is not repeated/));
  assert.deepEqual(sent, []);
  await dialog.getByRole('button', { name: 'Retry' }).click();
  await page.waitForURL('**/ui/runs/asking');
  assert.deepEqual(sent, ['POST']);
  await page.unroute('**/runs/refused/retry');
});

test('a run that waits for a person says so, its stage waits, and one action leads to the decision', async () => {
  await page.to('/runs/asking', '.decide');
  await eventually(async () => assert.match(await page.locator('.run-head').innerText(), /Waits for you[\s\S]*2 calls of pay need an approval/));
  await eventually(async () => assert.match(await page.locator('.row.stage').first().innerText(), /waits in iteration 1/));
  await eventually(async () => assert.equal(await page.locator('.row.stage .mark.busy, .stages .busy').count(), 0, 'nothing of it runs'));
  const before = await decided('asking');
  await page.getByRole('button', { name: 'Decide 2' }).click();
  await page.locator('.decide:focus').first().waitFor();
  await page.keyboard.press('w');
  await eventually(async () => assert.match(await selected().innerText(), /pay[\s\S]*needs an approval: money moves/));
  assert.equal(await decided('asking'), before, 'neither decides');
  await accessible(page, 'a run that waits');
  page.check();
});

test('a run without a living worker is not shown as running', async () => {
  await page.route('**/api/v1/runs?*', async (route) => {
    const answer = await route.fetch();
    const list = await answer.json();
    await route.fulfill({ response: answer, json: { ...list, items: list.items.map((run) => ({ ...run, status: 'running', worker: { owner: 'gone', epoch: 1, live: false } })) } });
  });
  await page.to('/runs', '.run-row');
  await eventually(async () => assert.match(await page.locator('.run-row').first().innerText(), /Stuck/));
  await eventually(async () => assert.equal(await page.locator('.run-row .status.busy').count(), 0));
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

test('what is selected stays in view when the pane makes the rows narrower', async () => {
  project.command('run', 'agent loop', '--id', 'climb', '--json');
  await page.setViewportSize({ width: 1280, height: 600 });
  await page.to('/runs/climb', '.row.answer');
  await page.locator('.row.answer').last().click();
  await page.locator('.beside.pane').waitFor();
  await eventually(async () => {
    const row = await page.locator('.row.selected').boundingBox();
    const frame = await page.locator('main').boundingBox();
    assert.ok(row.y >= frame.y && row.y + row.height <= frame.y + frame.height + 1, JSON.stringify([row, frame]));
  });
  await page.setViewportSize({ width: 1280, height: 900 });
});

test('the questions of guards are no iterations, and a run in the background has a bar', async () => {
  project.command('run', 'library', '--id', 'library', '--json');
  await page.to('/runs/library', '.row.answer');
  await eventually(async () => assert.deepEqual(await page.locator('.row > .n').allInnerTexts(), ['1', '2', '3']));
  const asked = page.locator('.row.answer', { hasText: 'A guard or a plugin asks' });
  await eventually(async () => assert.equal(await asked.count(), 3));
  await eventually(async () => assert.match(await asked.first().innerText(), /reason: It promises a time\. · follows: false/));
  await eventually(async () => assert.match(await page.locator('.row.message', { hasText: 'search is done' }).innerText(), /the run in the background [\da-f]{4}/));
  await asked.first().click();
  await page.getByRole('heading', { name: 'Question of iteration 2' }).waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press(']');
  await page.getByRole('heading', { name: 'Answer of iteration 1' }).waitFor();
  await page.keyboard.press(']');
  await page.getByRole('heading', { name: 'Answer of iteration 2' }).waitFor();
  await page.to('/runs/library/waterfall', '.bar-row');
  await eventually(async () => assert.match(await page.locator('.bar-row', { hasText: 'search: run of Stacks' }).innerText(), /1\.\d s/));
  await eventually(async () => assert.equal(await page.locator('.bar-row', { hasText: 'question to library' }).count(), 3));
  await eventually(async () => assert.deepEqual((await page.locator('.bar-label .n').allInnerTexts()).filter(Boolean), ['1', '2', '3']));
  await accessible(page, 'a waterfall with a run in the background');
});

test('a run that a limit has cut off is not called completed, in the list, its head and its brain', async () => {
  const model = await modelServer(() => ({ text: 'I look further.', calls: [{ name: 'search', arguments: { query: 'tree' } }] }));
  const own = project.env;
  project.env = { ...own, OPENAI_BASE_URL: model.address, OPENAI_API_KEY: 'none', POSITRONIC_MODEL: 'gpt-5-mini' };
  await project.run('run', 'minimal', '--id', 'cut');
  project.env = own;
  model.close();
  await page.to('/runs/cut', '.run-head .lead');
  await eventually(async () => assert.match(await page.locator('.run-head .title').innerText(), /Cut off[\s\S]*Cut off at its limit of 50 iterations Agent/));
  await accessible(page, 'a run that was cut off');
  await page.to('/runs?brain=Minimal', '.run-row');
  await eventually(async () => assert.match(await page.locator('.run-row').first().innerText(), /^Cut off[\s\S]*Cut off at a limit of Agent · I look further\./));
  await page.to('/brains/Minimal', '.last-runs');
  await eventually(async () => assert.match(await page.locator('.last-runs li').first().innerText(), /Cut off[\s\S]*at a limit of Agent/));
});

test('a stage in which a limit has cut off a loop is not shown as done', async () => {
  const model = await modelServer(({ messages }) => (JSON.stringify(messages[0]).includes('support agent') ? { calls: [{ name: 'resolve_ticket', arguments: { resolution: 'Done.' } }] } : { text: 'Well.' }));
  const own = project.env;
  project.env = { ...own, OPENAI_BASE_URL: model.address, OPENAI_API_KEY: 'none', POSITRONIC_MODEL: 'gpt-5-mini' };
  await project.run('run', 'support', '--id', 'unscored');
  project.env = own;
  model.close();
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.to('/runs/unscored', '.run-head .lead');
  await eventually(async () => assert.match(await page.locator('.run-head .title').innerText(), /Cut off at its limit of 5 iterations Survey › Ask/));
  const marks = () => page.locator('.stages li').evaluateAll((all) => all.map((one) => [one.innerText.trim().split(/\s\s|\n/)[0], one.querySelector('svg').getAttribute('aria-label')]));
  await eventually(async () => assert.deepEqual(await marks(), [['Load customer', 'done'], ['Chat', 'done'], ['Survey', 'cut off'], ['Cleanup', 'done']]));
  await page.setViewportSize({ width: 1280, height: 900 });
});

test('several calls of a run are decided at once, without its being left', async () => {
  await page.to('/runs/asking', '.decide');
  const cards = page.locator('.beside .decide');
  await cards.first().getByLabel('Choose pay').check();
  const bar = page.getByRole('region', { name: 'Chosen items' });
  await bar.getByText('1 call of pay chosen').waitFor();
  await bar.getByRole('button', { name: 'Choose all 2 of the run' }).click();
  await bar.getByText('2 calls of pay chosen').waitFor();
  await accessible(page, 'the chosen calls of a run');
  await page.waitForFunction(() => !document.querySelector('.decide [aria-disabled=true]'));
  await bar.getByRole('button', { name: 'Reject 2' }).click();
  await cards.first().waitFor({ state: 'detached' });
  const made = await page.evaluate(async () => (await (await fetch('/api/v1/runs/asking/events?type=LOOP_APPROVAL_DECIDED')).json()).items.map(({ path, decision }) => [path, decision]));
  assert.deepEqual(made, [['Chat/0.0', 'rejected'], ['Chat/0.1', 'rejected']]);
  page.check();
});

test('the request of what is selected opens, with its answer beside it where there is room', async () => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.to('/runs/refused/transcript/9', '.row.selected');
  await page.getByRole('navigation', { name: 'Views of the run' }).getByRole('link', { name: 'Requests' }).click();
  const [asked, got] = [page.locator('.request .asked'), page.locator('.request .got')];
  await eventually(async () => assert.match(await got.innerText(), /^Answer\s+check[\s\S]*search[\s\S]*Show in the transcript: Chat, iteration 2$/));
  await page.waitForURL(/\/requests\/9$/);
  const boxes = () => Promise.all([asked, got].map((part) => part.boundingBox()));
  await eventually(async () => { const [left, right] = await boxes(); assert.ok(right.x >= left.x + left.width && right.y < left.y + left.height); });
  await accessible(page, 'a request beside its answer');
  await page.setViewportSize({ width: 390, height: 844 });
  await eventually(async () => { const [left, right] = await boxes(); assert.ok(right.y >= left.y + left.height, 'below it on a phone'); });
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.to('/runs/refused/requests/22', '.got');
  await eventually(async () => assert.match(await page.locator('.got .bad').innerText(), /^Rate limit reached for model/));
  page.check();
});

test('an attempt is compared with the request before its iteration, and a failed step says why in its place', async () => {
  const [system, at] = [{ hash: createHash('sha256').update('Be brief.').digest('hex').slice(0, 32), body: 'Be brief.' }, 1_795_000_000_000_000];
  const error = { kind: 'rate_limited', message: 'Rate limit reached', status: 429 };
  const log = (run, events) => {
    const lines = events.map((event, seq) => ({ seq, at: at + seq * 1000, ...event }));
    project.import([{ positronic_run: 1, run, brain: 'Desk', events: lines.length }, ...lines].map((line) => JSON.stringify(line)));
  };
  log('again', [{ type: 'BRAIN_START', title: 'Desk', fingerprint: '0'.repeat(32), stages: [{ name: 'Chat', kind: 'loop' }], options: {} }, { path: 'Chat', type: 'LOOP_START', input: 'Begin.', limits: {} },
    { path: 'Chat/0', type: 'LOOP_ITERATION', system, tools: [] }, { path: 'Chat/0', type: 'LOOP_MODEL_CALL', model: 'test/model' }, { path: 'Chat/0', type: 'LOOP_MODEL_RETRY', attempt: 0, error, due: at + 9000 }, { path: 'Chat/0', type: 'LOOP_MODEL_CALL', attempt: 1, model: 'test/model' }]);
  await page.to('/runs/again/transcript/5', '.beside .sent');
  await eventually(async () => assert.match(await page.locator('.beside .pane-body').innerText(), /System prompt\n[\s\S]*Begin\./));
  assert.doesNotMatch(await page.locator('.beside').innerText(), /, as in/);
  log('step', [{ type: 'BRAIN_START', title: 'Desk', fingerprint: '0'.repeat(32), stages: [{ name: 'Load', kind: 'step' }], options: {} }, { path: 'Load', type: 'STEP_START' }, { type: 'BRAIN_ERROR', code: 'step', message: 'the brain `Desk` failed: there is no order', retryable: false }]);
  await page.to('/runs/step', '.error-box');
  await eventually(async () => assert.match(await page.locator('.row.stage .error-box').innerText(), /there is no order/i));
  page.check();
});
