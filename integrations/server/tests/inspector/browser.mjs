// The browser of the tests, and what is true of every page: own requests only, no errors, no findings of axe.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const { chromium } = createRequire(import.meta.url)(process.env.POSITRONIC_PLAYWRIGHT);
const AXE = readFileSync(`${process.env.POSITRONIC_AXE}/axe.min.js`, 'utf8');

export const launch = () => chromium.launch({ executablePath: process.env.POSITRONIC_CHROMIUM, args: ['--no-sandbox'] });

/** Opens a signed-in window; `window.check()` asserts that it did nothing forbidden. */
export async function open(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  // A folder with changed files of the page may stand in for those in the binary, without a build of it.
  const folder = process.env.POSITRONIC_UI;
  if (folder) await context.route('**/ui/assets/*/**', (route) => route.fulfill({ path: join(folder, /assets\/[^/]+\/(.*)$/.exec(new URL(route.request().url()).pathname)[1]) }));
  const page = await context.newPage();
  const origin = new URL(address).origin;
  const seen = { foreign: [], errors: [] };
  page.on('request', (request) => { if (new URL(request.url()).origin !== origin) seen.foreign.push(request.url()); });
  page.on('pageerror', (error) => seen.errors.push(error.message));
  page.on('dialog', (dialog) => { seen.errors.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
  // Violations of the content policy and of Trusted Types are console errors.
  page.on('console', (message) => { if (message.type() === 'error' && /Security|Trusted|Refused/.test(message.text())) seen.errors.push(message.text()); });
  await page.goto(address);
  await page.locator('h1').first().waitFor();
  page.check = () => {
    assert.deepEqual(seen.foreign, [], 'requests to other origins');
    assert.deepEqual(seen.errors, [], 'errors of the page');
  };
  page.to = async (path, ready) => {
    await page.goto(`${origin}/ui${path}`);
    await page.locator(ready ?? 'h1').first().waitFor();
  };
  return page;
}

/** Asserts something of a page, again until it is true: a page is drawn after the click that changes it. */
export async function eventually(check, deadline = Date.now() + 5000) {
  try {
    await check();
  } catch (error) {
    if (Date.now() > deadline) throw error;
    await new Promise((resolve) => setTimeout(resolve, 50));
    await eventually(check, deadline);
  }
}

/** Asserts that axe finds nothing, in light and in dark. */
export async function accessible(page, name) {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    // Evaluation of a string by the browser's own protocol is not subject to the page's policy.
    await page.evaluate(AXE);
    const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
    const findings = found.violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 160)} ${node.any?.[0]?.message ?? ''}`));
    assert.deepEqual(findings, [], `${name} in ${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: 'light' });
}
