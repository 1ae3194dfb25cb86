// The server of the tests (examples/clients.rs), and its controls.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** Starts the server; `stop` ends it. */
export async function start() {
  const child = spawn(process.env.POSITRONIC_CLIENTS, [], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', (line) => resolve([line]));
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
  });
  const server = JSON.parse(line);
  const post = (path, body) => fetch(server.address + path, { method: 'POST', body }).then((response) => {
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
  });
  const api = async (token, path, body) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const response = await fetch(`${server.address}/api/v1${path}`, { headers, ...(body && { method: 'POST', body: JSON.stringify(body) }) });
    return { status: response.status, body: await response.json() };
  };
  return {
    ...server,
    api,
    /** Lets the model continue in the middle of one answer. */
    open: () => post('/gate'),
    webhook: () => post('/webhook'),
    cancel: (run) => post('/cancel', run),
    stop: () => child.kill(),
  };
}
