// Very long runs, from exported files: only what is in view is in the document.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually, launch, open } from './browser.mjs';
import { longLog, pricedLog, Project } from './server.mjs';

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

async function inspect(log, act) {
  const project = new Project();
  try {
    const page = await open(browser, await project.inspect(log));
    await page.locator('.row').first().waitFor();
    await act(page);
    page.check();
  } finally {
    await project.close();
  }
}

/** Switches to a tab; returns the time until its rows are painted. */
const paint = (page, tab, row) => page.evaluate(async ([text, selector]) => {
  const link = [...document.querySelectorAll('.tabs a')].find((node) => node.innerText.startsWith(text));
  const begin = performance.now();
  link.click();
  while (!document.querySelector(selector)) await new Promise(requestAnimationFrame);
  return performance.now() - begin;
}, [tab, row]);

const scroll = (page) => page.evaluate(async () => {
  const main = document.getElementById('main');
  let [worst, last, nodes] = [0, performance.now(), 0];
  for (let i = 0; i < 90; i++) {
    main.scrollTop += main.scrollHeight / 90;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    worst = Math.max(worst, now - last);
    last = now;
    nodes = Math.max(nodes, document.querySelectorAll('*').length);
  }
  return { worst, nodes };
});

test('10,000 events are painted with a few hundred nodes', () => inspect(longLog(10_000), async (page) => {
  await eventually(async () => assert.match(await page.locator('.tag', { hasText: 'read-only' }).innerText(), /read-only/));
  const time = await paint(page, 'Events', '.event-row');
  const nodes = await page.evaluate(() => document.querySelectorAll('*').length);
  console.log(`10,000 events: painted in ${time.toFixed(0)} ms, ${nodes} nodes`);
  assert.ok(nodes < 1500, `${nodes} nodes`);
}));

test('100,000 events scroll with a few hundred nodes', () => inspect(longLog(100_000), async (page) => {
  for (const [tab, row] of [['Transcript', '.row'], ['Events', '.event-row']]) {
    const time = await paint(page, tab, row);
    const { worst, nodes } = await scroll(page);
    console.log(`100,000 events, ${tab}: painted in ${time.toFixed(0)} ms, worst frame ${worst.toFixed(0)} ms, at most ${nodes} nodes`);
    assert.ok(nodes < 9000, `${nodes} nodes in ${tab}`);
  }
}));

test('the requests of 2,000 iterations open with a few hundred nodes', () => inspect(pricedLog('many', Array.from({ length: 2000 }, () => ({ model: 'small', amount: '0.001', input: 9 }))), async (page) => {
  const time = await paint(page, 'Requests', '.request');
  const nodes = await page.evaluate(() => document.querySelectorAll('*').length);
  console.log(`2,000 iterations, Requests: painted in ${time.toFixed(0)} ms, ${nodes} nodes`);
  assert.ok(nodes < 800, `${nodes} nodes`);
  const [list, chosen] = [page.getByRole('navigation', { name: 'Requests' }), page.locator('.requests nav [aria-current]')];
  await eventually(async () => assert.match(await chosen.innerText(), /Chat, iteration 2000/));
  await eventually(async () => assert.ok(await chosen.evaluate((node) => node.offsetTop >= node.parentNode.scrollTop && node.offsetTop < node.parentNode.scrollTop + node.parentNode.clientHeight), 'the chosen one is in view'));
  await list.getByRole('button', { name: '1,940 before' }).click();
  await list.getByText('Chat, iteration 1900', { exact: true }).click();
  await page.waitForURL(/requests\/\d+$/);
  await eventually(async () => assert.match(await chosen.innerText(), /Chat, iteration 1900/));
  await page.keyboard.press('k');
  await eventually(async () => assert.match(await chosen.innerText(), /Chat, iteration 1899/));
}));
