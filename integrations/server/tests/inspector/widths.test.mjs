// No view scrolls sideways at 390 and 900 px, and no text leaves the window.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually, launch, open } from './browser.mjs';
import { Project, pricedLog, refusedLog, waitingLog } from './server.mjs';

const project = new Project();
let [browser, page, run] = [];

before(async () => {
  project.command('run', 'support');
  project.command('run', 'offers');
  project.talk('kitchen', 'dinner', 'ana', ['What can I cook tonight?', 'Please order the cheese.']);
  project.command('schedule', 'add', 'monday-news', 'newsletter', '--cron', '0 9 * * MON', '--zone', 'Europe/Berlin', '-o', 'topic=trees along the canal');
  const long = { to: 'somebody.with.a.long.name@a-long-domain-of-an-example.example', note: `${'word '.repeat(40)}${'x'.repeat(120)}` };
  project.import(waitingLog('waiting', { calls: [{ tool: 'transfer_money_to_an_account', arguments: long }, { tool: 'pay', arguments: { amount: 2 } }] }));
  project.import(refusedLog('refused', `A long word: ${'y'.repeat(200)}.`));
  project.import(pricedLog('priced', [{ model: 'a-model-with-a-rather-long-name-2026-11-27', amount: '1', input: 9 }, { model: 'small', amount: '0.5', input: 9 }]));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'));
  await page.to('/runs', '.run-row');
  run = await page.evaluate(async () => (await (await fetch('/api/v1/runs?brain=Support')).json()).items[0].id);
});
after(async () => { await browser?.close(); await project.close(); });

/** What is wider than the window, apart from regions that scroll by themselves. */
const wide = () => page.evaluate(() => {
  const main = document.getElementById('main');
  const parts = [document.documentElement, document.body, main].filter((node) => node.scrollWidth > node.clientWidth).map((node) => `${node.tagName} ${node.scrollWidth} in ${node.clientWidth}`);
  const isText = (node) => [...node.childNodes].some(({ nodeType, data }) => nodeType === 3 && data.trim());
  const out = [...document.querySelectorAll('header *, main *, aside *')].filter((node) => isText(node) && node.getBoundingClientRect().right > innerWidth + 1 && node.getBoundingClientRect().width > 0 && !node.closest('.unseen, [tabindex="0"], .views, .tabs, pre, .scroll, .run-head .title, .stages, .requests nav'));
  return [...parts, ...out.slice(0, 3).map((node) => `${node.tagName}.${node.className}: ${node.textContent.slice(0, 60)}`)];
});

for (const width of [390, 900]) {
  test(`no view scrolls sideways at ${width} px`, async () => {
    await page.setViewportSize({ width, height: 844 });
    const views = [['/overview', '.tile'], ['/runs', '.run-row'], ['/runs?q=leaks', '.run-row'], ['/inbox', '.decide'], ['/conversations', '.queue, .cards, h1'], ['/conversations/dinner', '.thread'], ['/brains', 'h1'], ['/brains/Support', '.tools-of'], ['/brains/Offers', '.flow'],
      ['/schedules', 'h1'], ['/schedules/monday-news', '.times'], ['/webhooks', 'h1'], ['/playground', 'h1'], [`/diff?a=${run}&b=refused`, '.diff-rows'],
      ...[`/runs/${run}`, '/runs/waiting', '/runs/refused'].flatMap((path) => [[path, '.row'], [`${path}/waterfall`, '.bar-row'], [`${path}/events`, '.event-row'], [`${path}/events/4`, '.detail'], [`${path}/state/3`, '.scrub'], [`${path}/requests`, 'h1']]),
      [`/runs/${run}/transcript/24`, '.beside'], [`/fork/${run}/24`, '#fork-system, h1'], [`/playground/${run}/24`, 'h1']];
    const found = {};
    for (const [path, ready] of views) {
      await page.to(path, ready);
      await eventually(async () => assert.deepEqual(found[path] = await wide(), []), Date.now() + 1500).then(() => { delete found[path]; }, () => {});
    }
    assert.deepEqual(found, {});
    page.check();
  });
}
