"""Brains as models with OpenAI's own client for Python, which checks each answer strictly against its types."""

import json
import os
import subprocess
import sys
import urllib.request

from openai import APIStatusError, OpenAI

server = subprocess.Popen([os.environ["POSITRONIC_CLIENTS"]], stdout=subprocess.PIPE, text=True)
try:
    started = json.loads(server.stdout.readline())
    base = started["address"] + "/api/v1/openai/v1"
    client = OpenAI(base_url=base, api_key=started["ann"], _strict_response_validation=True)

    def said(text):
        return [{"role": "user", "content": text}]

    def refused(status, code, **request):
        try:
            client.chat.completions.create(**request)
        except APIStatusError as error:
            assert (error.status_code, error.code) == (status, code), error
            return
        raise AssertionError(f"{request} was not refused")

    assert [model.id for model in client.models.list()] == ["Chat", "Items", "Survey", "Name", "Report", "Weather report", "Guide"]

    messages = said("two")
    first = client.chat.completions.create(model="Chat", messages=messages)
    assert first.choices[0].message.content == "Adding.\n\nDone."
    assert first.usage.total_tokens == 34
    messages += [first.choices[0].message.model_dump(), *said("thanks")]
    second = client.chat.completions.create(model="Chat", messages=messages)
    assert second.choices[0].message.content == 'You said "thanks".'

    stream = client.chat.completions.create(
        model="Chat", messages=said("hello"), stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert (text, chunks[-1].usage.total_tokens) == ('You said "hello".', 17)

    asked = client.chat.completions.create(model="Chat", messages=said("refund")).choices[0].message
    assert asked.content is None and "positronic approve" in asked.refusal
    refused(422, "run_failed", model="Chat", messages=said("fail"))
    refused(404, "unknown-brain", model="Nothing", messages=said("hello"))
    for more in [{"stop": ["."]}, {"logprobs": True}, {"modalities": ["text", "audio"]}, {"tool_choice": "required"}]:
        refused(422, "unprocessable", model="Chat", messages=said("hello"), **more)
    both = client.chat.completions.create(model="Chat", messages=said("one") + said("and two"))
    assert both.choices[0].message.content == 'You said "one\\n\\nand two".', both
    tool = {"type": "function", "function": {"name": "x", "parameters": {}}}
    refused(422, "unprocessable", model="Chat", messages=said("hello"), tools=[tool])

    response = client.responses.create(model="Chat", input="two")
    assert (response.status, response.output_text) == ("completed", "Adding.\n\nDone.")
    with client.responses.stream(model="Chat", input="two") as stream:
        pieces = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        assert pieces == stream.get_final_response().output_text == response.output_text
    history = [*said("two"), *[item.model_dump() for item in response.output], *said("thanks")]
    assert client.responses.create(model="Chat", input=history).output_text == 'You said "thanks".'
    response = client.responses.create(model="Chat", input="two")
    further = client.responses.create(model="Chat", input="thanks", previous_response_id=response.id)
    assert further.output_text == 'You said "thanks".'
    assert client.responses.retrieve(response.id).output == response.output

    background = client.responses.create(model="Chat", input="refund", background=True)
    while background.status == "in_progress":
        background = client.responses.retrieve(background.id)
    assert background.status == "incomplete"
    refusal = background.output[0].content[0].refusal
    run = refusal.split("positronic approve ")[1].split()[0]

    def api(path, body=None):
        headers = {"authorization": f"Bearer {started['service']}", "content-type": "application/json"}
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(f"{started['address']}/api/v1{path}", data, headers)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        return json.load(opener.open(request))

    item = api(f"/pending?run={run}")["items"][0]
    api(f"/runs/{run}/calls/{item['id']}/decision", {"approve": True})
    while background.status in ("in_progress", "incomplete"):
        background = client.responses.retrieve(background.id)
    assert (background.status, background.output_text) == ("completed", "Done.")

    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    look = {"name": "get_weather", "description": "Reads the weather", "parameters": schema}
    tools = [{"type": "function", "function": look}]
    refused(422, "unprocessable", model="Chat", messages=said("weather"), tools=tools)
    messages = said("weather")
    asked = client.chat.completions.create(model="Guide", messages=messages, tools=tools).choices[0]
    calls = asked.message.tool_calls
    cities = [json.loads(call.function.arguments)["city"] for call in calls]
    assert (asked.finish_reason, cities) == ("tool_calls", ["Graz", "Bern"])
    messages.append(asked.message.model_dump(exclude_none=True))
    results = [{"role": "tool", "tool_call_id": call.id, "content": "sun"} for call in calls]
    refused(422, "unprocessable", model="Guide", messages=messages + results[:1], tools=tools)
    done = client.chat.completions.create(model="Guide", messages=messages + results, tools=tools).choices[0]
    assert (done.finish_reason, done.message.content) == ("stop", "Done.")

    with client.chat.completions.stream(model="Guide", messages=said("weather"), tools=tools) as stream:
        streamed = stream.get_final_completion().choices[0]
    assert [call.function.name for call in streamed.message.tool_calls] == ["get_weather", "get_weather"]
    messages = said("weather") + [streamed.message.model_dump(include={"role", "tool_calls"})]
    results = [{"role": "tool", "tool_call_id": call.id, "content": "sun"} for call in streamed.message.tool_calls]
    pieces = client.chat.completions.create(model="Guide", messages=messages + results, tools=tools, stream=True)
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == "Done."

    tools = [{"type": "function", "strict": True, **look}]
    items = said("weather")
    response = client.responses.create(model="Guide", input=items, tools=tools)
    assert [item.type for item in response.output] == ["function_call", "function_call"]
    outputs = [{"type": "function_call_output", "call_id": item.call_id, "output": "sun"} for item in response.output]
    # With the history, as a client without stored responses has it.
    items += [item.model_dump() for item in response.output] + outputs
    assert client.responses.create(model="Guide", input=items, tools=tools).output_text == "Done."
    with client.responses.stream(model="Guide", input="weather", tools=tools) as stream:
        streamed = stream.get_final_response()
    calls = [(item.call_id, item.arguments) for item in client.responses.retrieve(streamed.id).output]
    assert calls == [(item.call_id, item.arguments) for item in streamed.output]
    outputs = [{"type": "function_call_output", "call_id": item.call_id, "output": "sun"} for item in streamed.output]
    last = client.responses.create(model="Guide", input=outputs, previous_response_id=streamed.id, tools=tools)
    assert last.output_text == "Done."

    events = list(client.responses.create(model="Chat", input="hello", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
    assert events[-1].response.output_text == 'You said "hello".'
    refusals = [event.type for event in client.responses.create(model="Chat", input="refund", stream=True)]
    assert refusals[-1] == "response.incomplete" and "response.refusal.done" in refusals
    print(f"openai for Python has found nothing in {len(events) + len(chunks)} streamed pieces and 20 answers")
finally:
    server.kill()
    sys.stdout.flush()
