// The pages of docs/guide/bridges.md in headless Chromium, against `serve --bridge` of the examples: an approval is decided in the page, and
// by another process, which is a command in the terminal.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { Project } from '../../../server/tests/inspector/server.mjs';
import { serve } from './pages.mjs';

/** CopilotKit is large, so its page is not always installed. */
const withCopilotKit = Boolean(process.env.POSITRONIC_COPILOTKIT);
const decided = ['agUi', 'useChat', 'assistantUi', ...(withCopilotKit ? ['copilotKit'] : [])];
/** The pages that follow their run while a question is open. */
const WATCHING = ['agUi', 'useChat'];
const { chromium } = createRequire(import.meta.url)(process.env.POSITRONIC_PLAYWRIGHT);

let project, pages, browser, address, token, readOnly;
before(async () => {
  project = new Project();
  pages = await serve(...decided);
  token = /pos_\S+/.exec(project.command('token', 'create', 'web', '--user', 'ann', '--scope', 'read,run,decide'))[0];
  readOnly = /pos_\S+/.exec(project.command('token', 'create', 'shy', '--user', 'ann', '--scope', 'read,run'))[0];
  address = new URL(await project.serve(0, '--bridge', 'ag-ui,ai-sdk', '--cors-origin', pages.origin)).origin;
  browser = await chromium.launch({ executablePath: process.env.POSITRONIC_CHROMIUM, args: ['--no-sandbox'] });
});
after(async () => {
  await browser?.close();
  pages?.close();
  await project?.close();
});

/** Opens a page; it may only talk to its own server and to the one of the runs. */
async function open(name, thread = '', as = token) {
  pages.of(address, as);
  const page = await (await browser.newContext()).newPage();
  const seen = { foreign: [], errors: [] };
  const allowed = [pages.origin, address];
  await page.route((url) => url.protocol.startsWith('http') && !allowed.includes(url.origin), (route) => { seen.foreign.push(route.request().url()); return route.abort(); });
  page.on('pageerror', (error) => seen.errors.push(error.stack));
  await page.goto(`${pages.origin}/${name}/${thread && `#${thread}`}`);
  const box = page.locator(name === 'copilotKit' ? 'textarea' : '[name=text]');
  return Object.assign(page, {
    seen,
    say: async (text) => { await box.fill(text); await box.press('Enter'); },
    shows: (text) => page.getByText(text).first().waitFor(),
    answer: (name) => page.getByRole('button', { name, exact: true }).click(),
    /** Talks until the kitchen wants to order cheese. */
    order: async (offers = true) => {
      await page.say('What can I cook tonight?');
      await page.shows(/leek omelette with rice\?/);
      await page.say('Please order the cheese.');
      if (offers) await page.getByRole('button', { name: 'Yes', exact: true }).waitFor();
      // The person who decides reads what the call does.
      await page.shows(/May `?order`? run with .*a piece of mountain cheese.*12/);
    },
  });
}

/** The one call that waits for an approval, as the command line lists it: the run and the call. */
function waiting() {
  const items = project.command('inbox', '--json').split('\n').filter(Boolean).map((line) => JSON.parse(line));
  assert.equal(items.length, 1, JSON.stringify(items));
  return [items[0].run, items[0].pending.call];
}

async function isDone(page) {
  await page.shows(/That is settled/);
  // The end of the leg follows the text.
  await page.getByRole('button', { name: 'Yes', exact: true }).waitFor({ state: 'detached' });
  assert.deepEqual(page.seen, { foreign: [], errors: [] });
}

for (const name of decided) {
  test(`${name}: an approval in the page lets the call run`, async () => {
    const page = await open(name);
    await page.order();
    const [run, call] = waiting();

    await page.answer('Yes');
    await isDone(page);

    assert.match(project.command('show', run), /ordered: a piece of mountain cheese/);
    assert.throws(() => project.command('reject', run, call), /it was approved by web/);
  });

  test(`${name}: a refusal in the page keeps the call from running`, async () => {
    const page = await open(name);
    await page.order();
    const [run] = waiting();

    await page.answer('No');
    await isDone(page);

    assert.doesNotMatch(project.command('show', run), /it comes at six/);
  });
}

for (const name of WATCHING) {
  test(`${name}: the page sees what a command decides`, async () => {
    const page = await open(name);
    await page.order();

    project.command('approve', ...waiting());

    await isDone(page);
  });
}

for (const [name, answer] of decided.filter((name) => !WATCHING.includes(name)).flatMap((name) => [[name, 'Yes'], [name, 'No']])) {
  test(`${name}: ${answer} after a command has approved`, async () => {
    const page = await open(name);
    await page.order();
    project.command('approve', ...waiting());

    await page.answer(answer);

    if (answer === 'No') await page.shows(/already approved at the command line/);
    await page.getByRole('button', { name: 'Yes', exact: true }).waitFor({ state: 'detached' });
    await page.say('Thanks!');
    await page.shows(/That is settled/);
  });
}

for (const name of decided) {
  test(`${name}: a page that reloads has its question`, async () => {
    const page = await open(name);
    await page.order();
    await page.reload();

    await page.answer('Yes');

    await isDone(page);
  });
}

for (const name of decided) {
  test(`${name}: a decision that the page may not make is refused in words, and the question stays`, async () => {
    const page = await open(name);
    await page.order();
    // Its token has lost the scope meanwhile.
    await page.route(`${address}/**`, (route) => route.continue({ headers: { ...route.request().headers(), authorization: `Bearer ${readOnly}` } }));

    await page.answer('Yes');

    await page.shows(/lacks the scope/);
    await page.shows(/May `?order`? run/);
    project.command('approve', ...waiting());
  });
}

for (const name of decided) {
  test(`${name}: a reader who may not decide is offered no answer and told why`, async () => {
    const page = await open(name, '', readOnly);
    await page.order(false);

    await page.shows(/lacks the scope `decide`/);
    assert.equal(await page.getByRole('button', { name: 'Yes', exact: true }).count(), 0);
    project.command('approve', ...waiting());
    if (WATCHING.includes(name)) await page.shows(/That is settled/);
  });
}

for (const name of WATCHING) {
  test(`${name}: a page goes on with a server that was away`, async () => {
    const page = await open(name);
    await page.order();
    const ended = once(project.child, 'exit');
    project.child.kill('SIGINT');
    await ended;
    const away = page.getByText(/server is stopping|Failed to fetch/).first();
    await away.waitFor();
    // The page of the AI SDK sends the answer again.
    if (name === 'useChat') await page.answer('Yes');

    await project.serve(new URL(address).port, '--bridge', 'ag-ui,ai-sdk', '--cors-origin', pages.origin);

    await away.waitFor({ state: 'detached' });
    if (name === 'agUi') await page.answer('Yes');
    await isDone(page);
  });
}

test('assistantUi: takes no message while a question is open', async () => {
  const page = await open('assistantUi');
  await page.order();

  assert.equal(await page.locator('[name=text]').isDisabled(), true);
  await page.answer('Yes');
  await isDone(page);

  assert.equal(await page.locator('[name=text]').isDisabled(), false);
});

// CopilotKit keeps a message back while a question is open: it is in its list of messages, and no request brings it.
if (withCopilotKit) {
  test('copilotKit: what the user writes while a question is open comes with the answer', async () => {
    const page = await open('copilotKit');
    await page.order();
    await page.say('Some bread, too.');
    await page.shows(/Some bread, too/);
    const [run] = waiting();
    assert.doesNotMatch(project.command('events', run), /Some bread, too/);

    await page.answer('Yes');
    await isDone(page);
    await page.reload();

    await page.shows(/Some bread, too/);
    assert.match(project.command('events', run), /Some bread, too/);
  });
}

test('useChat: a page that reloads has the whole chat, before and after its run is over', async () => {
  const page = await open('useChat');
  await page.order();
  await page.reload();
  await page.shows(/What can I cook tonight/);
  await page.shows(/leek omelette with rice\?/);
  await page.answer('Yes');
  await isDone(page);

  await page.reload();

  for (const text of [/What can I cook tonight/, /leek omelette with rice\?/, /Please order the cheese/]) await page.shows(text);
  await isDone(page);
  assert.equal(await page.getByText(/That is settled/).count(), 1);
});

test('agUi: a command sees what the page decides about its conversation, and a page that reloads has all of it', async () => {
  project.talk('kitchen', 'dinner', 'ann', ['What can I cook tonight?', 'Please order the cheese.']);
  const [run] = waiting();
  const watched = promisify(execFile)(process.env.POSITRONIC_EXAMPLES, ['watch', run, '--store', project.store], { env: project.env });
  const page = await open('agUi', 'dinner');
  await page.shows(/user: Please order the cheese/);

  await page.answer('Yes');
  await isDone(page);
  assert.match((await watched).stderr, /order: approved by web/);
  await page.reload();

  await page.shows(/user: What can I cook tonight/);
  await isDone(page);
});
