// Two runs side by side, a fork beside its origin, and what a list says of its search.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { endedLog, limitedLog, Project, refusedLog, waitingLog } from './server.mjs';

const project = new Project();
let [browser, page] = [];

before(async () => {
  project.import(refusedLog('one', 'The order is on its way.'));
  project.import(refusedLog('two', 'The order is late.'));
  for (const [run, amount] of [['large', 249], ['small', 120]]) project.import(waitingLog(run, { calls: [{ tool: 'refund', arguments: { amount, order: 'A-1' } }] }));
  // A fork whose second request has another system prompt, and whose answers are the same.
  const prompt = (name, text) => refusedLog(name, 'The order is on its way.').map((line) => (line.includes('"Chat/1","type":"LOOP_ITERATION"') ? JSON.stringify({ ...JSON.parse(line), system: { hash: createHash('sha256').update(text).digest('hex').slice(0, 32), body: text } }) : line));
  project.import(prompt('plain', 'Be brief.\nBe kind.'));
  project.import(prompt('edited', 'Be brief.\nBe polite.'));
  // A fork of it with the other prompt, whose later calls differ.
  project.import(prompt('forked', 'Be brief.\nBe polite.').map((line) => {
    const event = JSON.parse(line);
    if (event.type === 'BRAIN_START') event.start = { forked_from: ['plain', 7] };
    if (event.type === 'LOOP_TOOL_RESULT' && event.path === 'Chat/1.1') event.result.output = 'nothing';
    return JSON.stringify(event);
  }));
  // A fork at the first request, which it makes again.
  const [header, ...events] = refusedLog('asked-again', 'The order is on its way.').map((line) => JSON.parse(line));
  events[0].start = { forked_from: ['one', 3] };
  const asked = events.toSpliced(4, 0, { at: events[3].at, epoch: 1, type: 'RUN_CLAIMED', owner: 'worker' }, events[3]).map((event, seq) => ({ ...event, seq }));
  project.import([{ ...header, events: asked.length }, ...asked].map((event) => JSON.stringify(event)));
  // What has failed was done by a fork.
  project.import(refusedLog('failed', 'The order is on its way.'));
  project.import(endedLog('done', { type: 'BRAIN_COMPLETE', result: null }).map((line) => {
    const event = JSON.parse(line);
    return JSON.stringify(event.seq === 0 ? { ...event, start: { forked_from: ['failed', 0] } } : event);
  }));
  project.import(limitedLog('cut', 480));
  project.import(limitedLog('whole'));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'));
});
after(async () => { await browser?.close(); await project.close(); });

const differs = () => page.locator('table.sides').innerText().then((text) => text.replace(/\s+/g, ' '));

test('the first difference shows the fields that differ, side by side', async () => {
  await page.to('/diff?a=large&b=small', '.sides');
  await eventually(async () => assert.equal(await differs(), 'Field A, event 5 B, event 5 arguments › amount 249 120'));
  await accessible(page, 'the comparison of two runs');
  await page.to('/diff?a=one&b=two', '.sides');
  await eventually(async () => assert.equal(await differs(), 'Field A, event 4 B, event 4 parts › 0 › text The order is on its way. The order is late.'));
  await eventually(async () => assert.deepEqual(await page.locator('.sides :is(del, ins)').allInnerTexts(), ['on its way.', 'late.']));
});

test('a comparison begins with what cut off one of the runs, and not with a folder of its own', async () => {
  await page.to('/diff?a=whole&b=cut', '.lead');
  await eventually(async () => assert.equal(await page.locator('.lead').first().innerText(), 'B was cut off at its limit of 480 tokens in Work; A completed.'));
  await eventually(async () => assert.match(await page.locator('.diff-row.differs', { hasText: 'stage' }).innerText(), /cut off at its limit of 480 tokens/));
  const places = await page.evaluate(() => ['.lead a', '.diff-rows', '.sides'].map((name) => document.querySelector(name)?.getBoundingClientRect().top));
  assert.deepEqual(places, places.toSorted((x, y) => x - y), 'the folder stands last');
  await accessible(page, 'the comparison with a run that was cut off');
  await page.locator('.lead a').first().click();
  await page.waitForURL(/runs\/cut\/transcript\/7/);
});

test('two runs with other prompts say so, and show the lines that differ', async () => {
  await page.to('/diff?a=plain&b=edited', '.lead');
  await page.getByText('The system prompt differs from iteration 2 on; the answers are the same.').waitFor();
  await eventually(async () => assert.deepEqual(await page.locator('.lines-diff :is(.out, .come)').allInnerTexts(), ['− Be kind.', '+ Be polite.']));
  await accessible(page, 'the comparison of two prompts');
});

test('the first difference of a fork stands before the rows, also if no row of its own differs, and its button goes there', async () => {
  await page.to('/diff?a=plain&b=forked', '.lead');
  const card = page.locator('.first-difference');
  await page.getByText('B is a fork of A after event 7. They did the same up to event 7. The system prompt differs from iteration 2 on.').waitFor();
  await eventually(async () => {
    const places = await page.evaluate(() => ['.lead', '.first-difference', '.diff-rows'].map((name) => document.querySelector(name)?.getBoundingClientRect().top));
    assert.deepEqual(places, places.toSorted((x, y) => x - y));
  });
  await eventually(async () => assert.deepEqual(await card.locator('.lines-diff :is(.out, .come)').allInnerTexts(), ['− Be kind.', '+ Be polite.']));
  await page.getByRole('button', { name: 'First difference' }).click();
  await eventually(async () => assert.equal(await card.evaluate((element) => element === document.activeElement), true));
  await accessible(page, 'the comparison of a fork with its origin');
});

test('a search counts the runs that match it, and an empty one says what was searched', async () => {
  await page.to('/runs?status=failed', '.run-row');
  await eventually(async () => assert.match(await page.locator('.counts').innerText(), /^7 runs/));
  await page.to('/runs?status=running', '.empty');
  await eventually(async () => assert.match(await page.locator('.counts').innerText(), /^0 runs/));
  await eventually(async () => assert.match(await page.locator('.empty').innerText(), /No run matches status:running/));
  await page.getByRole('link', { name: 'Clear the search' }).click();
  await page.locator('.run-row').first().waitFor();
  await eventually(async () => assert.match(await page.locator('.counts').innerText(), /^12 runs/));
  page.check();
});

test('a fork names one event, and says what it repeats while its prompt changes', async () => {
  await page.to('/fork/one/12', '.send-line');
  await eventually(async () => assert.match(await page.locator('.send-line').innerText(), /Repeats|no effect/));
  const shared = page.locator('.try-form a', { hasText: /^event \d+$/ });
  await eventually(async () => assert.match(await shared.innerText(), /^event \d+$/));
  page.check();
});

test('a fork at a request begins its iteration anew once its prompt is changed, and says from which event on', async () => {
  await page.to('/fork/edited/18', '.send-line');
  const shared = page.locator('.try-form a', { hasText: /^event \d+$/ });
  await eventually(async () => assert.equal(await shared.innerText(), 'event 18'));
  // The request without an answer at the fork is made again, with a changed prompt or without.
  const counts = async () => assert.match((await page.locator('.again').innerText()).replace(/\s+/g, ' '), /^3 effects will run again.* 5 recorded effects are reused\./);
  await eventually(counts);
  await eventually(async () => assert.deepEqual(await page.locator('.shared-rows a').allInnerTexts(), ['shared', 'shared', 'new from here']));
  const prompt = page.getByLabel('System prompt');
  const before = await prompt.inputValue();
  await prompt.fill(`${before}\nBe quick.`);
  await eventually(async () => assert.equal(await shared.innerText(), 'event 16', 'the event before the iteration'));
  await eventually(counts);
  await prompt.fill(before);
  await eventually(async () => assert.equal(await shared.innerText(), 'event 18'));
  page.check();
});

test('a fork shows its own attempts to get an answer, and not the request that its origin had begun', async () => {
  await page.to('/runs/asked-again', '.row');
  const answer = page.locator('.row', { hasText: 'The order is on its way.' }).first();
  await answer.waitFor();
  await eventually(async () => assert.doesNotMatch(await answer.innerText(), /attempt|no answer/));
  page.check();
});

test('a failed run that a fork has completed says so, and asks for no retry', async () => {
  await page.to('/runs/failed', '.run-head h1');
  await eventually(async () => assert.match((await page.locator('.retried').innerText()).trim(), /Continued as done, completed/));
  for (const retry of await page.getByRole('button', { name: /^Retry/ }).all()) assert.doesNotMatch(await retry.getAttribute('class') ?? '', /primary/);
  await accessible(page, 'a failed run that was continued');
  await page.locator('.retried a').click();
  await page.waitForURL(/runs\/done$/);
  page.check();
});
