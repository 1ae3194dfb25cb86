// Brains as models with OpenAI's own client for Node (`openai`).
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { start } from './server.mjs';

const { default: OpenAI } = await import(pathToFileURL(`${process.env.POSITRONIC_OPENAI}/index.mjs`));

let server;
let client;
before(async () => {
  server = await start();
  client = new OpenAI({ baseURL: `${server.address}/api/v1/openai/v1`, apiKey: server.ann });
});
after(() => server.stop());

const user = (content) => ({ role: 'user', content });

test('brains are models', async () => {
  const { data } = await client.models.list();

  assert.deepEqual(data.map(({ id }) => id), ['Chat', 'Items', 'Survey', 'Name', 'Report', 'Weather report', 'Guide']);
  assert.equal((await client.models.retrieve('Chat')).id, 'Chat');
  await assert.rejects(client.models.retrieve('Nothing'), { status: 404, code: 'unknown-brain' });
});

test('a chat has the texts of the run, and continues with its history', async () => {
  const messages = [{ role: 'system', content: 'You obey.' }, user('two')];
  const first = await client.chat.completions.create({ model: 'Chat', messages });
  messages.push(first.choices[0].message, user('thanks'));
  const second = await client.chat.completions.create({ model: 'Chat', messages });

  assert.equal(first.choices[0].message.content, 'Adding.\n\nDone.');
  assert.deepEqual([first.usage.prompt_tokens, first.usage.completion_tokens], [24, 10]);
  assert.equal(second.choices[0].message.content, 'You said "thanks".');
});

test('a streamed chat accumulates to the same answer', async () => {
  const stream = client.chat.completions.stream({ model: 'Chat', messages: [user('hello')], stream_options: { include_usage: true } });
  const pieces = [];
  stream.on('content', (piece) => pieces.push(piece));

  const answer = await stream.finalChatCompletion();

  assert.equal(answer.choices[0].message.content, 'You said "hello".');
  assert.equal(pieces.join(''), 'You said "hello".');
  assert.equal(answer.usage.total_tokens, 17);
});

test('pieces arrive while the model answers', async () => {
  const stream = await client.chat.completions.create({ model: 'Chat', messages: [user('slow')], stream: true });
  const said = [];
  for await (const { choices } of stream) {
    if (!choices[0].delta.content) continue;
    said.push(choices[0].delta.content);
    if (said.length === 1) await server.open();
  }

  assert.deepEqual(said, ['The first half, ', 'and the second half.']);
});

test('an approval is a refusal, and after the decision the same request has the answer', async () => {
  const request = { model: 'Chat', messages: [user('refund')], metadata: { conversation: 'with-approval' } };
  const refused = await client.chat.completions.create(request);
  const { refusal, content } = refused.choices[0].message;
  const run = /positronic approve (\S+)/.exec(refusal)[1];
  const { body } = await server.api(server.service, `/pending?run=${run}`);
  await server.api(server.service, `/runs/${run}/calls/${body.items[0].id}/decision`, { approve: true });
  const { id } = refused;
  const later = await client.responses.retrieve(id.replace(/^chatcmpl-(.*)-(\d+)$/, 'resp_$1_$2')).then(async function poll(response) {
    return response.status === 'in_progress' || response.status === 'incomplete' ? poll(await client.responses.retrieve(response.id)) : response;
  });

  assert.equal(content, null);
  assert.equal(later.output_text ?? later.output[0].content[0].text, 'Done.');
});

test('a failed run is an error that no client repeats by itself', async () => {
  await assert.rejects(client.chat.completions.create({ model: 'Chat', messages: [user('fail')] }), { status: 422, code: 'run_failed' });
  const stream = await client.chat.completions.create({ model: 'Chat', messages: [user('fail')], stream: true });
  await assert.rejects(async () => { for await (const _ of stream); }, /the request is invalid/);
});

test('a brain without a loop takes its options as the message, and answers with its result', async () => {
  const answer = await client.chat.completions.create({ model: 'Weather report', messages: [user('{"city": "Graz"}')] });

  assert.deepEqual(JSON.parse(answer.choices[0].message.content), { city: 'Graz', degrees: 7.5 });
  await assert.rejects(
    client.chat.completions.create({ model: 'Weather report', messages: [user('Graz')] }),
    { status: 422, code: 'options-invalid' },
  );
});

test('a question to a person is a refusal', async () => {
  const options = { model: 'Survey', messages: [user('{}')], metadata: { conversation: 'survey' } };
  const asked = await client.chat.completions.create(options);

  assert.match(asked.choices[0].message.refusal, /Which colour has a kettle/);
});

const weather = {
  name: 'get_weather', description: 'Reads the weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

test('tools of the caller run in the client, which continues until the brain has answered', async () => {
  const cities = [];
  const look = { type: 'function', function: { ...weather, parse: JSON.parse, function: ({ city }) => { cities.push(city); return 'sun'; } } };
  for (const stream of [false, true]) {
    const runner = client.chat.completions.runTools({ model: 'Guide', messages: [user('weather')], tools: [look], stream });

    assert.equal(await runner.finalContent(), 'Done.');
    assert.equal((await runner.finalFunctionToolCallResult()), 'sun');
  }
  assert.deepEqual(cities, ['Graz', 'Bern', 'Graz', 'Bern']);
});

test('a streamed response has the calls as items, and their outputs continue it', async () => {
  const tools = [{ type: 'function', ...weather, strict: false }];
  const stream = client.responses.stream({ model: 'Guide', input: 'weather', tools });
  const types = [];
  stream.on('event', ({ type }) => types.push(type));
  const first = await stream.finalResponse();
  const input = first.output.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'sun' }));
  const next = { model: 'Guide', input, previous_response_id: first.id, tools };

  await assert.rejects(client.responses.create({ ...next, input: input.slice(1) }), { status: 422 });
  assert.equal((await client.responses.create(next)).output_text, 'Done.');
  await assert.rejects(client.responses.create({ ...next, input: [{ ...input[0], output: 'snow' }, input[1]] }), { status: 409 });
  assert.equal(types.filter((type) => type === 'response.function_call_arguments.done').length, 2);
});

test('what the brain decides itself is refused', async () => {
  const refuse = (more, param) => assert.rejects(
    client.chat.completions.create({ model: 'Chat', messages: [user('hello')], ...more }),
    { status: 422, param },
  );

  await refuse({ tools: [{ type: 'function', function: { name: 'x', parameters: {} } }] }, 'tools');
  await refuse({ model: 'Guide', tools: [{ type: 'function', function: weather }], tool_choice: 'required' }, 'tool_choice');
  await refuse({ response_format: { type: 'json_object' } }, 'response_format');
  await refuse({ n: 2 }, 'n');
  await refuse({ messages: [user('a'), { role: 'assistant', content: 'invented' }, user('b')] }, 'messages');
});

test('a response is continued by its id, once', async () => {
  const first = await client.responses.create({ model: 'Chat', input: 'two' });
  const second = await client.responses.create({ model: 'Chat', input: 'thanks', previous_response_id: first.id });

  assert.equal(first.output_text, 'Adding.\n\nDone.');
  assert.equal(second.output_text, 'You said "thanks".');
  await assert.rejects(client.responses.create({ model: 'Chat', input: 'other', previous_response_id: first.id }), { status: 409 });
  assert.deepEqual((await client.responses.retrieve(first.id)).output, first.output);
});

test('a streamed response accumulates, and so does a refusal', async () => {
  const answer = await client.responses.stream({ model: 'Chat', input: 'hello' }).finalResponse();
  const refused = await client.responses.stream({ model: 'Chat', input: 'refund' });
  const types = [];
  for await (const event of refused) types.push(event.type);

  assert.equal(answer.output_text, 'You said "hello".');
  assert.deepEqual(types.slice(-2), ['response.output_item.done', 'response.incomplete']);
});

test('a response in the background is read while the run works, and is cancelled by who may', async () => {
  const begun = await client.responses.create({ model: 'Chat', input: 'hook', background: true });
  const reading = await client.responses.retrieve(begun.id);
  await server.webhook();
  let done = reading;
  while (done.status === 'in_progress') done = await client.responses.retrieve(begun.id);
  const waiting = await client.responses.create({ model: 'Chat', input: 'hook', background: true });
  const strong = new OpenAI({ baseURL: client.baseURL, apiKey: server.service });

  assert.equal(reading.status, 'in_progress');
  assert.deepEqual([done.status, done.output[0].content[0].text], ['completed', 'Done.']);
  await assert.rejects(client.responses.cancel(waiting.id), { status: 403 });
  assert.match((await strong.responses.cancel(waiting.id)).status, /cancelled|in_progress/);
});
