// The eleven tasks that people come with: each begins at the start page, is done as a user does it, and takes a number of clicks that is part of the test.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually, launch, open } from './browser.mjs';
import { modelServer, Project } from './server.mjs';

const project = new Project();
let [browser, page, model, held] = [];

/** The model of `Minimal` searches eight times, unless it is told to be brief or cannot answer; that of `Support` asks for a refund of 249. */
function answer({ messages }) {
  const system = messages.find(({ role }) => role === 'system').content;
  const said = messages.filter(({ role }) => role === 'assistant').length;
  if (system.includes('satisfied')) return { calls: [{ name: 'record_score', arguments: {} }] };
  if (said && system.includes('support agent')) return { calls: [{ name: 'resolve_ticket', arguments: { resolution: 'It is decided.' } }] };
  if (system.includes('support agent')) return { text: 'I pay it back.', calls: [{ name: 'refund', arguments: { order: 'A-1001', amount: 249 } }] };
  if (JSON.stringify(messages).includes('manuscript')) return { status: 400 };
  if (system.includes('at once') || said === 8) return { text: `After ${said} searches: 116 metres.`, calls: [{ name: 'done', arguments: {} }], held };
  return { text: `Search number ${said + 1}.`, calls: [{ name: 'search', arguments: { query: `tree ${said + 1}` } }] };
}

before(async () => {
  model = await modelServer(answer);
  Object.assign(project.env, { OPENAI_BASE_URL: model.address, OPENAI_API_KEY: 'none', POSITRONIC_MODEL: 'gpt-5-mini' });
  await project.run('run', 'minimal', '--id', 'tallest');
  await project.run('run', 'minimal', '--id', 'broken', '--message', 'Read this manuscript.');
  for (const id of ['refund', 'second']) await project.run('run', 'support', '--ask', '--id', id, '--user', 'mira');
  browser = await launch();
  page = await open(browser, await project.serve(), { viewport: { width: 1440, height: 900 } });
});
after(async () => { await browser?.close(); await project.close(); model?.close(); });

/** A person at a window, whose clicks are counted. */
async function begin(at = page) {
  let clicks = 0;
  await at.to('/overview', '.tile');
  return { click: async (target) => { clicks++; await target.click(); }, took: (expected) => assert.equal(clicks, expected, 'clicks') };
}
const row = (id) => page.locator('.run-row', { has: page.locator(`.mono[title="${id}"]`) });
const sees = (at, text) => eventually(async () => assert.match(await at.innerText(), text));
const side = (name) => page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name });

test('find the failed run, and why it failed', async () => {
  const me = await begin();
  await me.click(page.locator('.flush a.name').first());
  await sees(row('broken'), /Failed[\s\S]*The model is overloaded \(HTTP 400\)/);
  await me.click(row('broken'));
  await sees(page.locator('.run-head'), /Failed[\s\S]*The model is overloaded \(HTTP 400\)/);
  await page.getByText('No answer: The model is overloaded').waitFor();
  me.took(2);
});

test('see what was asked in iteration 7, and how it differs from 6', async () => {
  const me = await begin();
  await me.click(side('Runs'));
  await me.click(row('tallest'));
  await me.click(page.locator('.row.answer', { hasText: 'Search number 7.' }));
  const pane = page.locator('.beside.pane');
  await sees(pane, /Answer of iteration 7/);
  await sees(pane.locator('.sent.new').first(), /Search number 6\./);
  await sees(pane, /11 messages, as in iteration 6/);
  await eventually(async () => assert.equal(await pane.locator('.sent.new').count(), 2, 'the answer before and its result'));
  me.took(3);
});

test('see what it cost', async () => {
  const me = await begin();
  await sees(page.locator('.tile').filter({ has: page.getByRole('heading', { name: 'Cost', exact: true }) }), /\$0\.004\d/);
  await me.click(side('Runs'));
  await sees(row('tallest').locator('.c-cost'), /^\$0\.004\d$/);
  me.took(1);
});

test('fork from iteration 3 with another prompt', async () => {
  const me = await begin();
  await me.click(side('Runs'));
  await me.click(row('tallest'));
  await me.click(page.locator('.row.answer', { hasText: 'Search number 3.' }));
  await me.click(page.getByRole('button', { name: 'Fork from here' }));
  await page.getByLabel('System prompt').fill('Answer at once.');
  await sees(page.locator('.lines-diff'), /Answer at once\./);
  await me.click(page.getByRole('button', { name: 'Fork and run' }));
  await sees(page.locator('.run-head'), /Completed[\s\S]*forked from/);
  await page.locator('.row.answer', { hasText: 'After 2 searches: 116 metres.' }).waitFor();
  me.took(5);
});

test('follow a live run', async () => {
  const me = await begin();
  let release;
  held = new Promise((resolve) => { release = resolve; });
  await me.click(page.getByRole('link', { name: 'Start a run' }));
  await me.click(page.getByRole('navigation', { name: 'Brains' }).getByRole('link', { name: /^Minimal/ }));
  await me.click(page.getByRole('button', { name: 'Start', exact: true }));
  await page.getByText('Search number 8.').waitFor();
  await sees(page.locator('.row.answer').last(), /Answers…/);
  await sees(page.locator('.run-head'), /Running/);
  release();
  held = null;
  await page.getByText('After 8 searches: 116 metres.').waitFor();
  await sees(page.locator('.run-head'), /Completed/);
  me.took(3);
});

test('compare two runs', async () => {
  const me = await begin();
  await me.click(side('Runs'));
  await me.click(row('broken').getByRole('checkbox'));
  await me.click(row('tallest').getByRole('checkbox'));
  await me.click(page.getByRole('link', { name: 'Compare' }));
  await page.locator('.diff-rows').waitFor();
  await sees(page.locator('.view'), /A Minimal tallest[\s\S]*B Minimal broken[\s\S]*rows? (is|are) equal, \d+ differ/);
  me.took(4);
});

test('find the refund of 249', async () => {
  const me = await begin();
  await me.click(side('Runs'));
  await row('refund').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('tool:refund amount:249');
  await page.keyboard.press('Enter');
  await sees(row('refund').locator('.hit'), /event \d+[\s\S]*249/);
  await me.click(row('refund').locator('.hit a'));
  await sees(page.locator('.beside.pane'), /refund[\s\S]*249/);
  me.took(2);
});

test('approve with an edit', async () => {
  const me = await begin();
  await me.click(page.locator('.note', { hasText: /decisions? waits?/ }));
  const card = page.locator('.inbox .decide').first();
  await card.waitFor();
  const id = await card.getAttribute('id');
  await me.click(card.getByRole('button', { name: 'Edit arguments' }));
  await card.getByLabel('amount').fill('200');
  await sees(card.locator('h2'), /249\s*200/);
  await eventually(async () => assert.equal(await card.locator('.primary').getAttribute('aria-disabled'), null));
  await me.click(card.getByRole('button', { name: 'Approve as edited' }));
  await page.locator(`#${id}`).waitFor({ state: 'detached' });
  await sees(page.locator('.queue .decided').first(), /200/);
  me.took(3);
});

test('do it with the keyboard alone: find a run that waits, and reject its call with a reason', async () => {
  const me = await begin();
  for (const key of ['g', 'r']) await page.keyboard.press(key);
  await row('tallest').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('needs:decision');
  await page.keyboard.press('Enter');
  await page.waitForURL(/needs=decision/);
  await row('tallest').waitFor({ state: 'detached' });
  await page.keyboard.press('Escape');
  await page.locator('.runs').focus();
  await page.keyboard.press('Enter');
  await page.locator('.decide').waitFor();
  await page.keyboard.press('d');
  await eventually(async () => assert.ok(await page.evaluate(() => document.activeElement.matches('.decide'))));
  await eventually(async () => {
    await page.keyboard.press('Tab');
    assert.match(await page.evaluate(() => document.activeElement.innerText), /^Reject/);
  });
  await page.keyboard.press('Enter');
  await page.getByLabel('Reason').and(page.locator(':focus')).waitFor();
  await page.keyboard.type('ask for a photo first');
  await eventually(async () => assert.equal(await page.locator('.decide .primary').getAttribute('aria-disabled'), null));
  await page.keyboard.press('Control+Enter');
  await page.locator('.decide').waitFor({ state: 'detached' });
  await sees(page.locator('.transcript'), /rejected by .*: ask for a photo first/);
  me.took(0);
});

test('follow a link to a place, go back, and reload', async () => {
  const me = await begin();
  await me.click(side('Runs'));
  await page.goto(`${page.url().split('?')[0]}?brain=Minimal`);
  await me.click(row('tallest'));
  await me.click(page.locator('.row.answer', { hasText: 'Search number 5.' }));
  await sees(page.locator('.beside.pane'), /Answer of iteration 5/);
  const place = page.url();
  await page.reload();
  await sees(page.locator('.beside.pane'), /Answer of iteration 5/);
  // Back closes what has opened last.
  await page.goBack();
  await page.locator('.beside.pane').waitFor({ state: 'detached' });
  await page.locator('.row.answer').first().waitFor();
  await page.goBack();
  await page.locator('.run-row').first().waitFor();
  await eventually(async () => assert.match(page.url(), /runs\?brain=Minimal$/));
  await page.goto(place);
  await sees(page.locator('.beside.pane'), /Answer of iteration 5/);
  await eventually(async () => assert.ok(await page.locator('.row.selected').isVisible(), 'what the link names is in view'));
  me.took(3);
});

test('two windows decide, and the second one reads what the first one has decided', async () => {
  await project.run('run', 'support', '--ask', '--id', 'third');
  const other = await page.context().newPage();
  other.to = page.to;
  const me = await begin();
  await me.click(page.locator('.note', { hasText: /decisions? waits?/ }));
  await page.locator('.inbox .decide').first().waitFor();
  const id = await page.locator('.inbox .decide').last().getAttribute('id');
  const card = (at) => at.locator(`#${id}`);
  await me.click(card(page).getByRole('button', { name: 'Reject…' }));
  await card(page).getByLabel('Reason').and(page.locator(':focus')).waitFor();
  await page.keyboard.type('the second one is not');
  await other.goto(page.url());
  await eventually(async () => assert.equal(await card(other).locator('.primary').getAttribute('aria-disabled'), null));
  await card(other).getByRole('button', { name: 'Approve' }).click();
  await card(other).waitFor({ state: 'detached' });
  await sees(card(page), /approved this[\s\S]*Your draft was not sent/);
  await eventually(async () => assert.equal(await card(page).getByLabel('Reason').inputValue(), 'the second one is not'));
  await page.keyboard.type(' a e');
  await me.click(card(page).getByRole('button', { name: 'Dismiss' }));
  await card(page).waitFor({ state: 'detached' });
  me.took(3);
  page.check();
  await other.close();
});
