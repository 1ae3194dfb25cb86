// Brains as tools with the official clients of MCP: of the newest revision (`@modelcontextprotocol/client`), which also speaks the
// older one, and of the older one (`@modelcontextprotocol/sdk`). Both check results against the tool's schema.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { start } from './server.mjs';

const from = (folder, path) => import(pathToFileURL(`${folder}/${path}`));
const { Client, StreamableHTTPClientTransport } = await from(process.env.POSITRONIC_MCP_CLIENT, 'dist/index.mjs');
const { StdioClientTransport } = await from(process.env.POSITRONIC_MCP_CLIENT, 'dist/stdio.mjs');
const older = await from(process.env.POSITRONIC_MCP_SDK, 'dist/esm/client/index.js');
const { StreamableHTTPClientTransport: OlderTransport } = await from(process.env.POSITRONIC_MCP_SDK, 'dist/esm/client/streamableHttp.js');
const { ElicitRequestSchema } = await from(process.env.POSITRONIC_MCP_SDK, 'dist/esm/types.js');

let server;
before(async () => { server = await start(); });
after(() => server.stop());

const yes = { action: 'accept', content: { approve: true } };
const info = { name: 'test', version: '1' };

/** Connects a client. `answer` answers its forms; without it, it has none. */
async function connect(kind, answer, token = server.ann, more = {}) {
  const capabilities = { ...(answer && { elicitation: { form: {} } }), ...more };
  const asked = [];
  const handler = (request) => { asked.push(request.params); return answer(request.params); };
  const url = new URL(`${server.address}/api/v1/mcp`);
  const options = { requestInit: { headers: { authorization: `Bearer ${token}` } } };
  let client;
  if (kind === 'sdk') {
    client = new older.Client(info, { capabilities });
    if (answer) client.setRequestHandler(ElicitRequestSchema, handler);
    await client.connect(new OlderTransport(url, options));
  } else {
    client = new Client(info, { capabilities, versionNegotiation: { mode: kind } });
    if (answer) client.setRequestHandler('elicitation/create', handler);
    await client.connect(new StreamableHTTPClientTransport(url, options));
  }
  after(() => client.close());
  const call = (name, args, more) => (kind === 'sdk'
    ? client.callTool({ name, arguments: args }, undefined, more)
    : client.callTool({ name, arguments: args }, more));
  return { client, call, asked };
}

const text = (result) => result.content.map((part) => part.text).join('\n');
const runOf = (result) => /run ([0-9a-f-]{36})/.exec(text(result))[1];

for (const kind of ['auto', 'legacy', 'sdk']) {
  test(`${kind}: brains are tools, and their results match their schemas`, async () => {
    const { client, call } = await connect(kind);

    const { tools } = await client.listTools();
    const result = await call('Weather_report', { city: 'Graz' });
    const refused = await call('Weather_report', { town: 'Graz' });

    assert.deepEqual(tools.map((tool) => tool.name), ['Chat', 'Items', 'Survey', 'Name', 'Report', 'Weather_report', 'Guide', 'run_status']);
    const weather = tools.find((tool) => tool.name === 'Weather_report');
    assert.equal(weather.title, 'Weather report');
    assert.deepEqual(weather.outputSchema.required, ['city', 'degrees']);
    assert.deepEqual(result.structuredContent, { city: 'Graz', degrees: 7.5 });
    assert.equal(refused.isError, true);
    assert.match(text(refused), /city/);
  });

  test(`${kind}: progress, the answer, and of the state only what is public`, async () => {
    const { call } = await connect(kind);
    const heard = [];

    const result = await call('Chat', { message: 'two' }, { onprogress: ({ message }) => heard.push(message) });

    const run = result._meta['positronic/run'];
    assert.deepEqual(heard, [`run ${run}`, 'stage Answer', 'tool add', 'tool add']);
    assert.equal((await server.api(server.ann, `/runs/${run}`)).body.id, run);
    assert.equal(result.content[0].text, 'Done.');
    assert.deepEqual(result.structuredContent, { sum: 3 });
  });

  test(`${kind}: an approval is a form, and one in each brain of a map, too`, async () => {
    const { call, asked } = await connect(kind, () => yes);

    const one = await call('Chat', { message: 'refund' });
    const two = await call('Items', {});

    assert.equal(text(one).split('\n')[0], 'Done.');
    assert.equal(asked.length, 3);
    assert.match(asked[0].message, /refund.*100.*it costs money/);
    assert.notEqual(two.isError, true);
  });

  test(`${kind}: a question of a stage is a form with its own fields`, async () => {
    const { call, asked } = await connect(kind, () => ({ action: 'accept', content: { text: 'blue' } }));

    await call('Survey', {});

    assert.deepEqual(Object.keys(asked[0].requestedSchema.properties), ['text']);
    assert.match(asked[0].message, /Which colour has a kettle/);
  });

  test(`${kind}: a declined form rejects, and a closed one leaves the question to others`, async () => {
    const declined = await (await connect(kind, () => ({ action: 'decline' }))).call('Chat', { message: 'refund' });
    const closed = await (await connect(kind, () => ({ action: 'cancel' }))).call('Chat', { message: 'refund' });

    assert.equal(declined.content[0].text, 'Done.');
    assert.equal(closed.isError, true);
    assert.match(text(closed), /positronic approve/);
  });

  test(`${kind}: without forms, the result says how a person decides, and is read later`, async () => {
    const { call } = await connect(kind);
    const waiting = await call('Chat', { message: 'refund' });
    const run = runOf(waiting);

    const { body } = await server.api(server.service, `/pending?run=${run}`);
    await server.api(server.service, `/runs/${run}/calls/${body.items[0].id}/decision`, { approve: true });
    let later;
    do later = await call('run_status', { run }); while (/is running/.test(text(later)));

    assert.equal(waiting.isError, true);
    assert.match(text(waiting), new RegExp(`positronic approve ${run} Answer/0.0`));
    assert.equal(later.content[0].text, 'Done.');
  });

  test(`${kind}: a run of another user does not exist`, async () => {
    const { call } = await connect(kind);
    const ben = await connect(kind, undefined, server.ben);
    const run = runOf(await call('Chat', { message: 'refund' }));

    const stolen = await ben.call('run_status', { run });

    assert.equal(stolen.isError, true);
    assert.match(text(stolen), /there is no run/);
  });
}

test('a client that goes away has heard of its run, and cancels it by its id', async () => {
  const { call } = await connect('auto', undefined, server.service);
  const gone = new AbortController();
  let run;
  const onprogress = ({ message }) => {
    run ??= /^run (\S+)$/.exec(message)?.[1];
    if (/^stage/.test(message)) gone.abort();
  };
  await assert.rejects(call('Chat', { message: 'slow' }, { onprogress, signal: gone.signal }));
  const status = async () => (await server.api(server.service, `/runs/${run}`)).body.status;
  assert.equal(await status(), 'running', 'a client that goes away cancels nothing');

  const cancelled = await server.api(server.service, `/runs/${run}/signals`, { type: 'cancel' });
  assert.ok(cancelled.status < 300, JSON.stringify(cancelled));

  while (await status() !== 'cancelled') await new Promise((resolve) => setTimeout(resolve, 20));
  await server.open();
});

test('a client that listens to a task is told what it asks and how it ends', async () => {
  const run = runOf(await (await connect('auto')).call('Chat', { message: 'refund' }));
  const { client } = await connect('auto', undefined, server.ann, { extensions: { 'io.modelcontextprotocol/tasks': {} } });
  const heard = [];
  client.fallbackNotificationHandler = async ({ method, params }) => {
    assert.equal(method, 'notifications/tasks');
    heard.push(params);
    if (params.status !== 'input_required') return;
    const { body } = await server.api(server.service, `/pending?run=${run}`);
    await server.api(server.service, `/runs/${run}/calls/${body.items[0].id}/decision`, { approve: true });
  };

  const subscription = await client.listen({ taskIds: [run] });
  await subscription.closed;

  const statuses = heard.map(({ status }) => status).filter((status) => status !== 'working');
  assert.deepEqual(statuses, ['input_required', 'completed']);
  assert.equal(heard.at(-1).taskId, run);
  assert.equal(heard.at(-1).result.content[0].text, 'Done.');
});

test('a call that outlasts its wait says which program the run waits for, and how it is answered', async () => {
  const { call } = await connect('auto');

  const result = await call('Chat', { message: 'hook' });
  const status = await call('run_status', { run: runOf(result) });

  assert.equal(result.isError, true);
  assert.match(text(result), /waits for another program: the webhook `program`.*positronic send --webhook program --identifier 7 --payload JSON/);
  assert.match(text(status), /waits for another program/);
  await server.webhook();
});

for (const kind of ['legacy', 'sdk']) {
  test(`${kind}: a decision made elsewhere ends the call whose form is open`, async () => {
    let shown;
    const open = new Promise((resolve) => { shown = resolve; });
    const { call } = await connect(kind, () => { shown(); return new Promise(() => {}); });
    const result = call('Chat', { message: 'refund' });
    await open;

    const { body } = await server.api(server.service, '/pending');
    const refunds = body.items.filter(({ tool }) => tool === 'refund');
    for (const { run, id } of refunds) await server.api(server.service, `/runs/${run}/calls/${id}/decision`, { approve: true });

    assert.notEqual(refunds.length, 0);
    assert.equal((await result).content[0].text, 'Done.');
  });

  test(`${kind}: a cancelled call cancels its run, for a caller that may cancel runs`, async () => {
    for (const [token, status] of [[server.service, 'cancelled'], [server.ann, 'waiting']]) {
      let shown;
      const open = new Promise((resolve) => { shown = resolve; });
      const { call } = await connect(kind, () => { shown(); return new Promise(() => {}); }, token);
      const ending = new AbortController();
      const result = call('Chat', { message: 'refund' }, { signal: ending.signal });
      await open;
      const { body: { items: [{ id: run }] } } = await server.api(server.service, '/runs?limit=1');

      ending.abort('enough');
      await assert.rejects(result);

      let row;
      do row = (await server.api(server.service, `/runs/${run}`)).body; while (status === 'cancelled' && row.status !== status);
      assert.equal(row.status, status);
    }
  });
}

for (const mode of ['auto', 'legacy']) {
  test(`${mode}: a command that stops answers its call`, async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'positronic-mcp-'));
    after(() => rmSync(cwd, { recursive: true, force: true }));
    const client = new Client(info, { versionNegotiation: { mode } });
    const transport = new StdioClientTransport({ command: process.env.POSITRONIC_EXAMPLES, args: ['mcp'], cwd, stderr: 'ignore' });
    await client.connect(transport);
    // The first progress says that the call has its run. A second signal would not wait for the answer.
    const onprogress = ({ progress }) => progress === 1 && process.kill(transport.pid, 'SIGINT');

    const result = await client.callTool({ name: 'Parcel', arguments: { number: '7', titles: ['Kettles'] } }, { onprogress });

    assert.equal(result.isError, true);
    assert.match(text(result), /The server is stopping\. The run [0-9a-f-]{36} continues/);
    await client.close();
  });
}
