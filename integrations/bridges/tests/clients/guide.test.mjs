// The code of docs/guide/mcp-server.md for JavaScript as it stands there, against the commands of the examples: over the standard streams,
// and over HTTP with the changes that the page names.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { Project } from '../../../server/tests/inspector/server.mjs';

const GUIDE = readFileSync(new URL('../../../../docs/guide/mcp-server.md', import.meta.url), 'utf8');
const [STREAMS, CONNECT] = [...GUIDE.matchAll(/^```js\n([\s\S]*?)^```$/gm)].map(([, code]) => code);
const PACKAGES = process.env.POSITRONIC_MCP_CLIENT;

let project;
before(() => {
  project = new Project();
  symlinkSync(PACKAGES.slice(0, PACKAGES.lastIndexOf('/@modelcontextprotocol')), join(project.folder, 'node_modules'));
  mkdirSync(join(project.folder, 'bin'));
  symlinkSync(process.env.POSITRONIC_EXAMPLES, join(project.folder, 'bin/positronic'));
});
after(() => project.close());

/** Runs code as a module, and returns what it prints. */
async function run(code, env = {}) {
  const file = join(project.folder, 'client.mjs');
  writeFileSync(file, code);
  const path = `${join(project.folder, 'bin')}:${project.env.PATH}`;
  const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: project.folder, env: { ...project.env, PATH: path, ...env } });
  return stdout;
}

test('a client that starts the command gets the brains and an answer', async () => {
  assert.match(await run(STREAMS), /'Kitchen'[\s\S]*leek omelette with rice/);
});

test('a client that connects over HTTP gets the brains and an answer', async () => {
  const TOKEN = /pos_\S+/.exec(project.command('token', 'create', 'editor', '--user', 'ann', '--scope', 'read,run,decide'))[0];
  const { origin } = new URL(await project.serve(0, '--bridge', 'mcp'));
  const code = STREAMS.replace(/^import \{ StdioClientTransport \}.*\n/m, '')
    .replace('import { Client }', 'import { Client, StreamableHTTPClientTransport }')
    .replace(/^await client\.connect.*\n/m, () => CONNECT.replace('http://127.0.0.1:4747', origin));

  assert.match(await run(code, { TOKEN }), /'Kitchen'[\s\S]*leek omelette with rice/);
});
