// The ends of runs: results of any type.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, launch, open } from './browser.mjs';
import { endedLog, Project } from './server.mjs';

const project = new Project();
let [browser, page] = [];

before(async () => {
  for (const [run, result] of [['number', 42], ['text', 'All is well.'], ['falsy', false], ['none', null], ['object', { total: 7 }]]) {
    project.import(endedLog(run, { type: 'BRAIN_COMPLETE', result }));
  }
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'));
});
after(async () => { await browser?.close(); await project.close(); });

test('a completed run shows its result, of whatever type it is', async () => {
  for (const [run, shown] of [['number', /42/], ['text', /All is well\./], ['falsy', /false/], ['object', /total\s+7/]]) {
    await page.to(`/runs/${run}`, '.run-head h1');
    assert.match(await page.getByRole('region', { name: 'Result' }).innerText(), shown, run);
  }
  await accessible(page, 'a run with a result');
  await page.to('/runs/none', '.run-head h1');
  assert.equal(await page.getByRole('region', { name: 'Result' }).count(), 0);
});
