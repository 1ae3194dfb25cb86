// Follows one run with many clients of a bridge, for scripts/bridge_load: node load.mjs BRIDGE CLIENTS
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [bridge, count] = [process.argv[2], Number(process.argv[3])];
const child = spawn(process.env.POSITRONIC_CLIENTS, [], { stdio: ['ignore', 'pipe', 'inherit'] });
const server = JSON.parse(await new Promise((resolve) => { createInterface({ input: child.stdout }).once('line', resolve); }));
const base = `${server.address}/api/v1`;
const headers = { authorization: `Bearer ${server.service}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const post = (path, body, more) => fetch(base + path, { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify(body) });

/** Returns the seconds of CPU time that the server has used, and its memory in MB. */
function used() {
  const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1].split(' ');
  const memory = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))[1] / 1024;
  return { cpu: (Number(fields[11]) + Number(fields[12])) / 100, memory };
}

const said = bridge === 'a2a' ? /"text":"[^"]*?(\d{13}) "/g : /"delta":"[^"]*?(\d{13}) "/g;
let [pieces, bytes] = [0, 0];
const late = [];

/** Reads a stream to its end. A piece is the time at which the model said it. */
async function follow(response) {
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    bytes += chunk.length;
    for (const [, time] of decoder.decode(chunk).matchAll(said)) {
      pieces += 1;
      late.push(Date.now() - Number(time));
    }
  }
}

const isOver = () => Date.now() > end;
let end = Infinity;

/** Reads the run once a second, as a client does that cannot follow it. */
async function poll(read) {
  await new Promise((resolve) => { setTimeout(resolve, Math.random() * 1000); });
  while (!isOver()) {
    const begun = Date.now();
    const response = await read();
    bytes += (await response.text()).length;
    if (!response.ok) throw new Error(`${response.status}`);
    pieces += 1;
    late.push(Date.now() - begun);
    await new Promise((resolve) => { setTimeout(resolve, 1000); });
  }
}

const message = { id: 'm', role: 'user', content: 'minute' };
const first = post('/ag-ui/Chat', { threadId: 'load', runId: 'first', messages: [message], tools: [], context: [] });
const begun = await first;
const before = used();
end = Date.now() + 60_000;
const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'load', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
const status = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'run_status', arguments: { run: 'load-0' }, _meta: meta } };
const ofMcp = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'run_status' };
const client = {
  'ag-ui': async (index) => follow(await post('/ag-ui/Chat', { threadId: 'load', runId: `leg-${index}`, messages: [], tools: [], context: [] })),
  'ai-sdk': async () => follow(await fetch(`${base}/ai-sdk/Chat/load/stream`, { headers })),
  a2a: async (index) => follow(await post('/a2a/Chat', { jsonrpc: '2.0', id: index, method: 'SubscribeToTask', params: { id: 'load-0' } })),
  mcp: () => poll(() => post('/mcp', status, ofMcp)),
  openai: () => poll(() => fetch(`${base}/openai/v1/responses/resp_load-0_0`, { headers })),
}[bridge];
const clients = Array.from({ length: count }, (_, index) => client(index));
await Promise.all(clients);
await begun.body.cancel();
const after = used();
late.sort((one, other) => one - other);
const quantile = (share) => late[Math.min(late.length - 1, Math.floor(late.length * share))];
console.log(`${bridge}: ${count} clients, ${pieces} pieces or reads, ${(bytes / 2 ** 20).toFixed(1)} MiB, `
  + `server ${(after.cpu - before.cpu).toFixed(1)} s of CPU and ${after.memory.toFixed(0)} MB, `
  + `late by ${quantile(0.5)} ms (median), ${quantile(0.99)} ms (99%)`);
child.kill();
