// Every view on the log of a real run, with what holds for all: no other origin, no errors, nothing for axe to find.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { Project } from './server.mjs';

const project = new Project();
let [browser, page, run] = [];

before(async () => {
  project.command('run', 'support');
  project.command('run', 'agent loop', '--json');
  browser = await launch();
  page = await open(browser, await project.serve());
  await page.to('/runs', '.run-row');
  run = await page.evaluate(async () => (await (await fetch('/api/v1/runs?brain=Support')).json()).items[0].id);
});
after(async () => { await browser?.close(); await project.close(); });

test('the list shows each run with its status, and its filters are the address', async () => {
  await eventually(async () => assert.deepEqual(await page.locator('.run-row .c-brain a').allInnerTexts(), ['Agent loop', 'Support']));
  await eventually(async () => assert.match(await page.locator('.counts').innerText(), /2 completed/));
  await page.getByRole('link', { name: 'In flight' }).click();
  await page.getByText('No run matches').waitFor();
  await eventually(async () => assert.match(page.url(), /status=running%2Cwaiting%2Cpaused/));
  await page.goBack();
  await page.locator('.run-row').first().waitFor();
  await accessible(page, 'the list');
});

test('the head of a run says what it did, and the transcript how', async () => {
  await page.to(`/runs/${run}`, '.row');
  await eventually(async () => assert.equal(await page.locator('.lead').innerText(), 'The tank is broken; 249 euros were paid back.'));
  await eventually(async () => assert.match(await page.locator('.run-head .facts').innerText(), /took[\s\S]*did\s+8 model answers, 8 calls and 1 decision by a person/));
  await eventually(async () => assert.deepEqual(await page.locator('.stages span').allInnerTexts(), ['Load customer', 'Chat', 'Survey', 'Cleanup']));
  await page.locator('.inout summary', { hasText: 'Result' }).click();
  await eventually(async () => assert.match(await page.getByRole('region', { name: 'Result' }).innerText(), /The tank is broken; 249 euros were paid back\./));
  const refund = await page.locator('.row.call', { hasText: 'a refund of 249 euros' }).innerText();
  assert.match(refund, /approved by the cassette/);
  await accessible(page, 'the transcript');
});

test('the waterfall has segments for models, tools, people and webhooks', async () => {
  await page.to(`/runs/${run}/waterfall`, '.bar-row');
  for (const kind of ['model', 'tool', 'person', 'webhook']) assert.ok(await page.locator(`.bars .seg.${kind}`).count(), kind);
  const widths = await page.locator('.bars .seg').evaluateAll((nodes) => nodes.map((node) => node.getBoundingClientRect().width));
  assert.ok(Math.min(...widths) >= 2.9, `${Math.min(...widths)}`);
  await accessible(page, 'the waterfall');
});

test('an event opens beside the log, and its address opens it again', async () => {
  await page.to(`/runs/${run}/events/40`, '.detail .json');
  await eventually(async () => assert.match(await page.locator('.detail').innerText(), /LOOP_TOOL_CALL[\s\S]*refund/));
  await eventually(async () => assert.equal(await page.locator('.event-row.selected .seq').innerText(), '40'));
  await accessible(page, 'the events');
  await page.getByLabel('Type').fill('LOOP_APPROVAL_DECIDED');
  await page.getByLabel('Type').press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('.event-row').length === 1);
  await eventually(async () => assert.match(page.url(), /type=LOOP_APPROVAL_DECIDED/));
});

test('the state follows the scrubber', async () => {
  await page.to(`/runs/${run}/state/3`, '.state-view .json');
  await eventually(async () => assert.match(await page.locator('[aria-label=State]').first().innerText(), /mira@example\.com/));
  await page.getByLabel('Event before').click();
  await page.waitForFunction(() => location.pathname.endsWith('/state/2'));
  await accessible(page, 'the state');
});

test('a request shows what is new since the request before', async () => {
  await page.to(`/runs/${run}/requests/15`, '.messages');
  await eventually(async () => assert.match(await page.locator('.fold').innerText(), /as in the request before/));
  await eventually(async () => assert.ok(await page.locator('.messages .new').count()));
  await accessible(page, 'the requests');
});

test('search is run by the server over the whole log', async () => {
  await page.to(`/runs/${run}`, '.row');
  await page.keyboard.press('/');
  await page.getByLabel('Search this run').last().fill('knowledge');
  await page.getByText(/1 of \d+ events/).waitFor();
});

test('a fork lists the effects that run again, and links both runs', async () => {
  await page.to(`/runs/${run}/transcript/40`, '.row.selected');
  await page.keyboard.press('f');
  await page.getByText(/will run again/).waitFor();
  await accessible(page, 'the fork');
  await page.getByRole('button', { name: 'Fork and run' }).click();
  await page.waitForFunction((old) => location.pathname.startsWith('/ui/runs/') && !location.pathname.includes(old), run);
  await page.getByRole('link', { name: 'compare' }).click();
  await page.locator('.diff-rows').waitFor();
  await accessible(page, 'the comparison');
});

test('requests are named by their iterations, as the transcript counts them', async () => {
  const loop = await page.evaluate(async () => (await (await fetch('/api/v1/runs?brain=Agent%20loop')).json()).items[0].id);
  await page.to(`/runs/${loop}/requests`, '.messages');
  await eventually(async () => assert.match((await page.locator('.requests nav a').allInnerTexts()).at(-1), /^Work, iteration 7\s+event \d+$/));
});

test('two runs that are chosen in the list are compared, the earlier one first', async () => {
  await page.to('/runs', '.run-row');
  for (const brain of ['Agent loop', 'Support']) await page.getByRole('checkbox', { name: new RegExp(`^Choose ${brain}`) }).last().check();
  await page.getByRole('link', { name: 'Compare' }).click();
  await page.locator('.diff-rows').waitFor();
  await eventually(async () => assert.match(await page.locator('.columns').innerText(), /A Support[\s\S]*B Agent loop/));
});

test('a brain shows its figures, its stages with the tools of their loops, and what its last runs came to', async () => {
  await page.to('/brains/Support', '.tools-of');
  await eventually(async () => assert.match(await page.locator('.brain-figures').innerText(), /^2\s+started in 30 days, 1 ended\s+0 %\s+failed/));
  const chat = page.locator('.flow > li', { hasText: 'Chat' });
  await eventually(async () => assert.match(await chat.innerText(), /check_order_status\s+read only[\s\S]*refund\s+destructive[\s\S]*resolve_ticket\s+ends the loop/));
  await eventually(async () => assert.match(await page.locator('.last-runs').innerText(), /The tank is broken; 249 euros were paid back\./));
  await page.setViewportSize({ width: 390, height: 844 });
  await eventually(async () => {
    await page.getByRole('button', { name: 'Start a run' }).click();
    assert.ok(await page.locator('.start :focus').count());
  });
  await accessible(page, 'a brain on a phone');
  await page.setViewportSize({ width: 1280, height: 900 });
});

test('small pages: brains, schedules, webhooks, inbox', async () => {
  for (const [path, ready] of [['/brains/Support', '.start'], ['/schedules'], ['/webhooks'], ['/inbox']]) {
    await page.to(path, ready);
    await page.locator('.loading').waitFor({ state: 'detached' });
    await eventually(async () => assert.equal(await page.locator('main [role=alert]').count(), 0, `${path} failed to load`));
    await accessible(page, path);
  }
  page.check();
});

test('a part of the page that cannot be loaded is explained, and loaded again', async () => {
  const parts = '**/views/requests.js';
  await page.route(parts, (route) => route.abort());
  await page.to(`/runs/${run}`, '.row');
  await page.getByRole('link', { name: 'Requests' }).click();
  await page.getByRole('alert').getByText('A part of the page failed').waitFor();
  await page.unroute(parts);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.locator('.messages').waitFor();
});

test('a dialog asks only for what a person decides, and Escape leaves one thing at a time', async () => {
  await page.to(`/runs/${run}`, '.row');
  await page.locator('summary[title=Actions]').click();
  await page.keyboard.press('Escape');
  await eventually(async () => assert.equal(await page.locator('details.menu[open]').count(), 0));
  await page.locator('summary[title=Actions]').click();
  await page.getByRole('button', { name: 'Rerun from a stage…' }).click();
  await page.getByRole('dialog').getByRole('combobox', { name: 'stage' }).waitFor();
  await eventually(async () => assert.equal(await page.getByRole('dialog').getByLabel('results').count(), 0));
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await eventually(async () => assert.match(page.url(), new RegExp(`/runs/${run}`)));
});

test('a filter keeps what is typed while the page is drawn again', async () => {
  await page.to('/runs', '.run-row');
  const field = page.getByRole('combobox', { name: 'Find runs' });
  await field.pressSequentially('brain:Supp');
  // The answer to a request draws the page.
  await Promise.all([page.waitForResponse(/pending/), page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))]);
  await page.evaluate(() => new Promise((drawn) => { requestAnimationFrame(() => requestAnimationFrame(drawn)); }));
  await field.pressSequentially('ort');
  await field.press('Enter');
  await page.waitForURL(/brain=Support/);
});

test('a double click starts one run', async () => {
  const starts = [];
  page.on('request', (request) => { if (request.method() === 'POST' && request.url().endsWith('/runs')) starts.push(request.url()); });
  await page.to('/brains/Minimal', '.start');
  await page.getByRole('button', { name: 'Start' }).dblclick();
  await page.locator('.run-head').waitFor();
  assert.equal(starts.length, 1);
});

test('an event that does not exist is explained without further requests', async () => {
  const reads = [];
  await page.to(`/runs/${run}/events/999999`, '.detail');
  await page.getByText('The run has no event 999999.').waitFor();
  page.on('request', (request) => reads.push(request.url()));
  // Each frame draws the page, as the seconds of a clock do.
  await page.evaluate(async () => {
    for (let frames = 0; frames < 60; frames++) await new Promise((drawn) => { requestAnimationFrame(drawn); });
  });
  assert.ok(reads.filter((url) => url.includes('/events')).length <= 1, reads.join(' '));
});

test('a browser without a link signs in with a token', async () => {
  const token = project.command('token', 'create', 'ann').trim();
  const other = await browser.newPage();
  await other.goto(`${new URL(page.url()).origin}/ui/runs`);
  await other.getByText('This browser is not signed in').waitFor();
  await eventually(async () => assert.equal(await other.locator('.side nav a').count(), 0, 'there is nothing to go to'));
  await eventually(async () => assert.doesNotMatch(await other.locator('.empty').innerText(), /refused/));
  await other.goto(`${new URL(page.url()).origin}/ui/runs?again#code=wrong`);
  await other.getByText('The link was refused: it is unknown, has expired or was used.').waitFor();
  await other.getByLabel('Or sign in with a token').fill('pos_wrong');
  await other.getByRole('button', { name: 'Sign in' }).click();
  await other.locator('.problem').waitFor();
  await other.getByLabel('Or sign in with a token').fill(token);
  await other.getByRole('button', { name: 'Sign in' }).click();
  await other.locator('.run-row').first().waitFor();
  await other.close();
});

test('nothing moves while a button is pressed', async () => {
  await page.to('/runs', '.run-row');
  const [held, drawn] = await page.evaluate(async () => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const colours = [...document.querySelectorAll('button')].find((button) => button.title.startsWith('Colours'));
    const begins = colours.title;
    let [pressed, held] = [0, ''];
    // A press that lasts too long ends by itself, as it does on a machine that is busy with something else.
    do {
      pressed = performance.now();
      dispatchEvent(new Event('pointerdown'));
      colours.click();
      await frame();
      await frame();
      held = colours.title === begins;
    } while (performance.now() - pressed > 900);
    dispatchEvent(new Event('pointerup'));
    await frame();
    await frame();
    return [held, colours.title !== begins];
  });
  assert.ok(held, 'the page was drawn under a pressed button');
  assert.ok(drawn, 'the page is drawn once the button is released');
  page.check();
});

test('what is loaded works without a connection', async () => {
  await page.to(`/runs/${run}`, '.row');
  await page.context().setOffline(true);
  await page.getByRole('link', { name: 'Waterfall' }).click();
  await page.locator('.bar-row').first().waitFor();
  await page.context().setOffline(false);
});
