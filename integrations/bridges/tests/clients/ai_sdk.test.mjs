// The AI SDK's own chat (`ai`): `AbstractChat` with `DefaultChatTransport`, as `useChat` has it. Each chunk is checked against the
// schema of the package, and the messages of each test against `safeValidateUIMessages`.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { start } from './server.mjs';

const { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, safeValidateUIMessages, uiMessageChunkSchema } =
  await import(pathToFileURL(`${process.env.POSITRONIC_AI}/dist/index.js`));

let server;
before(async () => { server = await start(); });
after(() => server.stop());

/** The state of a chat without a framework. */
class State {
  constructor(messages) { this.messages = messages; this.status = 'ready'; this.error = undefined; }
  pushMessage = (message) => { this.messages = [...this.messages, message]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (index, message) => { this.messages = this.messages.map((known, at) => (at === index ? structuredClone(message) : known)); };
  snapshot = (value) => structuredClone(value);
}

class Chat extends AbstractChat {
  constructor({ messages = [], ...init }) { super({ ...init, state: new State(messages) }); }
}

/** Checks a copy of a stream chunk by chunk. */
async function checked(response, chunks) {
  const text = await response.text();
  const lines = text.split('\n').filter((line) => line.startsWith('data: ')).map((line) => line.slice(6));
  if (response.status !== 200) return;
  assert.equal(lines.pop(), '[DONE]');
  const schema = await uiMessageChunkSchema();
  const open = new Set();
  for (const line of lines) {
    const chunk = JSON.parse(line);
    const result = await schema.validate(chunk);
    assert.ok(result.success, `${line}: ${result.error}`);
    chunks.push(chunk);
    // What the client accepts silently.
    const [kind, part] = /^(text|reasoning)-(start|end)$/.exec(chunk.type)?.slice(1) ?? [];
    if (part === 'start') open.add(kind + chunk.id);
    if (part === 'end') assert.ok(open.delete(kind + chunk.id), line);
    if (chunk.type === 'reset-step') open.clear();
  }
  assert.equal(open.size, 0, 'a text was not ended');
  assert.equal(chunks[0].type, 'start');
}

async function valid(messages) {
  const { success, error } = await safeValidateUIMessages({ messages });
  assert.ok(success, String(error));
}

/** A message without what only streams, and without fields that are undefined. */
const plain = (message) => JSON.parse(JSON.stringify(message, (name, value) => (name === 'rawInput' ? undefined : value)));

/** A chat with a brain, with its chunks. */
function chat(brain, { id = randomUUID(), token = server.ann, messages, body, resend = true } = {}) {
  const chunks = [];
  const checks = [];
  const errors = [];
  const transport = new DefaultChatTransport({
    api: `${server.address}/api/v1/ai-sdk/${brain}`,
    headers: { authorization: `Bearer ${token}` },
    body,
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      if (response.ok && response.status !== 204) assert.equal(response.headers.get('x-vercel-ai-ui-message-stream'), 'v1');
      const check = checked(response.clone(), chunks);
      // A stream that a test breaks off is not checked.
      check.catch(() => {});
      checks.push(check);
      return response;
    },
  });
  const own = new Chat({
    id, messages, transport, onError: (error) => errors.push(error),
    ...(resend && { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses }),
  });
  const load = async () => (await server.api(token, `/ai-sdk/${brain}/${id}`)).body;
  const parts = (type) => own.messages.flatMap((message) => message.parts).filter((part) => part.type === type);
  return Object.assign(own, {
    chunks, errors, parts, load,
    of: (type) => chunks.filter((chunk) => chunk.type === type),
    call: () => parts('dynamic-tool').at(-1),
    texts: () => own.messages.filter((message) => message.role === 'assistant').map((message) => message.parts.filter((part) => part.type === 'text').map((part) => part.text).join('')),
    /** Waits until a part of the last call has a state. */
    reaches: async (state) => { while (own.call()?.state !== state || own.status !== 'ready') { await new Promise((resolve) => setImmediate(resolve)); } },
    check: async () => {
      await Promise.all(checks);
      assert.deepEqual(errors, []);
      await valid(own.messages);
      // A page that loads the chat has the same messages.
      const loaded = await load();
      await valid(loaded);
      assert.deepEqual(loaded.map(plain), own.messages.map(plain));
    },
  });
}

test('a text streams into a message', async () => {
  const own = chat('Chat');
  await own.sendMessage({ text: 'hello' });

  assert.deepEqual(own.texts(), ['You said "hello".']);
  assert.equal(own.lastMessage.metadata.usage.inputTokens, 12);
  await own.sendMessage({ text: 'again' });
  assert.deepEqual(own.texts(), ['You said "hello".', 'You said "again".']);
  await own.check();
});

test('parallel calls have their inputs and outputs', async () => {
  const own = chat('Chat');
  await own.sendMessage({ text: 'two' });

  assert.deepEqual(own.parts('dynamic-tool').map((part) => [part.state, part.input.number, part.output]), [['output-available', 1, 'added'], ['output-available', 2, 'added']]);
  await own.check();
  assert.deepEqual(own.of('data-state').at(-1).data, { sum: 3 });
});

test('the output of a loop streams as partial objects', async () => {
  const own = chat('Report', { body: { options: {} } });
  const sent = own.sendMessage();
  while (own.call()?.input?.findings === undefined) await new Promise((resolve) => setImmediate(resolve));
  const early = [own.call().state, structuredClone(own.call().input)];
  await server.open();
  await sent;

  assert.deepEqual(early, ['input-streaming', { title: 'Kettles', findings: ['They bo'] }]);
  const whole = { title: 'Kettles', findings: ['They boil.', 'They whistle.'] };
  assert.deepEqual([own.call().toolName, own.call().state, own.call().input], ['done', 'output-available', whole]);
  await own.check();
});

test('a retry in the middle of an answer removes what was sent of it', async () => {
  const own = chat('Chat');
  const sent = own.sendMessage({ text: 'flaky' });
  while (!own.texts().some((text) => text.includes('break'))) await new Promise((resolve) => setImmediate(resolve));
  await server.open();
  await sent;

  assert.deepEqual(own.texts(), ['You said "flaky".']);
  await own.check();
  assert.equal(own.of('reset-step').length, 1);
});

test('an approved call runs after the automatic resend', async () => {
  const own = chat('Chat');
  await own.sendMessage({ text: 'refund' });
  const call = own.call();
  assert.equal(call.state, 'approval-requested');
  assert.deepEqual([call.toolName, call.input, call.approval.requestReason], ['refund', { amount: 100 }, 'it costs money']);

  await own.addToolApprovalResponse({ id: call.approval.id, approved: true });
  await own.reaches('output-available');

  assert.equal(own.call().output, 'refunded 100');
  assert.equal(own.messages.length, 2, 'the parts are of one message');
  assert.deepEqual(own.texts(), ['Done.']);
  await own.check();
});

test('a denied call does not run', async () => {
  const own = chat('Chat');
  await own.sendMessage({ text: 'refund' });

  await own.addToolApprovalResponse({ id: own.call().approval.id, approved: false, reason: 'too much' });
  await own.reaches('output-denied');

  assert.deepEqual(own.texts(), ['Done.']);
  await own.check();
});

test('edited arguments are sent in the body', async () => {
  const edited = {};
  const own = chat('Chat', { body: { editedArguments: edited } });
  await own.sendMessage({ text: 'refund' });
  edited[own.call().approval.id] = { amount: 40 };

  await own.addToolApprovalResponse({ id: own.call().approval.id, approved: true });
  await own.reaches('output-available');

  assert.deepEqual([own.call().input, own.call().output], [{ amount: 40 }, 'refunded 40']);
  await own.check();
});

test('a call of a nested brain asks as a call of its own', async () => {
  const own = chat('Chat');
  await own.sendMessage({ text: 'desk' });
  assert.equal(own.call().state, 'approval-requested');
  assert.deepEqual([own.call().toolName, own.call().input, own.call().approval.requestReason], ['refund', { amount: 70 }, 'it costs money']);
  assert.equal(own.parts('data-brain')[0].data.title, 'Desk');

  await own.addToolApprovalResponse({ id: own.call().approval.id, approved: true });
  await own.reaches('output-available');

  assert.deepEqual(own.parts('dynamic-tool').map((part) => part.output), ['the desk has refunded', 'refunded 70']);
  await own.check();
});

test('a wait for a person is data, and its answer is sent in the body', async () => {
  const answers = {};
  const own = chat('Chat', { body: { answers } });
  await own.sendMessage({ text: 'ask' });
  const [wait] = own.parts('data-wait');
  assert.equal(wait.data.prompt, 'What colour?');
  answers[wait.id] = { text: 'red' };

  await own.sendMessage();

  assert.match(JSON.stringify(own.call().output), /red/);
  assert.equal(own.parts('data-wait')[0].data.status, 'answered');
  await own.check();
});

test('a page that keeps its answers in the body goes on', async () => {
  const answers = {};
  const own = chat('Chat', { body: { answers } });
  await own.sendMessage({ text: 'ask' });
  answers[own.parts('data-wait')[0].id] = { text: 'red' };

  await own.sendMessage({ text: 'thanks' });
  await own.sendMessage({ text: 'more' });

  assert.deepEqual(own.errors, []);
  assert.deepEqual(own.texts().slice(-2), ['You said "thanks".', 'You said "more".']);
  await own.check();
});

test('a page that reloads in the middle of an answer gets the message and the rest of it', async () => {
  const first = chat('Chat');
  const lost = first.sendMessage({ text: 'slow' });
  while (!first.texts().some((text) => text.includes('half'))) await new Promise((resolve) => setImmediate(resolve));
  await first.stop();
  await lost;

  const second = chat('Chat', { id: first.id, messages: first.messages.slice(0, 1) });
  const resumed = second.resumeStream();
  while (!second.texts().some((text) => text.includes('half'))) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(second.texts(), ['The first half, ']);
  await server.open();
  await resumed;

  assert.deepEqual(second.texts(), ['The first half, and the second half.']);
  await second.resumeStream();
  assert.equal(second.texts().length, 1, 'nothing is active any more');
});

test('a page that reloads begins with the whole chat, and decides what is open', async () => {
  const first = chat('Chat');
  assert.deepEqual(await first.load(), [], 'a chat that has not begun');
  await first.sendMessage({ text: 'two' });
  await first.sendMessage({ text: 'desk' });

  const second = chat('Chat', { id: first.id, messages: await first.load() });
  assert.deepEqual(second.texts(), first.texts());
  await second.addToolApprovalResponse({ id: second.call().approval.id, approved: true });
  await second.reaches('output-available');

  assert.equal(second.call().output, 'refunded 70');
  await second.check();
  const other = await server.api(server.ben, `/ai-sdk/Chat/${first.id}`).catch(() => 'refused');
  assert.equal(other, 'refused', 'the chat of another user');
});

test('a message while an approval is open is answered by a message that asks again', async () => {
  const own = chat('Chat');
  await own.sendMessage({ text: 'refund' });
  const { id } = own.call().approval;
  await own.sendMessage({ text: 'hello' });
  assert.deepEqual([own.errors, own.call().approval.id, own.call().state], [[], id, 'approval-requested']);

  // An answer goes to the first message with its question, so a page shows the question of the last one.
  const reloaded = chat('Chat', { id: own.id, messages: await own.load() });
  await reloaded.addToolApprovalResponse({ id, approved: true });
  await reloaded.reaches('output-available');

  assert.equal(reloaded.call().output, 'refunded 100');
  await reloaded.check();
});

test('a text that answers a question has a message of its own', async () => {
  const own = chat('Name');
  await own.sendMessage(undefined, { body: { options: {} } });
  const [wait] = own.parts('data-wait');
  assert.equal(wait.data.answerable, true);

  await own.sendMessage({ text: 'Tom' });

  assert.deepEqual(own.errors, []);
  assert.deepEqual(own.messages.map(({ role }) => role), ['assistant', 'user', 'assistant']);
  assert.equal(own.parts('data-result')[0].data, 'THE NAME IS TOM');
  // The log has an answer without the client's id of it.
  const { id } = (await own.load()).find(({ role }) => role === 'user');
  own.messages = own.messages.map((message) => (message.role === 'user' ? { ...message, id } : message));
  await own.check();
});

test('a message that is sent again gets the whole answer again', async () => {
  const own = chat('Chat');
  await own.sendMessage({ text: 'two' });
  const again = chat('Chat', { id: own.id, messages: own.messages.slice(0, 1) });

  await again.sendMessage();

  assert.deepEqual(again.texts(), own.texts());
  await again.check();
});

test('a decision from elsewhere is shown, and a different one is refused', async () => {
  const own = chat('Chat');
  await own.sendMessage({ text: 'refund' });
  const call = own.call();
  const { body } = await server.api(server.service, `/conversations/${own.id}`);
  const run = body.runs.at(-1).id;
  await server.api(server.service, `/runs/${run}/calls/${call.approval.id}/decision`, { approve: true });

  await own.addToolApprovalResponse({ id: call.approval.id, approved: false });
  while (own.status !== 'error') await new Promise((resolve) => setImmediate(resolve));

  assert.match(own.errors[0].message, /already approved by service/);
  assert.deepEqual([own.call().state, own.call().output], ['output-available', 'refunded 100'], 'the page has what came of it');
});

test('a failed run is an error, and a cancelled one is aborted', async () => {
  const failed = chat('Chat');
  await failed.sendMessage({ text: 'fail' });
  assert.equal(failed.status, 'error');
  assert.deepEqual((await failed.load()).map(plain), failed.messages.map(plain));

  const cancelled = chat('Chat');
  const sent = cancelled.sendMessage({ text: 'slow' });
  while (!cancelled.texts().some((text) => text.includes('half'))) await new Promise((resolve) => setImmediate(resolve));
  const { body } = await server.api(server.service, `/conversations/${cancelled.id}`);
  await server.cancel(body.runs.at(-1).id);
  await sent;
  await server.open();

  assert.equal(cancelled.of('abort').length, 1);
  // The log has only whole answers, so the page keeps no half of one.
  assert.deepEqual(cancelled.texts(), ['']);
  await cancelled.check();
});
