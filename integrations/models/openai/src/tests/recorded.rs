//! Recorded answers of real servers, read by the assemblers.

use positronic_model_http::Assemble as _;
use std::collections::BTreeMap;

use positronic_core::model::Piece;
use positronic_core::record::{DeltaKind, ModelError, ModelErrorKind, ModelResponse, Part};
use positronic_model_http::SseDecoder;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{ChatAssembler, ResponsesAssembler};

const CHAT: [&str; 6] = [
    "alibaba-tool-call",
    "azure-model-router.1",
    "deepseek-tool-call",
    "groq-tool-call",
    "mistral-incremental-tool-call",
    "xai-tool-call",
];

const RESPONSES: [&str; 5] = [
    "github-copilot-id-rotation.1",
    "openai-error.1",
    "openai-phase.1",
    "openai-reasoning-encrypted-content.1",
    "parallel-tool-call-wrapper.1",
];

/// Returns the answers of a recording, each as its chunks.
pub(super) fn answers(path: &str) -> Vec<Vec<String>> {
    let file = format!("{}/tests/data/streams/{path}.chunks.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(file).unwrap();
    let mut answers: Vec<Vec<String>> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if answers.is_empty() || line.contains("\"response.created\"") {
            answers.push(Vec::new());
        }
        let mended = if serde_json::from_str::<Value>(line).is_ok() { line.to_owned() } else { format!("{line}}}") };
        answers.last_mut().unwrap().push(mended);
    }
    answers
}

fn chat(chunks: &[String]) -> (Vec<Piece>, Result<ModelResponse, ModelError>) {
    let mut assembler = ChatAssembler::default();
    let mut pieces = Vec::new();
    for chunk in chunks {
        match assembler.feed(chunk) {
            Ok(more) => pieces.extend(more),
            Err(error) => return (pieces, Err(error)),
        }
    }
    (pieces, assembler.finish())
}

fn responses(events: &[String]) -> (Vec<Piece>, Result<ModelResponse, ModelError>) {
    let mut assembler = ResponsesAssembler::default();
    let mut pieces = Vec::new();
    for event in events {
        match assembler.feed(event) {
            Ok(more) => pieces.extend(more),
            Err(error) => return (pieces, Err(error)),
        }
    }
    (pieces, assembler.finish())
}

fn short(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().count() > 100 => {
            let start: String = text.chars().take(80).collect();
            *text = format!("{start}… ({} characters)", text.chars().count());
        }
        Value::Array(items) => items.iter_mut().for_each(short),
        Value::Object(fields) => fields.values_mut().for_each(short),
        _ => {}
    }
}

/// Renders an answer for a snapshot, after checking that its pieces add up to it.
fn show((pieces, answer): (Vec<Piece>, Result<ModelResponse, ModelError>)) -> Value {
    if let Ok(response) = &answer {
        pieces_add_up(&pieces, response);
    }
    let mut shown = match answer {
        Ok(response) => serde_json::to_value(response).unwrap(),
        Err(error) => json!({ "error": error }),
    };
    shown["pieces"] = pieces.len().into();
    short(&mut shown);
    shown
}

fn pieces_add_up(pieces: &[Piece], response: &ModelResponse) {
    let mut streamed: BTreeMap<(u32, String), String> = BTreeMap::new();
    for piece in pieces {
        streamed.entry((piece.part, format!("{:?}", piece.kind))).or_default().push_str(&piece.text);
    }
    let wrapped = pieces.iter().any(|piece| piece.tool.as_deref() == Some("parallel"));
    for (number, part) in (0..).zip(&response.parts) {
        let (kind, text) = match part {
            Part::Text { text } | Part::Refusal { text } => (DeltaKind::Text, text),
            Part::Reasoning { text, .. } => (DeltaKind::Reasoning, text),
            Part::Call { index } if !wrapped => {
                let call = &response.calls[*index as usize];
                let named = pieces.iter().find(|piece| piece.call == Some(*index)).unwrap();
                assert_eq!(named.tool.as_deref(), Some(call.name.as_str()));
                (DeltaKind::Arguments, &call.arguments)
            }
            _ => continue,
        };
        let known = streamed.get(&(number, format!("{kind:?}"))).map_or("", String::as_str);
        assert_eq!(known, text, "part {number}");
    }
}

#[test]
fn chat_recordings() {
    for name in CHAT {
        let shown: Vec<_> = answers(&format!("chat/{name}")).iter().map(|chunks| show(chat(chunks))).collect();
        insta::assert_json_snapshot!(format!("chat {name}"), shown);
    }
}

#[test]
fn responses_recordings() {
    for name in RESPONSES {
        let shown: Vec<_> =
            answers(&format!("responses/{name}")).iter().map(|events| show(responses(events))).collect();
        insta::assert_json_snapshot!(format!("responses {name}"), shown);
    }
}

#[test]
fn answer_cut_anywhere_before_its_end_is_truncated() {
    for chunks in answers("chat/deepseek-tool-call").iter().chain(&answers("chat/xai-tool-call")) {
        let finished = chunks.iter().position(|chunk| chunk.contains("\"finish_reason\":\"tool_calls\"")).unwrap();
        for end in 0..=finished {
            assert_eq!(chat(&chunks[..end]).1.unwrap_err().kind, ModelErrorKind::Truncated);
        }
        assert!(chat(&chunks[..=finished]).1.is_ok());
    }
    for events in answers("responses/openai-phase.1") {
        for end in 0..events.len() {
            assert_eq!(responses(&events[..end]).1.unwrap_err().kind, ModelErrorKind::Truncated);
        }
    }
}

#[test]
fn invalid_chunk_is_malformed() {
    let broken = "{\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\"}";

    let error = ResponsesAssembler::default().feed(broken).unwrap_err();

    assert_eq!(error.kind, ModelErrorKind::Malformed);
    assert!(error.message.contains("resp_1"), "{error}");
}

fn chat_of(chunks: &[Value]) -> Result<ModelResponse, ModelError> {
    chat(&chunks.iter().map(Value::to_string).collect::<Vec<_>>()).1
}

#[expect(clippy::needless_pass_by_value, reason = "every caller makes the value in the call")]
fn delta(delta: Value) -> Value {
    json!({ "choices": [{ "delta": delta }] })
}

fn end(reason: &str) -> Value {
    json!({ "choices": [{ "delta": {}, "finish_reason": reason }] })
}

#[test]
fn calls_are_distinguished_without_an_index_and_with_a_constant_index() {
    let part = |index: Value, id: &str, name: &str, arguments: &str| json!({ "index": index, "id": id, "function": { "name": name, "arguments": arguments } });
    for index in [Value::Null, json!(0)] {
        let response = chat_of(&[
            delta(json!({ "tool_calls": [part(index.clone(), "a", "one", "{\"x\":")] })),
            delta(json!({ "tool_calls": [part(index.clone(), "", "", "1}")] })),
            delta(json!({ "tool_calls": [part(index.clone(), "b", "two", "")] })),
            end("stop"),
        ])
        .unwrap();

        let calls: Vec<_> = response.calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
        assert_eq!(calls, [("one", "{\"x\":1}"), ("two", "{}")]);
        assert_eq!(response.metadata.finish, positronic_core::record::Finish::Calls);
    }
}

#[test]
fn error_during_a_stream_has_its_kind() {
    let kind = |error: Value| chat_of(&[delta(json!({ "content": "Hel" })), error]).unwrap_err().kind;

    assert_eq!(
        kind(json!({ "error": { "message": "overloaded", "type": "overloaded_error" } })),
        ModelErrorKind::Server
    );
    assert_eq!(
        kind(json!({ "error": { "code": 500, "message": "x", "type": "server_error" } })),
        ModelErrorKind::Server
    );
    assert_eq!(kind(json!({ "error": { "code": 429, "message": "slow down" } })), ModelErrorKind::RateLimited);
    assert_eq!(
        kind(json!({ "error": { "code": 400, "message": "x", "type": "exceed_context_size_error" } })),
        ModelErrorKind::ContextTooLong
    );
}

#[test]
fn provider_data_is_stored_for_sending_back() {
    let signature = json!({ "google": { "thought_signature": "sig" } });
    let detail = |text: &str| json!([{ "type": "reasoning.text", "index": 0, "text": text }]);
    let response = chat_of(&[
        delta(json!({ "reasoning": "Let me ", "reasoning_details": detail("Let me ") })),
        delta(json!({ "reasoning": "see", "reasoning_details": detail("see") })),
        delta(json!({ "content": "", "tool_calls": [{ "id": "c", "function": { "name": "f", "arguments": "{}" }, "extra_content": signature }] })),
        end("end_turn"),
    ])
    .unwrap();

    let data = json!({ "field": "reasoning", "details": detail("Let me see") });
    assert_eq!(
        response.parts,
        [Part::Reasoning { text: "Let me see".to_owned(), data: Some(data) }, Part::Call { index: 0 }]
    );
    assert_eq!(response.calls[0].data, Some(json!({ "extra_content": signature })));
}

#[test]
fn answers_that_were_not_streamed_are_read() {
    let mut assembler = ChatAssembler::default();
    assembler
        .feed_complete(r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Hi"}]}}],"usage":{"prompt_tokens":3.0,"completion_tokens":1}}"#)
        .unwrap();
    let response = assembler.finish().unwrap();
    assert_eq!(response.text(), "Hi");
    assert_eq!((response.metadata.usage.input, response.metadata.usage.output), (3, 1));

    let events = answers("responses/openai-phase.1").remove(0);
    let completed: Value = serde_json::from_str(events.last().unwrap()).unwrap();
    let mut assembler = ResponsesAssembler::default();
    let pieces = assembler.feed_complete(&completed["response"].to_string()).unwrap();
    let whole = assembler.finish().unwrap();
    pieces_add_up(&pieces, &whole);
    assert_eq!(whole, responses(&events).1.unwrap());

    for answer in ["{}", "[]", "nonsense"] {
        let kind = ChatAssembler::default().feed_complete(answer).unwrap_err().kind;
        assert_eq!(kind, ModelErrorKind::Malformed, "{answer}");
        let kind = ResponsesAssembler::default().feed_complete(answer).unwrap_err().kind;
        assert_eq!(kind, ModelErrorKind::Malformed, "{answer}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_recording_is_decoded_wherever_it_is_cut(
        sizes in prop::collection::vec(1_usize..400, 1..40),
        line_end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
    ) {
        let chat = CHAT.iter().map(|name| format!("chat/{name}"));
        for name in chat.chain(RESPONSES.iter().map(|name| format!("responses/{name}"))) {
            let chunks = answers(&name).concat();
            let stream: String = chunks.iter().map(|chunk| format!("data: {chunk}{line_end}{line_end}")).collect();
            let (mut decoder, mut decoded, mut rest) = (SseDecoder::default(), Vec::new(), stream.as_bytes());
            for size in sizes.iter().cycle() {
                let (part, further) = rest.split_at((*size).min(rest.len()));
                decoded.extend(decoder.feed(part).unwrap());
                rest = further;
                if rest.is_empty() {
                    break;
                }
            }
            decoded.extend(decoder.finish());
            let decoded: Vec<_> = decoded.into_iter().map(|event| event.data).collect();
            prop_assert_eq!(&decoded, &chunks, "{}", name);
        }
    }
}
