//! A complete support case: text, reasoning, parallel calls, a failing tool, an iteration without calls, and the exit.

use positronic_core::record::{DeltaKind, EventKind, Finish, Part, ResponseMetadata};
use positronic_core::runner::Settled;
use serde_json::{Value, json};

use crate::aimock::{journal, server};
use crate::log::{outline, rebuilt};
use crate::support::{Played, chat, play, responses};
use crate::tap::Tap;

#[tokio::test]
async fn case_is_solved_over_chat() {
    let name = "support-over-chat";
    let tap = Tap::on(&server()).await;
    let model = chat(tap.address(), name);

    let played = play(chat(tap.address(), name)).await;

    assert_solved(&played);
    assert_streamed(&played);
    let sent = tap.bodies();
    assert_eq!(sent, rebuilt(&played.story, &model), "the log rebuilds the requests byte for byte");
    let mut seen = journal(name).await;
    for (body, status) in &mut seen {
        assert_eq!(*status, 200);
        // aimock records which endpoint received the body.
        assert_eq!(body.as_object_mut().unwrap().remove("_endpointType"), Some(json!("chat")));
    }
    let seen: Vec<Value> = seen.into_iter().map(|(body, _)| body).collect();
    assert_eq!(seen, sent.iter().map(|body| serde_json::from_str(body).unwrap()).collect::<Vec<Value>>());
    assert_grows_at_the_end(&seen, "messages");
}

#[tokio::test]
async fn case_is_solved_over_responses() {
    let name = "support-over-responses";
    let tap = Tap::on(&server()).await;
    let model = responses(tap.address(), name);

    let played = play(responses(tap.address(), name)).await;

    assert_solved(&played);
    assert_streamed(&played);
    let sent = tap.bodies();
    assert_eq!(sent, rebuilt(&played.story, &model), "the log rebuilds the requests byte for byte");
    // aimock's journal contains requests of this API translated into chat requests, so only their number is comparable.
    assert_eq!(journal(name).await.len(), sent.len());
    let seen: Vec<Value> = sent.iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    assert_grows_at_the_end(&seen, "input");
    let last = seen.last().unwrap()["input"].as_array().unwrap();
    let thoughts: Vec<_> = last.iter().filter(|item| item["type"] == "reasoning").collect();
    assert!(thoughts.iter().all(|item| item["encrypted_content"].is_string()), "thoughts go back sealed: {thoughts:?}");
    assert!(!thoughts.is_empty());
}

fn assert_solved(played: &Played) {
    insta::assert_snapshot!("outline", outline(&played.story));
    insta::assert_snapshot!("transcript", played.story.transcript());
    let ticket = json!({"orders": [17, 41], "resolution": "Told the customer where 17 and 41 are."});
    assert_eq!(*played.story.settled(), Settled::Completed(ticket));
    let metadata = metadata(played);
    let finishes: Vec<_> = metadata.iter().map(|metadata| metadata.finish.clone()).collect();
    assert_eq!(finishes, [Finish::Calls, Finish::Calls, Finish::Stop, Finish::Calls]);
    let usage: Vec<_> = metadata.iter().map(|metadata| (metadata.usage.input, metadata.usage.output)).collect();
    assert_eq!(usage, [(210, 60), (300, 12), (340, 20), (380, 15)]);
    let ids: Vec<_> = metadata.iter().filter_map(|metadata| metadata.response_id.as_deref()).collect();
    assert_eq!(ids, ["answer-0", "answer-1", "answer-2", "answer-3"]);
    assert!(metadata.iter().all(|metadata| metadata.first_chunk.is_some()));
}

fn metadata(played: &Played) -> Vec<ResponseMetadata> {
    let metadata = |kind: &EventKind| match kind {
        EventKind::LoopModelResult { metadata, .. } => Some(metadata.clone()),
        _ => None,
    };
    played.story.log().iter().filter_map(|event| metadata(&event.kind)).collect()
}

/// The concatenated deltas equal the logged answer, and there are several.
fn assert_streamed(played: &Played) {
    for event in played.story.log() {
        let EventKind::LoopModelResult { parts, .. } = &event.kind else { continue };
        for (part, logged) in (0..).zip(&**parts) {
            let pieces: Vec<_> =
                played.deltas.iter().filter(|delta| delta.path == event.path && delta.part == part).collect();
            let streamed: String = pieces.iter().map(|delta| delta.text.as_str()).collect();
            match logged {
                // Encrypted reasoning has no text.
                Part::Reasoning { text, .. } if text.is_empty() => {
                    assert!(pieces.is_empty());
                    continue;
                }
                Part::Text { text } => {
                    assert_eq!(streamed, *text);
                    assert!(pieces.iter().all(|delta| delta.kind == DeltaKind::Text));
                }
                Part::Reasoning { text, .. } => {
                    assert_eq!(streamed, *text);
                    assert!(pieces.iter().all(|delta| delta.kind == DeltaKind::Reasoning));
                }
                Part::Call { index } => {
                    let call =
                        call(played, &format!("Chat/{}.{index}", event.path.as_str().trim_start_matches("Chat/")));
                    assert_eq!(serde_json::from_str::<Value>(&streamed).unwrap(), call.1);
                    assert!(
                        pieces.iter().all(|delta| delta.call == Some(*index) && delta.kind == DeltaKind::Arguments)
                    );
                    assert_eq!(
                        pieces[0].tool.as_deref().map(|name| name.replace('_', ".")),
                        Some(call.0.replace('_', "."))
                    );
                }
                // The id of the next message; it does not stream.
                Part::Opaque { data } if data.get("message").is_some() => continue,
                other => panic!("{other:?} was not scripted"),
            }
            assert!(pieces.len() > 1, "{}: part {part} came in one piece", event.path);
        }
    }
}

fn call(played: &Played, path: &str) -> (String, Value) {
    let call = |kind: &EventKind| match kind {
        EventKind::LoopToolCall(call) => Some((call.tool.clone(), Value::clone(&call.arguments))),
        _ => None,
    };
    let mut calls = played.story.log().iter().filter(|event| event.path.as_str() == path);
    calls.find_map(|event| call(&event.kind)).unwrap()
}

/// A provider can cache the common prefix of requests: each conversation begins with the previous one.
fn assert_grows_at_the_end(requests: &[Value], field: &str) {
    let conversation = |request: &Value| -> Vec<Value> {
        let items = request[field].as_array().unwrap().clone();
        // The system prompt of this brain changes with its state.
        items.into_iter().filter(|item| item["role"] != "system").collect()
    };
    for (before, after) in std::iter::zip(requests, &requests[1..]) {
        let (before, after) = (conversation(before), conversation(after));
        assert!(after.len() > before.len());
        assert_eq!(after[..before.len()], before);
    }
}
