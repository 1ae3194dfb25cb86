//! Answers in the wire forms of the providers, streamed in the events of recorded answers.

use serde_json::{Value, json};

/// An answer of a model, before a provider has encoded it.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Its text.
    pub text: String,
    /// The names and the arguments of its calls.
    pub calls: Vec<(String, Value)>,
}

/// Encodes the answers of a provider, the first with number 0.
pub type Encode = fn(&Reply, usize) -> Vec<String>;

/// Cuts a text as streams do.
fn cut(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(7).map(|piece| piece.iter().collect()).collect()
}

fn with(mut item: Value, field: &str, value: &str) -> Value {
    item[field] = value.into();
    item
}

fn encoded(events: &[Value]) -> Vec<String> {
    events.iter().map(Value::to_string).collect()
}

/// Encodes an answer of chat completions.
#[must_use]
pub fn chat(reply: &Reply, number: usize) -> Vec<String> {
    let chunk = |delta: Value, finish: Option<&str>| {
        json!({
            "id": format!("chatcmpl-{number}"), "object": "chat.completion.chunk", "created": 1_764_664_568, "model": "gpt-5-mini",
            "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }], "usage": null,
        })
    };
    let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), None)];
    events.extend(cut(&reply.text).into_iter().map(|text| chunk(json!({ "content": text }), None)));
    for (index, (name, arguments)) in reply.calls.iter().enumerate() {
        let id = format!("call_{number}_{index}");
        let function = json!({ "name": name, "arguments": "" });
        let call = json!({ "index": index, "id": id, "type": "function", "function": function });
        events.push(chunk(json!({ "tool_calls": [call] }), None));
        let pieces = cut(&arguments.to_string()).into_iter();
        events.extend(pieces.map(|piece| {
            chunk(json!({ "tool_calls": [{ "index": index, "function": { "arguments": piece } }] }), None)
        }));
    }
    let finish = if reply.calls.is_empty() { "stop" } else { "tool_calls" };
    events.push(chunk(json!({}), Some(finish)));
    events.push(json!({ "id": "", "choices": [], "usage": { "prompt_tokens": 90, "completion_tokens": 10 } }));
    let mut events = encoded(&events);
    events.push("[DONE]".to_owned());
    events
}

/// Encodes an answer of the Responses API.
#[must_use]
pub fn responses(reply: &Reply, number: usize) -> Vec<String> {
    let mut items = Vec::new();
    let id = format!("resp_{number}");
    let begun = json!({ "id": id, "status": "in_progress", "model": "gpt-5-mini", "output": [] });
    let mut events = vec![json!({ "type": "response.created", "response": begun })];
    if !reply.text.is_empty() {
        let id = format!("msg_{number}");
        let item = |status: &str, content: Value| json!({ "id": id, "type": "message", "status": status, "role": "assistant", "content": content });
        events.push(
            json!({ "type": "response.output_item.added", "output_index": 0, "item": item("in_progress", json!([])) }),
        );
        events.extend(cut(&reply.text).into_iter().map(|delta| {
            json!({ "type": "response.output_text.delta", "content_index": 0, "item_id": id, "output_index": 0, "delta": delta })
        }));
        items.push(item("completed", json!([{ "type": "output_text", "annotations": [], "text": reply.text }])));
        events.push(json!({ "type": "response.output_item.done", "output_index": 0, "item": items[0] }));
    }
    for (index, (name, arguments)) in reply.calls.iter().enumerate() {
        let (at, id) = (items.len(), format!("fc_{number}_{index}"));
        let call_id = format!("call_{number}_{index}");
        let item = |status: &str, arguments: &str| {
            let call = json!({ "type": "function_call", "id": id, "call_id": call_id, "name": name });
            with(with(call, "arguments", arguments), "status", status)
        };
        events
            .push(json!({ "type": "response.output_item.added", "output_index": at, "item": item("in_progress", "") }));
        events.extend(cut(&arguments.to_string()).into_iter().map(|delta| {
            json!({ "type": "response.function_call_arguments.delta", "item_id": id, "output_index": at, "delta": delta })
        }));
        items.push(item("completed", &arguments.to_string()));
        events.push(json!({ "type": "response.output_item.done", "output_index": at, "item": items[at] }));
    }
    events.push(json!({ "type": "response.completed", "response": {
        "id": id, "status": "completed", "model": "gpt-5-mini", "output": items,
        "usage": { "input_tokens": 90, "output_tokens": 10 },
    } }));
    encoded(&events)
}

/// Encodes an answer of the Messages API.
#[must_use]
pub fn messages(reply: &Reply, number: usize) -> Vec<String> {
    let usage = json!({ "input_tokens": 90, "output_tokens": 1 });
    let id = format!("msg_{number}");
    let message = json!({
        "id": id, "type": "message", "role": "assistant", "model": "claude-haiku-5-5", "content": [], "usage": usage,
    });
    let mut events = vec![json!({ "type": "message_start", "message": message }), json!({ "type": "ping" })];
    let text = (!reply.text.is_empty()).then(|| {
        let deltas = cut(&reply.text).into_iter().map(|text| json!({ "type": "text_delta", "text": text }));
        (json!({ "type": "text", "text": "" }), deltas.collect::<Vec<_>>())
    });
    let calls = reply.calls.iter().enumerate().map(|(index, (name, arguments))| {
        let block = json!({ "type": "tool_use", "id": format!("toolu_{number}_{index}"), "name": name, "input": {} });
        let pieces = cut(&arguments.to_string()).into_iter();
        (block, pieces.map(|piece| json!({ "type": "input_json_delta", "partial_json": piece })).collect())
    });
    for (index, (block, deltas)) in text.into_iter().chain(calls).enumerate() {
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
        events.extend(
            deltas.into_iter().map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta })),
        );
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    let reason = if reply.calls.is_empty() { "end_turn" } else { "tool_use" };
    events.push(json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": { "output_tokens": 10 } }));
    events.push(json!({ "type": "message_stop" }));
    encoded(&events)
}

/// Encodes an answer of `streamGenerateContent`.
#[must_use]
pub fn generate_content(reply: &Reply, number: usize) -> Vec<String> {
    let chunk = |part: Value| {
        let content = json!({ "parts": [part], "role": "model" });
        json!({ "candidates": [{ "content": content, "index": 0 }], "responseId": format!("r{number}") })
    };
    let mut events: Vec<_> = cut(&reply.text).into_iter().map(|text| chunk(json!({ "text": text }))).collect();
    for (index, (name, args)) in reply.calls.iter().enumerate() {
        let mut part = json!({ "functionCall": { "id": format!("fc_{number}_{index}"), "name": name, "args": args } });
        if index == 0 {
            part["thoughtSignature"] = "c2lnbmF0dXJl".into();
        }
        events.push(chunk(part));
    }
    let mut end = chunk(json!({ "text": "" }));
    end["candidates"][0]["finishReason"] = "STOP".into();
    end["usageMetadata"] = json!({ "promptTokenCount": 90, "candidatesTokenCount": 10 });
    events.push(end);
    encoded(&events)
}
