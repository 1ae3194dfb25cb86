// The inbox: selection by id, decisions of several calls, budgets, expired requests, lost races, and arguments that nothing hides.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, eventually, launch, open } from './browser.mjs';
import { Project, waitingLog } from './server.mjs';

const project = new Project();
let [browser, page] = [];
const soon = () => Date.now() * 1000 + 3_600_000_000;
const pay = (given, more) => ({ tool: 'pay', arguments: given, ...more });
/** The item whose own texts have a text: those of the context may be of another item. */
const item = (window, text) => window.locator('.decide').filter({ has: window.locator('h2, .fields, .hidden-note', { hasText: text }) });
const decided = (run) => page.evaluate(async (id) => {
  const { items } = await (await fetch(`/api/v1/runs/${id}/events`)).json();
  return items.filter(({ type }) => type.endsWith('_DECIDED')).map(({ path, decision, arguments: edited, more }) => ({ path, decision, edited, more }));
}, run);

/** Waits, within the page, until the button of an item is off, which lasts half a second, and clicks a point then. */
const whenOff = (name, point) => page.evaluate(([text, at]) => new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error(`the button of ${text} was never off`)), 10_000);
  const look = () => {
    const items = [...document.querySelectorAll('.decide')].filter((node) => node.innerText.includes(text));
    if (!items.some((node) => node.querySelector('.primary[aria-disabled]'))) return;
    observer.disconnect();
    if (at) document.elementFromPoint(at.x, at.y).click();
    resolve();
  };
  const observer = new MutationObserver(look);
  observer.observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ['aria-disabled'] });
}), [name, point]);
/** Waits until keys and buttons decide: an item that has just come or moved cannot be decided for a moment. */
const settled = (window = page) => window.locator('.decide.selected footer button:enabled:not([aria-disabled])', { hasText: 'Reject…' }).waitFor();

before(async () => {
  project.import(waitingLog('first', { calls: [pay({ to: 'Ann', amount: 10 })] }));
  browser = await launch();
  page = await open(browser, await project.serve(0, '--no-work'));
});
after(async () => { await browser?.close(); await project.close(); });

test('a new item before the selected one does not change what a key approves', async () => {
  await page.to('/inbox', '.decide.selected');
  project.import(waitingLog('urgent', { calls: [pay({ to: 'Zoe', amount: 9999 }, { expires: soon() })] }));
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await item(page, 'Zoe').waitFor();
  await eventually(async () => assert.match(await page.locator('.decide').first().innerText(), /Zoe/, 'what expires first is on top'));
  await eventually(async () => assert.match(await page.locator('.decide.selected').innerText(), /Ann/));
  await settled();
  await page.keyboard.press('a');
  await item(page, 'Ann').waitFor({ state: 'detached' });
  assert.equal((await decided('first')).length, 1);
  assert.equal((await decided('urgent')).length, 0);
  await eventually(async () => assert.equal(await page.locator('.decide.selected').count(), 0, 'no item is selected after it has left'));
  await page.keyboard.press('a');
  assert.equal((await decided('urgent')).length, 0);
});

test('several calls of one tool are decided at once, with a result for each', async () => {
  project.import(waitingLog('several', { calls: [pay({ to: 'Bo' }), pay({ to: 'Cy' }), { tool: 'mail', arguments: { to: 'Di' } }] }));
  await page.to('/inbox', '.decide');
  await item(page, 'Bo').getByLabel('Choose pay').check();
  await eventually(async () => assert.equal(await item(page, 'Di').getByLabel('Choose mail').count(), 0, 'another tool cannot be chosen with it'));
  await item(page, 'Cy').getByLabel('Choose pay').check();
  await accessible(page, 'the inbox with chosen items');
  // Another person decides one of them, and this window does not learn of it.
  await page.route(/\/stream|\/pending/, (route) => route.abort());
  project.command('reject', 'several', 'Chat/0.1', '--reason', 'too much');
  await page.getByRole('button', { name: 'Approve 2' }).click();
  await item(page, 'Bo').locator('.note[role=status]').waitFor();
  await eventually(async () => assert.match(await item(page, 'Cy').locator('.note.lost').innerText(), /rejected this[\s\S]*too much[\s\S]*was not recorded/));
  await page.unroute(/\/stream|\/pending/);
  assert.deepEqual((await decided('several')).map(({ path, decision }) => [path, decision]), [['Chat/0.1', 'rejected'], ['Chat/0.0', 'approved']]);
});

test('nothing of the arguments is folded when a person approves', async () => {
  const deep = { order: { lines: [{ item: { name: 'Drill', parts: { hidden: 'deep inside' } } }] }, many: Array.from({ length: 150 }, (_, i) => `n${i}`) };
  project.import(waitingLog('deep', { calls: [pay(deep)] }));
  await page.to('/inbox', '.decide');
  const asked = item(page, 'deep inside');
  await asked.getByText('n149').waitFor();
  await asked.getByRole('button', { name: /item/ }).click();
  await asked.waitFor({ state: 'detached' });
  const folded = item(page, 'n149');
  await folded.getByRole('button', { name: 'Show 1 folded part first' }).dblclick();
  await asked.waitFor();
  await page.keyboard.press('a');
  assert.equal((await decided('deep')).length, 0, 'a person has time to look first');
  await asked.getByRole('button', { name: 'Approve' }).click();
  await asked.waitFor({ state: 'detached' });
  assert.equal((await decided('deep')).length, 1);
});

test('an edit keeps the digits of a large integer in another field', async () => {
  const lines = waitingLog('large', { calls: [pay({ to: 'Gus', account: 'DIGITS' })] });
  project.import(lines.map((line) => line.replaceAll('"DIGITS"', '9007199254740993')));
  await page.to('/inbox', '.decide');
  await eventually(async () => assert.match(await item(page, 'Gus').innerText(), /9007199254740993/));
  await item(page, 'Gus').getByRole('button', { name: 'Edit arguments' }).click();
  const form = page.locator('.decide textarea.code');
  await form.fill((await form.inputValue()).replace('Gus', 'Hal'));
  const sent = page.waitForRequest('**/api/v1/decisions');
  await page.getByRole('button', { name: 'Approve as edited' }).click();
  assert.match((await sent).postData(), /"account":9007199254740993,"to":"Hal"/);
});

test('hidden characters are marked beside the input', async () => {
  project.import(waitingLog('bidi', { calls: [pay({ account: 'DE\u202e001\u202c', note: 'zero\u200bwidth' })] }));
  await page.to('/inbox', '.decide');
  const asked = item(page, 'zero');
  await asked.getByRole('button', { name: 'Edit arguments' }).click();
  await asked.locator('.hidden-note').first().waitFor();
  await eventually(async () => assert.match(await asked.locator('.hidden-note').first().innerText(), /Hidden characters: .*⟨U\+202E⟩001⟨U\+202C⟩/));
  await eventually(async () => assert.equal(await asked.locator('mark.hidden-char').count() >= 3, true));
  await accessible(page, 'the form with hidden characters');
});

test('emoji are pictures, and a selector after a digit is marked', async () => {
  project.import(waitingLog('emoji', { calls: [pay({ to: '\u26a0\ufe0f Ida \u{1f468}\u200d\u{1f469}\u200d\u{1f467} 1\ufe0f\u20e3', file: '/srv/1\ufe0f' })] }));
  await page.to('/inbox', '.decide');
  await item(page, 'Ida').waitFor();
  await eventually(async () => assert.match(await item(page, 'Ida').innerText(), /\/srv\/1⟨U\+FE0F⟩/));
  await eventually(async () => assert.equal(await item(page, 'Ida').locator('mark.hidden-char').count(), 1));
  page.check();
});

test('decimals are sent as they were typed', async () => {
  project.import(waitingLog('decimal', { calls: [pay({ to: 'Jo', amount: 3 }, { schema: { type: 'object', properties: { to: { type: 'string' }, amount: { type: 'number' } } } })] }));
  await page.to('/inbox', '.decide');
  await item(page, 'Jo').getByRole('button', { name: 'Edit arguments' }).click();
  const amount = item(page, 'Jo').getByLabel('amount');
  await amount.fill('');
  for (const [i, key] of [...'-10.050'].entries()) {
    await amount.press(key);
    // The page is drawn again before the next key.
    await page.evaluate(() => new Promise((drawn) => { requestAnimationFrame(() => requestAnimationFrame(drawn)); }));
    if (i === 6) assert.equal(await amount.inputValue(), '-10.050');
  }
  const sent = page.waitForRequest('**/api/v1/decisions');
  await item(page, 'Jo').getByRole('button', { name: 'Approve as edited' }).click();
  assert.match((await sent).postData(), /"amount":-10.05[,}]/);
});

test('a long text keeps the focus of the field', async () => {
  const schema = { type: 'object', properties: { note: { type: 'string' } } };
  project.import(waitingLog('typed', { calls: [pay({ note: 'Sam' }, { schema })] }));
  await page.to('/inbox', '.decide');
  await item(page, 'Sam').getByRole('button', { name: 'Edit arguments' }).click();
  const text = 'Only to the canary group in Europe, and not to all of the users at once, please.';
  await item(page, 'Sam').getByLabel('note').fill('');
  await page.keyboard.type(text);
  await eventually(async () => assert.equal(await item(page, 'Sam').getByLabel('note').inputValue(), text));
  assert.equal((await decided('typed')).length, 0);
});

test('what a form cannot hold is not decided, and what it shows is what runs', async () => {
  const steps = [{ run: 'rm -rf /data' }, { run: 'ls' }];
  const schema = { type: 'object', properties: { steps: { type: 'array', items: { type: 'object' } }, note: { type: 'object', properties: {} }, due: { type: 'string', format: 'date-time' } } };
  project.import(waitingLog('form', { calls: [pay({ steps, note: { extra: 'Kim' }, due: 'whenever' }, { schema })] }));
  await page.to('/inbox', '.decide');
  const asked = item(page, 'Kim');
  await asked.getByRole('button', { name: 'Edit arguments' }).click();
  await asked.getByLabel('due').waitFor();
  await eventually(async () => assert.equal(await asked.getByLabel('due').inputValue(), 'whenever'));
  await eventually(async () => assert.equal(await asked.getByLabel('extra').inputValue(), 'Kim'));
  await asked.getByRole('button', { name: 'Remove steps 1' }).click();
  const code = asked.locator('textarea.code');
  await asked.locator('.edits').waitFor();
  await eventually(async () => assert.match(await code.first().inputValue(), /"ls"/));
  await code.first().fill('{"run": "MINE}');
  await asked.getByRole('button', { name: 'Approve as edited' }).click();
  await page.keyboard.press('a');
  assert.equal((await decided('form')).length, 0);
  await code.first().fill('{"run": "pwd"}');
  const sent = page.waitForRequest('**/api/v1/decisions');
  await asked.getByRole('button', { name: 'Approve as edited' }).click();
  assert.match((await sent).postData(), /"steps":\[\{"run":"pwd"\}\]/);
});

test('a schema cannot draw on the page', async () => {
  const overlay = { tag: 'div', props: { class: 'overlay', style: { position: 'fixed', inset: '0' } }, children: ['forged'], key: 'x' };
  const schema = { type: 'object', properties: { to: { enum: ['Lee', overlay] }, kinds: { type: 'array', items: { enum: [overlay] } }, odd: { anyOf: [true, { type: 'string' }] } } };
  project.import(waitingLog('forged', { calls: [pay({ to: 'Lee', odd: 1 }, { schema })] }));
  await page.to('/inbox', '.decide');
  await item(page, 'Lee').getByRole('button', { name: 'Edit arguments' }).click();
  await item(page, 'Lee').getByLabel('odd').waitFor();
  await eventually(async () => assert.equal(await page.locator('.overlay').count(), 0));
  page.check();
});

test('a key acts on the item that has the focus, and not on one out of view', async () => {
  const calls = ['Mia', 'Nia', 'Ola', 'Pia', 'Rob'].map((to) => pay({ to, lines: Array.from({ length: 8 }, (_, i) => ({ line: i })) }));
  project.import(waitingLog('long', { calls }));
  await page.to('/inbox', '.decide');
  await item(page, 'Rob').getByRole('button', { name: 'Reject…' }).focus();
  await page.locator('.decide.selected', { hasText: 'Rob' }).waitFor();
  await page.locator('#main').evaluate((main) => main.scrollTo(0, 0));
  await page.keyboard.press('a');
  await page.waitForFunction(() => document.querySelector('.decide.selected').getBoundingClientRect().bottom <= innerHeight);
  assert.equal((await decided('long')).length, 0, 'the first key shows the item');
  await settled();
  await page.keyboard.press('a');
  await item(page, 'Rob').waitFor({ state: 'detached' });
  assert.deepEqual((await decided('long')).map(({ path }) => path), ['Chat/0.4']);
});

test('nothing is sent before the form that shows it has loaded', async () => {
  project.import(waitingLog('formless', { tokens: 900 }));
  const window = await page.context().newPage();
  await window.route('**/parts/schema_form.js', (route) => route.abort());
  await window.goto(page.url());
  const asked = item(window, 'of 900 tokens');
  await asked.getByText('A part of the page cannot be loaded').waitFor();
  await eventually(async () => assert.ok(await asked.getByRole('button', { name: 'Grant' }).isDisabled()));
  await settled(window);
  await window.keyboard.press('a');
  await window.close();
  assert.equal((await decided('formless')).length, 0);
});

test('an absent choice is neither on nor off', async () => {
  const schema = { type: 'object', properties: { to: { type: 'string' }, force: { type: 'boolean', default: true } } };
  project.import(waitingLog('choice', { calls: [pay({ to: 'Uma' }, { schema })] }));
  await page.to('/inbox', '.decide');
  await item(page, 'Uma').getByRole('button', { name: 'Edit arguments' }).click();
  assert.ok(await item(page, 'Uma').getByLabel('force').evaluate((box) => box.indeterminate));
});

test('a click does not hit an item that has just come to its place', async () => {
  project.import(waitingLog('moving', { calls: ['Una', 'Val', 'Wes'].map((to) => pay({ to })) }));
  await page.to('/runs/moving', '.decide');
  const second = item(page, 'Val').getByRole('button', { name: 'Approve' });
  await second.scrollIntoViewIfNeeded();
  const { x, y } = await second.boundingBox();
  const third = await item(page, 'Wes').getByRole('button', { name: 'Approve' }).boundingBox();
  assert.ok(third.y > y);
  // What stood below comes to that place, and its button is off for a moment.
  const clicked = whenOff('Wes', { x: x + 5, y: y + 5 });
  project.command('reject', 'moving', 'Chat/0.0');
  await clicked;
  await item(page, 'Una').waitFor({ state: 'detached' });
  assert.deepEqual((await decided('moving')).map(({ path }) => path), ['Chat/0.0']);

  // A layout that changes without a drawing, such as that of an image that loads, counts too.
  const approve = item(page, 'Wes').getByRole('button', { name: 'Approve' });
  await approve.and(page.locator(':not([aria-disabled])')).waitFor();
  const off = whenOff('Wes');
  await approve.evaluate((button) => {
    button.closest('.decide').parentElement.style.paddingTop = '90px';
    button.click();
  });
  await off;
  assert.deepEqual((await decided('moving')).map(({ path }) => path), ['Chat/0.0']);
});

test('an item at the end of the page that is pushed down is not hit', async () => {
  project.import(waitingLog('pushed', { calls: ['Tia', 'Uli', 'Vic', 'Xen', 'Yul'].map((to) => pay({ to, note: 'one\n'.repeat(8) })) }));
  await page.to('/inbox', '.decide');
  const approve = item(page, 'Xen').getByRole('button', { name: 'Approve' });
  await page.locator('#main').evaluate((main) => main.scrollTo(0, main.scrollHeight));
  const before = await approve.boundingBox();
  const off = whenOff('Xen');
  project.command('reject', 'pushed', 'Chat/0.4');
  await off;
  await item(page, 'Yul').waitFor({ state: 'detached' });
  assert.ok((await approve.boundingBox()).y > before.y, 'the browser has scrolled back');
  await approve.and(page.locator(':not([aria-disabled])')).waitFor();
});

test('neither a key nor a click decides just after the window has got the focus', async () => {
  project.import(waitingLog('popup', { calls: [pay({ to: 'Zed' })] }));
  await page.to('/inbox', '.decide');
  const asked = item(page, 'Zed');
  const approve = asked.getByRole('button', { name: 'Approve' });
  await asked.click({ position: { x: 5, y: 5 } });
  await settled();
  // A page that opens this one while a person presses a key again and again.
  await page.evaluate(async () => {
    dispatchEvent(new Event('focus'));
    for (const start = performance.now(); performance.now() - start < 900; await new Promise(requestAnimationFrame)) {
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'a', bubbles: true }));
    }
  });
  assert.equal((await decided('popup')).length, 0);
  await settled();
  await approve.evaluate((button) => {
    dispatchEvent(new Event('focus'));
    button.click();
  });
  assert.equal((await decided('popup')).length, 0);
  // The buttons may not have been drawn anew yet, so that the first press comes too early.
  await eventually(async () => {
    // A decision may take longer than one waits for it here.
    if (!await asked.count()) return;
    await settled();
    await page.keyboard.press('a');
    await asked.waitFor({ state: 'detached', timeout: 1000 });
  });
  assert.equal((await decided('popup')).length, 1);
});

test('a key shows all of a long item before it approves', async () => {
  project.import(waitingLog('tall', { calls: [pay({ a_note: `Abe${'\n'.repeat(120)}`, z_command: 'rm -rf /data' })] }));
  await page.to('/inbox', '.decide');
  const asked = item(page, 'Abe');
  await asked.locator('h2').click();
  const command = asked.getByText('rm -rf /data');
  for (let pages = 0; !await command.evaluate((node) => node.getBoundingClientRect().bottom < innerHeight); pages++) {
    await settled();
    await page.keyboard.press('a');
    assert.ok(pages < 10);
  }
  assert.equal((await decided('tall')).length, 0);
  await page.keyboard.press('a');
  await settled();
  await page.keyboard.press('a');
  await asked.waitFor({ state: 'detached' });
});

test('what a bar covers is not in view', async () => {
  const fields = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`field_${i}`, i]));
  project.import(waitingLog('covered', { calls: [pay({ to: 'Oda', list: [fields] }), pay({ to: 'Per' })] }));
  for (const width of [1280, 800]) {
    await page.setViewportSize({ width, height: 900 });
    await page.to('/inbox', '.decide');
    if (width === 1280) await item(page, 'Per').getByLabel('Choose pay').check();
    await item(page, 'Oda').locator('h2').click();
    const end = item(page, 'Oda').locator('footer');
    const isShown = () => end.evaluate((node) => {
      const { left, top } = node.getBoundingClientRect();
      return top < innerHeight && document.elementFromPoint(left + 5, top - 20)?.closest('.decide') === node.closest('.decide');
    });
    for (let parts = 0; !await isShown(); parts++) {
      await item(page, 'Oda').locator('.primary:not([aria-disabled])').waitFor();
      await page.keyboard.press('a');
      assert.ok(parts < 10);
    }
    assert.equal((await decided('covered')).length, 0);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
});

test('the reason of a rejection gets the focus, and not the amount', async () => {
  project.import(waitingLog('refused', { tokens: 700 }));
  await page.to('/inbox', '.decide');
  const asked = item(page, 'of 700 tokens');
  await asked.getByRole('button', { name: 'Reject…' }).click();
  await asked.getByLabel('Reason').and(page.locator(':focus')).waitFor();
});

test('a click does not hit a button that has moved within its item', async () => {
  project.import(waitingLog('within', { calls: [pay({ to: 'Ulla', note: 'x' }), pay({ to: 'Ivo', note: 'one two three '.repeat(20) })] }));
  await page.to('/inbox', '.decide');
  const asked = item(page, 'Ulla');
  await asked.getByRole('button', { name: 'Reject…' }).click();
  const reject = asked.getByRole('button', { name: 'Reject', exact: true });
  await reject.and(page.locator(':not([aria-disabled])')).waitFor();
  // The context says what became of the call beside this one.
  const moved = whenOff('Ulla');
  await project.run('reject', 'within', 'Chat/0.1', '--reason', 'no');
  await moved;
  await page.locator('.batch', { has: asked }).locator('.context', { hasText: 'result' }).waitFor({ timeout: 10_000 });
});

test('a run is cancelled by its dialog and by nothing else', async () => {
  project.import(waitingLog('ended', { calls: [pay({ to: 'Nik' })] }));
  await page.to('/runs/ended', '.decide');
  await item(page, 'Nik').getByRole('button', { name: 'Reject…' }).click();
  await item(page, 'Nik').getByLabel('Reason').press('Escape');
  await item(page, 'Nik').getByLabel('Reason').waitFor({ state: 'detached' });
  await page.locator('summary[title=Actions]').click();
  await page.getByRole('button', { name: 'Cancel…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Cancel the run' });
  await dialog.getByLabel('reason').fill('Not needed.');
  await eventually(async () => assert.equal(await dialog.locator('input, textarea, select').count(), 1));
  await dialog.getByRole('button', { name: 'Cancel the run' }).click();
  await page.getByText(/^Cancelled by .*: Not needed\.$/).waitFor();
  await page.to('/runs?status=cancelled', '.run-row');
  await eventually(async () => assert.match(await page.locator('.run-row .cause').innerText(), /^Cancelled by .*: Not needed\.$/));
});

test('a key does not press the button that a click has missed', async () => {
  project.import(waitingLog('missed', { calls: [pay({ to: 'Gil' })] }));
  await page.to('/inbox', '.decide');
  const approve = item(page, 'Gil').getByRole('button', { name: 'Approve' });
  await approve.and(page.locator(':not([aria-disabled])')).waitFor();
  const { x, y } = await approve.boundingBox();
  await page.evaluate(() => dispatchEvent(new Event('focus')));
  await page.mouse.click(x + 5, y + 5);
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'BODY');
  await approve.focus();
  await page.locator('#main').evaluate((main) => { main.style.paddingTop = '2000px'; });
  await approve.and(page.locator(':not([aria-disabled])')).waitFor();
  await page.locator('#main').evaluate((main) => main.scrollTo(0, 0));
  await page.keyboard.press('Enter');
  assert.equal((await decided('missed')).length, 0, 'the item was not in view');
});

test('the bar of chosen items does not come below a second click', async () => {
  project.import(waitingLog('chosen', { calls: [pay({ to: 'Lou' }), pay({ to: 'Max' })] }));
  await page.to('/inbox', '.decide');
  // Both clicks are made in the page, since a busy machine takes longer than the wait between two of the test.
  await item(page, 'Lou').getByLabel('Choose pay').evaluate(async (box) => {
    box.click();
    while (!document.querySelector('.bulk .primary')) await new Promise(requestAnimationFrame);
    document.querySelector('.bulk .primary').click();
  });
  assert.equal((await decided('chosen')).length, 0);
  await page.locator('.decide.selected .primary:not([aria-disabled])').waitFor();
  await page.getByRole('button', { name: 'Approve 1' }).click();
  await item(page, 'Lou').waitFor({ state: 'detached' });
});

test('keys follow the focus in an inbox that was empty', async () => {
  const own = new Project();
  try {
    const window = await open(browser, await own.serve(0, '--no-work'));
    await window.to('/inbox', '.empty');
    own.import(waitingLog('first', { calls: [pay({ to: 'Amy' }), pay({ to: 'Bea' })] }));
    await window.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    await item(window, 'Bea').getByRole('button', { name: 'Edit arguments' }).focus();
    await item(window, 'Bea').and(window.locator('.selected')).waitFor();
  } finally {
    await own.close();
  }
});

test('an item that is decided elsewhere says by whom, and no card moves to another width', async () => {
  const own = new Project();
  try {
    own.import(waitingLog('here', { calls: [pay({ to: 'Cem' })] }));
    own.import(waitingLog('there', { calls: [pay({ to: 'Dov' })] }));
    const window = await open(browser, await own.serve(0, '--no-work'));
    await window.setViewportSize({ width: 1440, height: 900 });
    await window.to('/inbox', '.decide.selected');
    const about = window.locator('.beside');
    await about.getByText('Why it asks').waitFor();
    const width = (await window.locator('.decide').first().boundingBox()).width;
    const run = await window.evaluate(async () => {
      const id = document.querySelector('.decide.selected').id.slice('item-'.length);
      const { items } = await (await fetch('/api/v1/pending')).json();
      const one = items.find((item) => item.id === id);
      await fetch('/api/v1/decisions', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify([{ run: one.run, id, approve: true }]) });
      return one.run;
    });
    assert.match(run, /here|there/);
    await about.getByText(/approved this at/).waitFor();
    await about.getByText('Nothing selected').waitFor();
    await eventually(async () => assert.equal((await window.locator('.decide').boundingBox()).width, width));
    await window.keyboard.press('j');
    await about.getByText('Why it asks').waitFor();
    window.check();
  } finally {
    await own.close();
  }
});

test('keys act on what is selected and in view only', async () => {
  const calls = ['Ada', 'Bob', 'Cas'].map((to) => pay({ to, lines: Array.from({ length: 30 }, (_, i) => ({ line: i })) }));
  project.import(waitingLog('keys', { calls }));
  await page.to('/inbox', '.decide');
  const press = (...keys) => page.evaluate((all) => all.forEach((key) => document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))), keys);
  const first = item(page, 'Ada');
  await first.locator('h2').click();
  await settled();
  // The next item is selected, but not drawn as such yet.
  await press('j', 'a');
  await page.locator('.decide.selected', { hasText: 'Bob' }).waitFor();
  // Only the end of the selected one is in view.
  await page.evaluate(() => {
    const [main, node] = [document.getElementById('main'), document.querySelector('.decide.selected')];
    main.scrollBy(0, node.getBoundingClientRect().bottom - main.getBoundingClientRect().top - 70);
  });
  await settled();
  await press('a');
  await page.waitForFunction(() => document.querySelector('.decide.selected').getBoundingClientRect().top >= 0);
  await press('a');
  // The keys of a field do nothing on a link of the item.
  await first.getByRole('link', { name: /^event/ }).focus();
  await settled();
  await page.keyboard.press('Control+Enter').catch(() => {});
  // What a dialog has covered cannot be decided at once.
  await press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await page.keyboard.press('Escape');
  await first.locator('.primary[aria-disabled]').waitFor();
  assert.equal((await decided('keys')).length, 0);
});

test('neither long names nor deep places hide a value', async () => {
  const name = 'note lorem ipsum '.repeat(12);
  const inner = Array.from({ length: 40 }).reduce((of, _, i) => ({ [`k${i}`]: of }), ['\u05d0\u05d1', 100, 'FAR-9']);
  const values = { to: 'Bea', [name]: 'TOP-99999', headers: { [name]: 'IN-99', [name.replaceAll(' ', '')]: 'ONE-WORD' }, list: [{ [name]: 'TREE-9' }], inner };
  project.import(waitingLog('names', { calls: [pay({ ...values, list: undefined, inner: undefined }), pay({ ...values, to: 'Ben' })] }));
  await page.to('/inbox', '.decide');
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 900 });
    for (const [to, texts] of [['Bea', ['TOP-99999', 'IN-99', 'ONE-WORD']], ['Ben', ['TOP-99999', 'IN-99', 'ONE-WORD', 'TREE-9', 'FAR-9']]]) {
      for (const text of texts) {
        const place = item(page, to).getByText(text).last();
        await place.scrollIntoViewIfNeeded();
        const isShown = await place.evaluate((node) => {
          const range = document.createRange();
          range.selectNodeContents(node);
          const [first, last] = [[...range.getClientRects()].at(0), [...range.getClientRects()].at(-1)];
          const points = [[first.left + 1, first.top + 2], [last.right - 2, last.bottom - 2]];
          return last.width > 10 && points.every((point) => node.contains(document.elementFromPoint(...point)));
        });
        assert.ok(isShown, `${text} of ${to} at ${width} pixels`);
      }
    }
  }
  // Each text is isolated, so that one from right to left does not change the order of the others.
  await eventually(async () => assert.deepEqual((await item(page, 'Ben').locator('.leaf bdi').allInnerTexts()).slice(-2), ['"\u05d0\u05d1"', '"FAR-9"']));
  await page.setViewportSize({ width: 1280, height: 900 });
});

test('very large and very odd arguments leave the page usable', async () => {
  const calls = [pay({ to: `Cal${'\u200b'.repeat(40_000)}` }), pay({ to: 'Cem', list: Array.from({ length: 100_000 }, (_, i) => i) })];
  project.import(waitingLog('heavy', { calls }));
  await page.to('/inbox', '.decide');
  const [hidden, long] = ['Cal', 'Cem'].map((text) => page.locator('.decide').filter({ has: page.locator('.fields, .prose', { hasText: text }) }));
  await hidden.getByText('⟨U+200B⟩⟨U+200B⟩').first().waitFor();
  await eventually(async () => assert.match(await long.locator('.prose').innerText(), / 99999\n/));
  for (const asked of [hidden, long]) assert.ok(await asked.locator('*').count() < 1000);
  await hidden.getByRole('button', { name: 'Reject…' }).click();
  await hidden.getByLabel('Reason').fill('spam');
  await hidden.getByRole('button', { name: 'Reject' }).click();
  await hidden.waitFor({ state: 'detached' });
});

test('a schema neither renames arguments nor hides what is chosen', async () => {
  const $defs = Object.fromEntries(Array.from({ length: 22 }, (_, i) => [`d${i}`, { type: 'object', properties: { a: { $ref: `#/$defs/d${i + 1}` }, b: { $ref: `#/$defs/d${i + 1}` } }, required: ['a', 'b'] }]));
  $defs.d22 = { type: 'string' };
  const properties = { amount: { type: 'integer', title: 'limit' }, limit: { type: 'integer', title: 'amount' }, code: { enum: [1, '1'] }, more: { $ref: '#/$defs/d0' } };
  project.import(waitingLog('titles', { calls: [pay({ amount: 7, limit: 900, code: 1, note: 'Dee', flag: 'false' }, { schema: { type: 'object', properties, $defs, required: ['code'] } })] }));
  await page.to('/inbox', '.decide');
  const asked = item(page, 'Dee');
  await eventually(async () => assert.ok(await asked.getByText('"false"', { exact: true }).isVisible()));
  await asked.getByRole('button', { name: 'Edit arguments' }).click();
  await eventually(async () => assert.equal(await asked.getByLabel('amount').inputValue(), '7'));
  await asked.getByRole('group', { name: 'more' }).getByRole('button', { name: 'Add' }).click();
  await asked.getByRole('button', { name: 'Remove' }).first().waitFor();
  await eventually(async () => assert.ok(await asked.locator('input, textarea, select').count() < 1000, 'a schema that refers to itself twice has a form with an end'));
  await asked.getByRole('button', { name: 'Remove' }).first().click();
  await asked.getByLabel('code').selectOption('–');
  assert.equal(await asked.getByLabel('code').evaluate((choice) => choice.validity.valueMissing), true, 'a required choice is not left open');
  await asked.getByLabel('code').selectOption('"1"');
  const sent = page.waitForRequest('**/api/v1/decisions');
  await asked.getByRole('button', { name: 'Approve as edited' }).click();
  assert.equal(JSON.parse((await sent).postData())[0].arguments.code, '1');
});

test('a repetition of a decision without an answer has the same key', async () => {
  project.import(waitingLog('repeated', { calls: [pay({ to: 'Eli' })] }));
  await page.to('/inbox', '.decide');
  const [asked, keys] = [item(page, 'Eli'), []];
  await page.route('**/api/v1/decisions', async (route) => {
    keys.push(route.request().headers()['idempotency-key']);
    if (keys.length > 1) return route.continue();
    await route.fetch();
    return route.fulfill({ status: 200, body: 'a page of a proxy' });
  });
  await page.route(/\/stream|\/pending/, (route) => route.abort());
  await asked.getByRole('button', { name: 'Approve' }).click();
  await asked.getByText('cannot be read').waitFor();
  await asked.getByRole('button', { name: 'Approve' }).click();
  await asked.locator('.note[role=status]').waitFor();
  assert.equal(keys[0], keys[1]);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

test('an answer that is older than its question is named where a person decides, and at its call', async () => {
  project.import(waitingLog('older', { calls: [pay({ to: 'Kai' })] }));
  const received = '2026-11-10T08:00:00Z';
  await page.route('**/api/v1/pending*', async (route) => {
    const answer = await route.fetch();
    const list = await answer.json();
    const items = list.items.map((one) => (one.run === 'older' ? { ...one, older_answers: [{ call: 'Chat/0.0', tool: 'ask', received, seq: 3 }] } : one));
    await route.fulfill({ response: answer, json: { ...list, items } });
  });
  await page.to('/inbox', '.decide');
  await item(page, 'Kai').getByText(/The answer to ask came \d+ d ago, before it was asked/).waitFor();
  await eventually(async () => assert.equal(await page.getByText('before it was asked').count(), 1));
  await accessible(page, 'an item after an older answer');
  await page.route('**/runs/older/timeline', async (route) => {
    const answer = await route.fetch();
    const whole = await answer.json();
    const wait = { webhook: 'orders', identifier: 'T-1', person: false };
    const resumed = { at: 1_795_000_001_000_000, cause: 'answered', wait: 0, payload: { text: 'yes' }, received: 1_794_000_000_000_000 };
    const nodes = whole.timeline.nodes.map((node) => (node.kind.type === 'call' ? { ...node, kind: { ...node.kind, waits: [{ since: 1_795_000_000_000_000, waits: [wait], resumed }] } } : node));
    await route.fulfill({ response: answer, json: { ...whole, timeline: { ...whole.timeline, nodes } } });
  });
  await page.to('/runs/older', '.row.call');
  await eventually(async () => assert.match(await page.locator('.row.call').innerText(), /waited 1\.0 s for orders T-1\s+—\s+text: yes\s+older than its question/));
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

test('of three days, three are left at once', async () => {
  project.import(waitingLog('days', { calls: [pay({ to: 'Quentin' }, { expires: Date.now() * 1000 + 72 * 3_600_000_000 })] }));
  await page.to('/inbox', '.decide');
  await item(page, 'Quentin').waitFor();
  await eventually(async () => assert.match(await item(page, 'Quentin').innerText(), /expires in 3 d\b/));
});

test('an expired request says so', async () => {
  project.import(waitingLog('late', { calls: [pay({ to: 'Fay' }, { expires: 1_795_000_001_000_000 })] }));
  await page.to('/inbox', '.decide');
  await item(page, 'Fay').getByRole('button', { name: 'Approve' }).click();
  await eventually(async () => assert.match(await item(page, 'Fay').locator('.note.lost').innerText(), /expired/));
  await eventually(async () => assert.equal(await item(page, 'Fay').getByRole('button', { name: 'Approve' }).count(), 0));
  assert.equal((await decided('late')).length, 0);
});

test('more of a limit is granted once, although two windows grant it', async () => {
  project.import(waitingLog('limited', { tokens: 500 }));
  await page.to('/inbox', '.decide');
  const second = await page.context().newPage();
  await second.route(/\/stream/, (route) => route.abort());
  await second.goto(page.url());
  const asked = 'of 500 tokens';
  await item(second, asked).waitFor();
  await item(page, asked).getByLabel('Grant more tokens').fill('700');
  await item(page, asked).getByRole('button', { name: 'Grant' }).click();
  await item(page, asked).waitFor({ state: 'detached' });
  await item(second, asked).getByRole('button', { name: 'Grant' }).click();
  await eventually(async () => assert.match(await item(second, asked).locator('.note.lost').innerText(), /granted this[\s\S]*was not recorded/));
  await second.close();
  assert.deepEqual((await decided('limited')).map(({ decision, more }) => [decision, more]), [['approved', { tokens: 700 }]]);
  page.check();
});

test('the address has the kind and the item, and a reload keeps both', async () => {
  for (const name of ['left', 'right']) project.import(waitingLog(name, { calls: [pay({ to: name }, { expires: soon() })] }));
  await page.to('/inbox', '.decide');
  await page.getByRole('button', { name: /^Approvals/ }).click();
  await settled();
  const chosen = () => page.locator('.decide.selected').getAttribute('id');
  const before = await chosen();
  await page.keyboard.press('j');
  await eventually(async () => assert.notEqual(await chosen(), before));
  const id = await chosen();
  await eventually(() => assert.match(page.url(), new RegExp(`/inbox\\?kind=approvals&item=${id.slice('item-'.length)}$`)));
  await page.reload();
  await page.locator('.decide.selected').waitFor();
  await eventually(async () => assert.equal(await chosen(), id));
  assert.equal(await page.getByRole('button', { name: /^Approvals/ }).getAttribute('aria-pressed'), 'true');
  page.check();
});

test('what comes under a pointer that rests waits longer than what a reader goes to', async () => {
  for (const name of ['upper', 'under']) project.import(waitingLog(`rest-${name}`, { calls: [pay({ to: name }, { expires: soon() - 1_000_000 })] }));
  await page.to('/inbox?kind=approvals', '.decide');
  const [first, second] = ['upper', 'under'].map((name) => item(page, name));
  await first.locator('.primary:not([aria-disabled])').waitFor();
  // The page itself measures: a busy machine is late with a measurement from outside.
  await second.evaluate((node, before) => {
    let [came, isOff] = [null, false];
    new MutationObserver(() => {
      if (before.isConnected) return;
      came ??= performance.now();
      // The page notices the move with its next drawing.
      isOff ||= Boolean(node.querySelector('.primary[aria-disabled]'));
      if (isOff && !node.querySelector('.primary[aria-disabled]')) globalThis.rested ??= performance.now() - came;
    }).observe(document.body, { subtree: true, childList: true, attributes: true });
  }, await first.elementHandle());
  await first.locator('.primary').click();
  const rested = await (await page.waitForFunction(() => globalThis.rested)).jsonValue();
  assert.ok(rested > 1000, `${rested} ms`);
  page.check();
});
