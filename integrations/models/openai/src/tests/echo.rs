//! Answers of the Responses API are sent back unchanged, or without ids.

use positronic_core::record::{Assistant, Message, ModelResponse, Part};
use positronic_model_http::Assemble as _;
use serde_json::{Value, json};

use super::wire_items;
use crate::ResponsesAssembler;

/// Assembles an answer of the server.
fn answer(output: &Value) -> ModelResponse {
    let whole = json!({"id": "resp_1", "status": "completed", "output": output});
    let mut assembler = ResponsesAssembler::default();
    assembler.feed_complete(&whole.to_string()).unwrap();
    assembler.finish().unwrap()
}

/// Returns the message that the record makes of an answer.
fn message(response: &ModelResponse) -> Message {
    let parts = response.parts.iter().filter_map(|part| match part {
        Part::Call { index } => {
            let call = response.calls[*index as usize].clone();
            let id = call.provider_id.unwrap();
            Some(Assistant::Call { call: id, name: call.name, arguments: call.arguments, data: call.data })
        }
        part => part.sent_back(),
    });
    Message::assistant(parts.collect())
}

fn output(thought: &Value) -> Value {
    json!([
        thought,
        {
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
            "content": [{"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []}]
        },
        {
            "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{}",
            "status": "completed", "namespace": "garden", "caller": {"type": "direct"}
        },
    ])
}

#[test]
fn answer_with_sendable_reasoning_is_sent_back_unchanged() {
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"});
    let output = output(&thought);

    assert_eq!(Value::from(wire_items(message(&answer(&output)))), output);
}

#[test]
fn answer_without_sendable_reasoning_is_sent_back_without_ids() {
    let hidden = json!({"type": "reasoning", "id": "rs_1", "summary": []});

    let items = wire_items(message(&answer(&output(&hidden))));

    assert_eq!(
        Value::from(items),
        json!([
            {"type": "message", "role": "assistant", "content": "I look.", "phase": "commentary"},
            {
                "type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}", "namespace": "garden",
                "caller": {"type": "direct"}
            },
        ])
    );
}

#[test]
fn refusal_is_recorded_and_sent_back_as_a_refusal() {
    let output = json!([{
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "refusal", "refusal": "I cannot help."}]
    }]);
    let response = answer(&output);

    assert_eq!(response.refusal().as_deref(), Some("I cannot help."));
    assert_eq!(Value::from(wire_items(message(&response))), output);
}

#[test]
fn answer_of_another_api_is_sent_back_in_input_form() {
    let text = Assistant::Text { text: "I look.".to_owned() };

    assert_eq!(
        wire_items(Message::assistant(vec![text])),
        [json!({"type": "message", "role": "assistant", "content": "I look."})]
    );
}

#[test]
fn streamed_refusal_is_recorded_as_a_refusal() {
    let mut assembler = ResponsesAssembler::default();
    let added = json!({"type": "response.output_item.added", "output_index": 0,
        "item": {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}});
    let delta = json!({"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "No."});
    let end = json!({"type": "response.completed", "response": {"status": "completed", "output": []}});
    for event in [added, delta, end] {
        assembler.feed(&event.to_string()).unwrap();
    }

    assert_eq!(assembler.finish().unwrap().refusal().as_deref(), Some("No."));
}
