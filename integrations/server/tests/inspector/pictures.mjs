// Makes the pictures of the guide, from real runs against a model on the loopback interface: `node pictures.mjs <folder>`, with the variables that the
// lane of the inspector sets.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { launch, open } from './browser.mjs';
import { modelServer, Project } from './server.mjs';

const [folder] = process.argv.slice(2);
const TABLE = 'The tank is **broken**, not loose. What our rules say:\n\n| Case | Paid back |\n|---|---|\n| within 30 days | the whole price |\n| later | half of it |\n\nIt arrived **12 days** ago. I ask the refund desk before I pay.';

/** What the model of the support agent says next; a grinder is too much for its rate limit, and for several orders it asks for several refunds. */
function support({ messages }) {
  const said = messages.filter(({ role }) => role === 'assistant').length;
  if (said > 0 && JSON.stringify(messages).includes('three')) return { text: 'I pay all of it back.', calls: [249, 120, 240].map((amount) => ({ name: 'refund', arguments: { order: 'A-1001', amount } })) };
  if (said > 2 && JSON.stringify(messages).includes('grinder')) return { status: 429 };
  return [{ text: 'Let me see.', calls: [{ name: 'check_order_status', arguments: { order_id: 'A-1001' } }, { name: 'search_knowledge_base', arguments: { query: 'leaks refunds' } }] },
    { text: TABLE, calls: [{ name: 'process_refund', arguments: {} }] }, { calls: [{ name: 'search_knowledge_base', arguments: { query: 'refunds' } }] },
    { text: 'I pay all of it back.', calls: [{ name: 'refund', arguments: { order: 'A-1001', amount: 249 } }] },
    { calls: [{ name: 'resolve_ticket', arguments: { resolution: 'The tank is broken; 249 euros were paid back.' } }] }][said] ?? { text: 'Done.' };
}
function answer(asked) {
  const system = asked.messages.find(({ role }) => role === 'system')?.content ?? '';
  if (system.includes('support agent')) return support(asked);
  if (system.includes('one sentence')) return { text: 'The tallest known tree, a coast redwood in California, has 116 metres.', calls: [{ name: 'done', arguments: {} }] };
  if (system.includes('helpful assistant')) return { text: 'The tallest known tree is a coast redwood in California. It has **116 metres**, about as much as a building with 35 floors.', calls: [{ name: 'done', arguments: {} }] };
  return { text: JSON.stringify({ amount: 249, reason: 'It is broken and arrived 12 days ago.' }) };
}

const model = await modelServer(answer);
const project = new Project();
// Commands on the page have the name of the program: that of an installed one, in its project.
const folders = ['.positronic', 'bin'].map((name) => join(project.folder, name));
folders.forEach((name) => mkdirSync(name));
symlinkSync(project.binary, join(folders[1], 'positronic'));
Object.assign(project, { binary: 'positronic', store: join(folders[0], 'runs.db') });
project.env.PATH = `${folders[1]}:${project.env.PATH}`;
const prices = join(project.folder, 'prices.toml');
writeFileSync(prices, 'as_of = "2026-11-01"\ncurrency = "USD"\n[prices]\n"gpt-5-mini" = { input = 0.25, output = 2 }\n"gpt-5" = { input = 1.25, output = 10 }\n');
/** Runs a brain, with its cassette or with the model; it may fail or wait. */
const run = (...words) => project.run('run', ...words, '--prices', prices).catch(() => {});
for (const [brain, user] of [['newsletter', 'daily-news'], ['trip', 'mira'], ['release', 'ci'], ['analyst', 'ada'], ['offers', 'ops'], ['rover', 'lab']]) await run(brain, '--user', user);
await run('warranty', '--ask', '--user', 'mira');
project.talk('kitchen', 'dinner', 'ana', ['What can I cook tonight?', 'Please order the cheese.']);
project.talk('gardener', 'garden', 'ben', ['Hello.']);
project.command('schedule', 'add', 'monday-news', 'newsletter', '--cron', '0 9 * * MON', '--zone', 'Europe/Berlin', '--user', 'daily-news', '-o', 'topic=trees along the canal');
project.command('schedule', 'add', 'weather-check', 'weather', '--every', '6h');
const cassettes = project.env;
project.env = { ...cassettes, OPENAI_BASE_URL: model.address, OPENAI_API_KEY: 'none', POSITRONIC_MODEL: 'gpt-5-mini' };
for (const user of ['ben', 'ada']) await run('minimal', '--user', user);
await run('support', '--user', 'ben', '-o', 'message=The grinder of my espresso machine leaks, order A-1001. Can I have my money back?', '--id', 'grinder');
await run('support', '--user', 'mira', '--ask', '--id', 'refund');
project.env.POSITRONIC_MODEL = 'gpt-5';
await run('support', '--user', 'mira', '--ask', '--id', 'three', '-o', 'message=The machines of my three orders leak, A-1001. Can I have my money back?');
await run('minimal', '--user', 'ana');
project.env.POSITRONIC_MODEL = 'gpt-5-mini';
const browser = await launch();
const page = await open(browser, await project.start(['serve', '--listen', '127.0.0.1:0', '--prices', prices]), { viewport: { width: 1440, height: 900 } });

/** Draws a view as it is after `act`. The pointer rests where it is not seen. */
async function picture(name, path, ready, act = async () => {}) {
  await page.to(path, ready);
  await act();
  await page.mouse.move(1439, 899);
  await page.waitForLoadState('networkidle').catch(() => {});
  // What moves half a second after it was drawn is settled then.
  await page.evaluate(() => new Promise((drawn) => { setTimeout(drawn, 700); }));
  await page.screenshot({ path: join(folder, `${name}.png`) });
}
const answerRow = (n) => page.locator('.row.answer').nth(n);
const ids = await page.evaluate(async () => Object.fromEntries((await (await fetch('/api/v1/runs')).json()).items.map(({ brain, id }) => [brain, id])));

await picture('overview', '/overview', '.tile');
await picture('runs', '/runs', '.run-row');
await picture('run', '/runs/grinder', '.row.answer', async () => {
  await answerRow(1).click();
  await page.locator('.beside.pane .new').first().waitFor();
});
await picture('waterfall', '/runs/grinder/waterfall', '.bar-row');
await picture('state', '/runs/refund/state/28', '.json');
await picture('requests', '/runs/grinder/requests/20', '.request');
await picture('inbox', '/inbox', '.decide', async () => {
  const card = page.locator('.inbox > .alone > .decide', { hasText: 'refund of 249' });
  await card.getByRole('button', { name: 'Edit arguments' }).click();
  await card.getByLabel('amount').fill('200');
  await card.getByRole('button', { name: 'Approve as edited' }).scrollIntoViewIfNeeded();
});
await picture('answer', '/runs/three', '.batch', async () => {
  await page.locator('.batch > footer').scrollIntoViewIfNeeded();
});
await picture('conversations', '/conversations/dinner', '.thread .decide');
await picture('brain', '/brains/Support', '.tools-of');
await picture('schedules', '/schedules/monday-news', '.times');
await page.to('/runs/grinder', '.row.answer');
await answerRow(1).click();
await page.getByRole('button', { name: 'Fork from here' }).click();
await page.locator('.shared-rows').waitFor();
await picture('fork', new URL(page.url()).pathname.replace('/ui', ''), '.shared-rows', async () => {
  const prompt = page.locator('#fork-system');
  await prompt.fill((await prompt.inputValue()).replace('concise', 'very brief'));
});
await picture('diff', '/diff?a=refund&b=grinder', '.diff-rows');
await page.to(`/runs/${ids.Minimal}`, '.row.answer');
await answerRow(0).click();
await page.getByRole('link', { name: 'Try again with edits' }).click();
await picture('playground', new URL(await page.evaluate(() => location.href)).pathname.replace('/ui', ''), '#try-system', async () => {
  const prompt = page.locator('#try-system');
  await prompt.fill((await prompt.inputValue()).replace('assistant.', 'assistant. Answer in one sentence.'));
  await page.getByRole('button', { name: /^Send/ }).and(page.locator('.primary')).click();
  await page.getByRole('region', { name: 'Answer 1' }).waitFor();
});
page.check();
await browser.close();
await project.close();
model.close();
