// The server under test: the examples' own binary with their cassettes, on a store in a temporary folder.
import { spawn, spawnSync, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const BINARY = process.env.POSITRONIC_EXAMPLES;

export class Project {
  /** `env` are further variables of its commands. */
  constructor(env = {}) {
    this.binary = BINARY;
    this.env = { PATH: process.env.PATH, HOME: process.env.HOME, NO_COLOR: '1', ...env };
    this.folder = mkdtempSync(join(tmpdir(), 'inspector-'));
    this.store = join(this.folder, 'runs.db');
  }

  command(...args) {
    return execFileSync(BINARY, [...args, '--store', this.store], { cwd: this.folder, env: this.env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  }

  /** Runs a command as a process of its own, so that a server of this test can answer it. */
  async run(...args) {
    const child = spawn(BINARY, [...args, '--store', this.store], { cwd: this.folder, env: this.env, stdio: ['ignore', 'ignore', 'inherit'] });
    await once(child, 'exit');
  }

  /** Says lines in a conversation. A line that waits for a person ends it. */
  talk(brain, conversation, user, lines) {
    spawnSync(BINARY, ['chat', brain, '--conversation', conversation, '--user', user, '--store', this.store], { cwd: this.folder, env: this.env, input: lines.map((line) => `${line}\n`).join(''), stdio: ['pipe', 'ignore', 'ignore'] });
  }

  /** Starts `serve`; returns the address that signs a browser in. */
  serve(port = 0, ...more) {
    return this.start(['serve', '--listen', `127.0.0.1:${port}`, '--store', this.store, ...more]);
  }

  /** Imports a run from the lines of its log. */
  import(lines) {
    const file = join(this.folder, 'import.jsonl');
    writeFileSync(file, `${lines.join('\n')}\n`);
    return this.command('import', file);
  }

  inspect(lines) {
    const file = join(this.folder, 'run.jsonl');
    writeFileSync(file, `${lines.join('\n')}\n`);
    return this.start(['inspect', file]);
  }

  start(args) {
    const child = spawn(this.binary, args, { cwd: this.folder, env: this.env, stdio: ['ignore', 'pipe', 'ignore'] });
    this.child = child;
    return new Promise((resolve, reject) => {
      let text = '';
      child.stdout.on('data', (bytes) => {
        text += bytes;
        const address = /http:\S+/.exec(text)?.[0];
        if (address && text.endsWith('\n')) resolve(address);
      });
      child.on('exit', () => reject(new Error(`the server ended: ${text}`)));
    });
  }

  /** Ends the server as a crash does. */
  kill() {
    const ended = new Promise((resolve) => this.child.on('exit', resolve));
    this.child.kill('SIGKILL');
    return ended;
  }

  async close() {
    if (this.child && this.child.exitCode === null && this.child.signalCode === null) await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Serves an OpenAI-compatible model on the loopback interface: `answer(request)` gives `{ text, calls }`, or `{ status }` for a failure; it begins after `held`, and ends after `end`. `requests` are
 *  the bodies that it got. */
export async function modelServer(answer) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    const asked = JSON.parse(body);
    requests.push(asked);
    const { text = '', calls = [], status = 200, held, end } = answer(asked);
    await held;
    if (status !== 200) {
      response.writeHead(status, { 'Content-Type': 'application/json' });
      return response.end(JSON.stringify({ error: { message: 'the model is overloaded' } }));
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const chunk = (delta, more = {}) => response.write(`data: ${JSON.stringify({ id: 'a', object: 'chat.completion.chunk', model: asked.model, choices: [{ index: 0, delta, finish_reason: null, ...more }] })}\n\n`);
    for (const word of text.match(/\S+\s*/g) ?? []) chunk({ content: word });
    await end;
    if (calls.length) chunk({ tool_calls: calls.map(({ name, arguments: given }, index) => ({ index, id: `call-${index}`, type: 'function', function: { name, arguments: JSON.stringify(given) } })) });
    chunk({}, { finish_reason: calls.length ? 'tool_calls' : 'stop' });
    response.write(`data: ${JSON.stringify({ id: 'a', object: 'chat.completion.chunk', model: asked.model, choices: [], usage: { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100 } })}\n\ndata: [DONE]\n\n`);
    return response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { requests, address: `http://127.0.0.1:${server.address().port}/v1`, close: () => server.close() };
}

/** Makes the log of a run whose loop has got many messages. */
export function longLog(events) {
  const at = 1_795_000_000_000_000;
  const fingerprint = '0'.repeat(32);
  const lines = [
    { seq: 0, at, type: 'BRAIN_START', title: 'Long', fingerprint, stages: [{ name: 'Chat', kind: 'loop' }], options: {} },
    { seq: 1, at, epoch: 1, type: 'RUN_CLAIMED', owner: 'worker' },
    { seq: 2, at, epoch: 1, path: 'Chat', type: 'LOOP_START', input: 'Begin.', limits: {} },
  ];
  for (let seq = lines.length; seq < events; seq++) lines.push({ seq, at: at + seq * 1000, path: 'Chat', type: 'LOOP_MESSAGE', text: `Message ${seq} of the long run` });
  return [{ positronic_run: 1, run: 'long-run', brain: 'Long', events }, ...lines].map((line) => JSON.stringify(line));
}

/** Makes the log of a run that ends with an event. */
export function endedLog(run, ending) {
  const at = 1_795_000_000_000_000;
  const events = [{ type: 'BRAIN_START', title: 'Sum', fingerprint: '0'.repeat(32), stages: [], options: {} }, ending];
  const lines = events.map((event, seq) => ({ seq, at: at + seq * 1000, ...event }));
  return [{ positronic_run: 1, run, brain: 'Sum', events: lines.length }, ...lines].map((line) => JSON.stringify(line));
}

/** Makes the log of a run of today in which models have answered: `answers` are `{ model, amount, input }`, with the cost in dollars, or without one. */
export function pricedLog(run, answers) {
  const at = Date.now() * 1000 - 60_000_000;
  const events = [
    { type: 'BRAIN_START', title: 'Priced', fingerprint: '0'.repeat(32), stages: [{ name: 'Chat', kind: 'loop' }], options: {} },
    { path: 'Chat', type: 'LOOP_START', input: 'Begin.', limits: {} },
    ...answers.flatMap(({ model, amount, input }, i, { length }) => [
      { path: `Chat/${i}`, type: 'LOOP_ITERATION', tools: [] }, { path: `Chat/${i}`, type: 'LOOP_MODEL_CALL', model: `acme/${model}` },
      { path: `Chat/${i}`, type: 'LOOP_MODEL_RESULT', parts: [i + 1 < length ? { type: 'call', index: 0 } : { type: 'text', text: 'Well.' }], metadata: { provider: 'acme', model, finish: i + 1 < length ? 'calls' : 'stop', usage: { input, output: 1 }, ...(amount && { cost: { amount, currency: 'USD' } }) }, duration: 1 },
      ...(i + 1 < length ? [{ path: `Chat/${i}.0`, type: 'LOOP_TOOL_CALL', tool: 'look', arguments: {} }, { path: `Chat/${i}.0`, type: 'LOOP_TOOL_START' }, { path: `Chat/${i}.0`, type: 'LOOP_TOOL_RESULT', result: { type: 'success', output: 'seen' }, duration: 1 }] : [])]),
    { path: 'Chat', type: 'LOOP_COMPLETE', outcome: { type: 'answered' }, usage: { input: answers.reduce((all, { input }) => all + input, 0), output: answers.length } },
    { type: 'BRAIN_COMPLETE', result: 'Well.' },
  ];
  const lines = events.map((event, seq) => ({ seq, at: at + seq * 1000, ...event }));
  return [{ positronic_run: 1, run, brain: 'Priced', events: lines.length }, ...lines].map((line) => JSON.stringify(line));
}

/** Makes the log of a run that waits for people: for approvals of calls `{ tool, arguments, expires, schema }`, or for
 *  more tokens than `tokens`. */
export function waitingLog(run, { calls = [], tokens }) {
  const at = 1_795_000_000_000_000;
  const parts = calls.map((_, index) => ({ type: 'call', index }));
  const metadata = { provider: 'test', finish: 'calls', usage: { input: 2 * (tokens ?? 0) } };
  const limits = tokens ? { max_tokens: tokens } : {};
  const events = [
    { type: 'BRAIN_START', title: 'Till', fingerprint: '0'.repeat(32), stages: [{ name: 'Chat', kind: 'loop' }], options: {} },
    { path: 'Chat', type: 'LOOP_START', input: 'Begin.', limits },
    { path: 'Chat/0', type: 'LOOP_ITERATION', tools: calls.filter(({ schema }) => schema).map(({ tool: id, schema: parameters }) => {
      const body = { id, description: '', parameters, flags: {} };
      return { id, hash: createHash('sha256').update(JSON.stringify(body)).digest('hex').slice(0, 32), body };
    }) },
    { path: 'Chat/0', type: 'LOOP_MODEL_CALL', model: 'test/model' },
    { path: 'Chat/0', type: 'LOOP_MODEL_RESULT', parts: tokens ? [{ type: 'text', text: 'More.' }] : parts, metadata, duration: 1 },
    ...calls.map(({ tool, arguments: given, reason = 'money moves' }, index) => ({ path: `Chat/0.${index}`, type: 'LOOP_TOOL_CALL', tool,
      arguments: given, gate: { reason } })),
    ...calls.map(({ hash, expires, reason = 'money moves' }, index) => ({ path: `Chat/0.${index}`, type: 'LOOP_APPROVAL_REQUESTED', reason,
      editable: true, arguments_hash: hash ?? '0'.repeat(32), ...(expires && { expires }) })),
    ...(tokens ? [{ path: 'Chat', type: 'BUDGET_REQUESTED', kind: 'tokens', limit: tokens, used: 2 * tokens }] : []),
  ];
  const lines = events.map((event, seq) => ({ seq, at: at + seq * 1000, ...event }));
  return [{ positronic_run: 1, run, brain: 'Till', events: lines.length }, ...lines].map((line) => JSON.stringify(line));
}

/** Makes the log of a run that was cut off by its limit of tokens in its only iteration; without `limit`, it ends by itself. The folder of its own is another one in each run. */
export function limitedLog(run, limit) {
  const at = 1_795_000_000_000_000;
  const usage = { input: 400, output: 100 };
  const events = [
    { type: 'BRAIN_START', title: 'Desk', fingerprint: '0'.repeat(32), stages: [{ name: 'Prepare', kind: 'step' }, { name: 'Work', kind: 'loop' }], options: {} },
    { path: 'Prepare', type: 'STEP_START' }, { path: 'Prepare', type: 'STEP_COMPLETE', change: { state: { folder: `/tmp/desk-${run}` } }, duration: 1 },
    { path: 'Work', type: 'LOOP_START', input: 'Begin.', limits: {} },
    { path: 'Work/0', type: 'LOOP_ITERATION', tools: [] }, { path: 'Work/0', type: 'LOOP_MODEL_CALL', model: 'test/model' },
    { path: 'Work/0', type: 'LOOP_MODEL_RESULT', parts: [{ type: 'text', text: 'Well.' }], metadata: { provider: 'test', finish: 'stop', usage }, duration: 5 },
    ...(limit ? [{ path: 'Work', type: 'LOOP_LIMIT', kind: 'tokens', limit, used: 500 }] : []),
    { path: 'Work', type: 'LOOP_COMPLETE', outcome: limit ? { type: 'limit', limit: 'tokens' } : { type: 'answered' }, usage },
    { type: 'BRAIN_COMPLETE', result: null },
  ];
  const lines = events.map((event, seq) => ({ seq, at: at + seq * 1000, ...event }));
  return [{ positronic_run: 1, run, brain: 'Desk', events: lines.length }, ...lines].map((line) => JSON.stringify(line));
}

/** Makes the log of a run whose model answers with `text` and a call, then with two calls only, and is then refused as often as it is asked. */
export function refusedLog(run, text) {
  const at = 1_795_000_000_000_000;
  const [answered, limited] = [{ provider: 'test', finish: 'calls', usage: { input: 1400, output: 96 } }, { kind: 'rate_limited', message: 'Rate limit reached for model', status: 429 }];
  const message = 'the model of the loop `Chat` failed 3 times: Rate limit reached for model (HTTP 429); it asks to wait 1 s';
  const call = (path, tool) => [{ path, type: 'LOOP_TOOL_CALL', tool, arguments: { id: path } }, { path, type: 'LOOP_TOOL_START' }];
  const end = (path, output) => ({ path, type: 'LOOP_TOOL_RESULT', result: { type: 'success', output }, duration: 10 });
  const events = [
    { type: 'BRAIN_START', title: 'Desk', fingerprint: '0'.repeat(32), stages: [{ name: 'Chat', kind: 'loop' }, { name: 'Report', kind: 'step' }], options: { order: 'A-1' } },
    { path: 'Chat', type: 'LOOP_START', input: 'Begin.', limits: { max_iterations: 9 } },
    { path: 'Chat/0', type: 'LOOP_ITERATION', tools: [] }, { path: 'Chat/0', type: 'LOOP_MODEL_CALL', model: 'test/model' },
    { path: 'Chat/0', type: 'LOOP_MODEL_RESULT', parts: [{ type: 'text', text }, { type: 'call', index: 0 }], metadata: answered, duration: 5 }, ...call('Chat/0.0', 'look'), end('Chat/0.0', 'seen'),
    { path: 'Chat/1', type: 'LOOP_ITERATION' }, { path: 'Chat/1', type: 'LOOP_MODEL_CALL', model: 'test/model' },
    { path: 'Chat/1', type: 'LOOP_MODEL_RESULT', parts: [{ type: 'call', index: 0 }, { type: 'call', index: 1 }], metadata: answered, duration: 5 },
    ...call('Chat/1.0', 'check'), ...call('Chat/1.1', 'search'), end('Chat/1.0', 'fine'), end('Chat/1.1', 'found'),
    { path: 'Chat/2', type: 'LOOP_ITERATION' },
    ...[0, 1].flatMap((attempt) => [{ path: 'Chat/2', type: 'LOOP_MODEL_CALL', attempt, model: 'test/model' }, { path: 'Chat/2', type: 'LOOP_MODEL_RETRY', attempt, error: limited, due: at + 90_000 }]),
    { path: 'Chat/2', type: 'LOOP_MODEL_CALL', attempt: 2, model: 'test/model' },
    { path: 'Chat', type: 'LOOP_COMPLETE', outcome: { type: 'failed', code: 'model', message, retryable: true }, usage: { input: 2800, output: 192 } },
    { type: 'BRAIN_ERROR', code: 'model', message, retryable: true },
  ];
  const lines = events.map((event, seq) => ({ seq, at: at + seq * 1000, ...event }));
  return [{ positronic_run: 1, run, brain: 'Desk', events: lines.length }, ...lines].map((line) => JSON.stringify(line));
}
