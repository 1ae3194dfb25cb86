//! A run that falls back across providers.

use std::time::Duration;

use positronic_core::model::wrap::Fallback;
use positronic_core::prelude::*;
use positronic_core::record::{EventKind, RoutingStep, Seq};
use positronic_model_testing::rules::{anthropic, chat, gemini};
use positronic_model_testing::{Provider as Server, ResponseTemplate};
use serde_json::{Value, json};

use crate::strings::providers;

/// Data that only the provider that made it may get.
const OF_ANTHROPIC: [&str; 2] = ["anthropic-signature", "anthropic-redacted"];
const OF_GEMINI: [&str; 1] = ["gemini-signature"];
const OF_OPENAI: [&str; 1] = ["openai-reasoning"];

fn stream(events: &[Value]) -> ResponseTemplate {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
}

/// An answer of Anthropic that thinks and calls a tool.
fn claude_calls() -> ResponseTemplate {
    let block =
        |index: u32, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    stream(&[
        json!({"type": "message_start", "message": {"id": "msg_1", "model": "claude-haiku-5-5", "usage": {"input_tokens": 9}}}),
        block(0, json!({"type": "thinking", "thinking": "I look it up.", "signature": OF_ANTHROPIC[0]})),
        block(1, json!({"type": "redacted_thinking", "data": OF_ANTHROPIC[1]})),
        block(2, json!({"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}})),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}}),
    ])
}

fn claude_ends() -> ResponseTemplate {
    stream(&[
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "All is seen."}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
    ])
}

/// An answer of Gemini that calls a tool. Its id has characters that Anthropic refuses.
fn gemini_calls() -> ResponseTemplate {
    let call =
        json!({"functionCall": {"id": "look:1/x", "name": "look", "args": {}}, "thoughtSignature": OF_GEMINI[0]});
    stream(&[json!({
        "candidates": [{"content": {"parts": [call], "role": "model"}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 5, "thoughtsTokenCount": 2},
    })])
}

/// An answer of an OpenAI-compatible endpoint that reasons and calls a tool.
fn openai_calls() -> ResponseTemplate {
    let call = json!({"index": 0, "id": "call_9", "type": "function", "function": {"name": "look", "arguments": "{}"}});
    stream(&[
        json!({"choices": [{"index": 0, "delta": {"reasoning_content": OF_OPENAI[0]}}]}),
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 13, "completion_tokens": 4}}),
    ])
}

fn overloaded(status: u16) -> ResponseTemplate {
    let body = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    ResponseTemplate::new(status).set_body_json(body)
}

fn watcher() -> Brain {
    brain("Watcher")
        .r#loop("Watch", |cx| {
            cx.system("You watch.")
                .input("Look around.")
                .tool("look", |t| t.description("Looks around").execute(async |_: NoArgs, _| Ok("a tree")))
        })
        .build()
}

/// Returns the private data of others in the requests of a server.
fn foreign<'a>(server: &Server, others: &[&'a str]) -> Vec<&'a str> {
    let bodies = Value::from(server.bodies()).to_string();
    others.iter().copied().filter(|data| bodies.contains(data)).collect()
}

#[tokio::test]
async fn run_falls_back_across_providers_without_their_private_data() {
    let answers = vec![claude_calls(), overloaded(529), overloaded(529), claude_ends()];
    let claude = Server::with(anthropic::check, answers).await;
    let gemini = Server::with(gemini::check, vec![gemini_calls(), overloaded(503)]).await;
    let openai = Server::with(chat::check, vec![openai_calls()]).await;
    let providers = providers(&[
        ("ANTHROPIC_BASE_URL", &claude.url()),
        ("GEMINI_BASE_URL", &gemini.url()),
        ("OPENAI_BASE_URL", &format!("{}/v1", openai.url())),
    ]);
    let model = |name| providers.model(name).unwrap();
    // Each iteration begins with the first model.
    let fallback = Fallback::new(model("anthropic/claude-haiku-5-5"))
        .then(model("gemini/gemini-3.8-flash"))
        .then(model("openai/qwen3"))
        .rest(Duration::ZERO);

    let run = Runner::new(fallback).start(&watcher(), ()).await.unwrap();
    run.result().await.unwrap();

    assert_eq!(run.answer().as_deref(), Some("All is seen."));
    let events = run.events(Seq(0)).await.unwrap();
    let step = |step: &RoutingStep| match step {
        RoutingStep::Failed { model, kind, .. } => format!(" after {model} failed: {kind:?};"),
        other => format!(" {other:?}"),
    };
    let answers = events.iter().filter_map(|event| match &event.kind {
        EventKind::LoopModelResult { metadata, .. } => {
            let via: String = metadata.via.iter().map(step).collect();
            Some(format!("{}/{}{via}\n", metadata.provider, metadata.model))
        }
        _ => None,
    });
    insta::assert_snapshot!(answers.collect::<String>(), @r"
    anthropic/claude-haiku-5-5
    gemini/gemini-3.8-flash after anthropic/claude-haiku-5-5 failed: Server;
    openai/qwen3 after anthropic/claude-haiku-5-5 failed: Server; after gemini/gemini-3.8-flash failed: Server;
    anthropic/claude-haiku-5-5
    ");
    let bodies = [claude.bodies().len(), gemini.bodies().len(), openai.bodies().len()];
    assert_eq!(bodies, [4, 2, 1], "each request fits the rules of its provider");
    assert_eq!(foreign(&claude, &[&OF_GEMINI[..], &OF_OPENAI].concat()), Vec::<&str>::new());
    assert_eq!(foreign(&gemini, &[&OF_ANTHROPIC[..], &OF_OPENAI].concat()), Vec::<&str>::new());
    assert_eq!(foreign(&openai, &[&OF_ANTHROPIC[..], &OF_GEMINI].concat()), Vec::<&str>::new());
    let last = claude.bodies().pop().unwrap().to_string();
    assert!(OF_ANTHROPIC.iter().all(|own| last.contains(own)), "its own data is sent back: {last}");
    assert!(gemini.bodies()[1].to_string().contains(OF_GEMINI[0]), "its own data is sent back");
    let texts = ["of_model", "look:1/x"];
    assert_eq!(foreign(&claude, &texts), Vec::<&str>::new(), "its ids have another form");
}
