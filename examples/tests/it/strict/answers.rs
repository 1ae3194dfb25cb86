//! Answers in the format of the endpoints.

use positronic_core::record::{Finish, ModelResponse, Part};
use serde_json::{Value, json};

use super::rules::Dialect;

/// Renders an answer: its media type and body. `number` counts the answers, for ids.
pub(super) fn written(dialect: Dialect, stream: bool, answer: &ModelResponse, number: usize) -> (&'static str, String) {
    match (dialect, stream) {
        (Dialect::Chat, false) => ("application/json", chat(answer, number).to_string()),
        (Dialect::Chat, true) => ("text/event-stream", chat_stream(&chat(answer, number))),
        (Dialect::Responses, false) => ("application/json", response(answer, number).to_string()),
        (Dialect::Responses, true) => ("text/event-stream", response_stream(&response(answer, number))),
        (Dialect::Messages, false) => ("application/json", message(answer, number).to_string()),
        (Dialect::Messages, true) => ("text/event-stream", message_stream(&message(answer, number))),
        (Dialect::GenerateContent, false) => ("application/json", content(answer, number).to_string()),
        (Dialect::GenerateContent, true) => ("text/event-stream", content_stream(&content(answer, number))),
    }
}

fn chat(answer: &ModelResponse, number: usize) -> Value {
    let (mut content, mut thought) = (String::new(), String::new());
    for part in &answer.parts {
        match part {
            Part::Text { text } => content.push_str(text),
            Part::Reasoning { text, .. } => thought.push_str(text),
            _ => {}
        }
    }
    let calls: Vec<_> = (0..)
        .zip(&answer.calls)
        .map(|(index, call): (usize, _)| {
            let function = json!({"name": call.name, "arguments": call.arguments});
            json!({"id": format!("call_{number}_{index}"), "type": "function", "function": function})
        })
        .collect();
    let finish = match answer.metadata.finish {
        Finish::Length => "length",
        Finish::Filtered => "content_filter",
        _ if calls.is_empty() => "stop",
        _ => "tool_calls",
    };
    let mut message = json!({"role": "assistant", "content": content});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    if !thought.is_empty() {
        message["reasoning_content"] = thought.into();
    }
    let usage = &answer.metadata.usage;
    json!({
        "id": format!("chatcmpl-{number}"),
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "strict-1",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.input + usage.output,
        },
    })
}

fn chat_stream(whole: &Value) -> String {
    let choice = &whole["choices"][0];
    let chunk = |choices: Value, usage: &Value| json!({"id": whole["id"], "object": "chat.completion.chunk", "model": whole["model"], "choices": choices, "usage": usage});
    let mut chunks = Vec::new();
    let message = &choice["message"];
    let mut delta = |delta: Value| {
        chunks.push(chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), &Value::Null));
    };
    delta(json!({"role": "assistant", "content": ""}));
    if let Some(thought) = message["reasoning_content"].as_str() {
        delta(json!({"reasoning_content": thought}));
    }
    for word in message["content"].as_str().unwrap_or_default().split_inclusive(' ') {
        delta(json!({"content": word}));
    }
    for (index, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let function = json!({"name": call["function"]["name"], "arguments": ""});
        delta(json!({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]}));
        let function = json!({"arguments": call["function"]["arguments"]});
        delta(json!({"tool_calls": [{"index": index, "function": function}]}));
    }
    let end = json!([{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]);
    chunks.push(chunk(end, &Value::Null));
    chunks.push(chunk(json!([]), &whole["usage"]));
    let mut text: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    text.push_str("data: [DONE]\n\n");
    text
}

fn response(answer: &ModelResponse, number: usize) -> Value {
    let mut output = Vec::new();
    for (index, part) in answer.parts.iter().enumerate() {
        let id = |kind: &str| format!("{kind}_{number}_{index}");
        output.push(match part {
            Part::Text { text } => {
                let content = json!([{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]);
                json!({"type": "message", "id": id("msg"), "status": "completed", "role": "assistant", "content": content})
            }
            Part::Reasoning { text, .. } => {
                let summary = json!([{"type": "summary_text", "text": text}]);
                json!({"type": "reasoning", "id": id("rs"), "summary": summary, "encrypted_content": "gAAA"})
            }
            Part::Call { index: call } => {
                let call = &answer.calls[usize::try_from(*call).unwrap()];
                json!({
                    "type": "function_call", "id": id("fc"), "call_id": id("call"), "status": "completed",
                    "name": call.name, "arguments": call.arguments,
                })
            }
            _ => continue,
        });
    }
    let usage = &answer.metadata.usage;
    let cut = answer.metadata.finish == Finish::Length;
    json!({
        "id": format!("resp_{number}"),
        "object": "response",
        "model": "strict-1",
        "status": if cut { "incomplete" } else { "completed" },
        "incomplete_details": if cut { json!({"reason": "max_output_tokens"}) } else { Value::Null },
        "output": output,
        "usage": {
            "input_tokens": usage.input, "output_tokens": usage.output, "total_tokens": usage.input + usage.output,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
        },
    })
}

fn response_stream(whole: &Value) -> String {
    let mut begun = whole.clone();
    begun["output"] = json!([]);
    let mut events = vec![json!({"type": "response.created", "response": begun})];
    for (index, item) in whole["output"].as_array().unwrap().iter().enumerate() {
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    let end = if whole["status"] == "completed" { "response.completed" } else { "response.incomplete" };
    events.push(json!({"type": end, "response": whole}));
    named(&events)
}

/// Writes events with their type as their name.
fn named(events: &[Value]) -> String {
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())).collect()
}

fn message(answer: &ModelResponse, number: usize) -> Value {
    let blocks = answer.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(json!({"type": "text", "text": text})),
        Part::Reasoning { text, .. } => {
            Some(json!({"type": "thinking", "thinking": text, "signature": "model:strict-1"}))
        }
        Part::Call { index } => {
            let call = &answer.calls[usize::try_from(*index).unwrap()];
            let id = format!("toolu_{number}_{index}");
            Some(json!({"type": "tool_use", "id": id, "name": call.name, "input": input(&call.arguments)}))
        }
        _ => None,
    });
    let reason = match answer.metadata.finish {
        Finish::Length => "max_tokens",
        Finish::Filtered | Finish::Refused => "refusal",
        _ if answer.calls.is_empty() => "end_turn",
        _ => "tool_use",
    };
    let usage = &answer.metadata.usage;
    json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "strict-1",
        "content": blocks.collect::<Vec<_>>(), "stop_reason": reason,
        "usage": {"input_tokens": usage.input, "output_tokens": usage.output},
    })
}

fn message_stream(whole: &Value) -> String {
    let mut begun = whole.clone();
    begun["content"] = json!([]);
    begun["stop_reason"] = Value::Null;
    begun["usage"]["output_tokens"] = json!(1);
    let mut events = vec![json!({"type": "message_start", "message": begun}), json!({"type": "ping"})];
    for (index, block) in whole["content"].as_array().unwrap().iter().enumerate() {
        let mut begun = block.clone();
        let mut deltas = Vec::new();
        for (field, kind) in [("text", "text_delta"), ("thinking", "thinking_delta"), ("signature", "signature_delta")]
        {
            if let Some(text) = block[field].as_str() {
                begun[field] = "".into();
                deltas.extend(text.split_inclusive(' ').map(|word| json!({"type": kind, field: word})));
            }
        }
        if block["type"] == "tool_use" {
            begun["input"] = json!({});
            let input = block["input"].to_string();
            let pieces = [""].into_iter().chain(input.split_inclusive(','));
            deltas.extend(pieces.map(|piece| json!({"type": "input_json_delta", "partial_json": piece})));
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": whole["stop_reason"], "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": whole["usage"]}));
    events.push(json!({"type": "message_stop"}));
    named(&events)
}

fn content(answer: &ModelResponse, number: usize) -> Value {
    let parts = answer.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(json!({"text": text})),
        Part::Reasoning { text, .. } => Some(json!({"text": text, "thought": true})),
        Part::Call { index } => {
            let call = &answer.calls[usize::try_from(*index).unwrap()];
            let call = json!({"id": format!("fc_{number}_{index}"), "name": call.name, "args": input(&call.arguments)});
            Some(json!({"functionCall": call, "thoughtSignature": "c2lnbmF0dXJl"}))
        }
        _ => None,
    });
    let reason = match answer.metadata.finish {
        Finish::Length => "MAX_TOKENS",
        Finish::Filtered | Finish::Refused => "SAFETY",
        _ => "STOP",
    };
    let usage = &answer.metadata.usage;
    json!({
        "responseId": format!("r{number}"), "modelVersion": "strict-1",
        "candidates": [{
            "content": {"role": "model", "parts": parts.collect::<Vec<_>>()}, "finishReason": reason, "index": 0,
        }],
        "usageMetadata": {"promptTokenCount": usage.input, "candidatesTokenCount": usage.output},
    })
}

fn content_stream(whole: &Value) -> String {
    let candidate = &whole["candidates"][0];
    let mut chunks = Vec::new();
    let mut chunk = |part: Value, reason: &Value| {
        let mut chunk = whole.clone();
        chunk["candidates"][0]["content"]["parts"] = json!([part]);
        chunk["candidates"][0]["finishReason"] = reason.clone();
        chunks.push(chunk);
    };
    for part in candidate["content"]["parts"].as_array().unwrap() {
        match part["text"].as_str() {
            Some(text) => {
                for word in text.split_inclusive(' ') {
                    let mut part = part.clone();
                    part["text"] = word.into();
                    chunk(part, &Value::Null);
                }
            }
            None => chunk(part.clone(), &Value::Null),
        }
    }
    chunk(json!({"text": ""}), &candidate["finishReason"]);
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect()
}

/// Returns arguments as these APIs send them: as an object.
fn input(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| json!({"arguments": arguments}))
}
