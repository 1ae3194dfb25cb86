//! A history with answers of other providers, as in a conversation that continues with another model.

use std::sync::Arc;

use positronic_core::record::{Assistant, Message, ModelRequest, Path, Transcript};
use serde_json::{Value, json};

use crate::strings::providers;
use positronic_model_testing::rules;

/// An answer with a thought, an item and a call, and the call's result. The data contains the adapter's name as a marker.
fn answered(call: &str, thought: Value, item: Value, call_data: Value) -> [Message; 3] {
    let parts = vec![
        Assistant::Reasoning { text: "Hm.".to_owned(), data: Some(thought) },
        Assistant::Opaque { data: item },
        Assistant::Call {
            call: call.to_owned(),
            name: "look".to_owned(),
            arguments: "{}".to_owned(),
            data: Some(call_data),
        },
    ];
    [
        Message::user("Look."),
        Message::assistant(parts),
        Message::Tool { call: call.to_owned(), name: "look".to_owned(), text: "a tree".to_owned(), files: Vec::new() },
    ]
}

/// The history of an adapter, with its private data as it stores it.
fn history(adapter: &str) -> [Message; 3] {
    match adapter {
        "anthropic" => answered(
            "toolu_1",
            json!({"type": "thinking", "signature": "of-anthropic"}),
            json!({"type": "redacted_thinking", "anthropic": {"type": "redacted_thinking", "data": "of-anthropic"}}),
            json!({"anthropic": {"caller": {"type": "of-anthropic"}}}),
        ),
        "gemini" => answered(
            "look:1",
            json!({"gemini": {"thoughtSignature": "of-gemini"}}),
            json!({"type": "executableCode", "gemini": {"executableCode": {"code": "of-gemini"}}}),
            json!({"gemini": {"call": {"id": "look:1"}, "part": {"thoughtSignature": "of-gemini"}}}),
        ),
        "openai-responses" => answered(
            "call_1",
            json!({"type": "reasoning", "id": "of-openai-responses", "encrypted_content": "of-openai-responses"}),
            json!({"type": "mcp_list_tools", "id": "of-openai-responses"}),
            json!({"id": "of-openai-responses", "status": "completed"}),
        ),
        _ => answered(
            "call_2",
            json!({"field": "reasoning_content", "details": [{"data": "of-openai"}]}),
            json!({"extra_content": {"google": {"thought_signature": "of-openai"}}}),
            json!({"extra_content": {"google": {"thought_signature": "of-openai"}}}),
        ),
    }
}

#[test]
fn private_data_is_sent_back_to_its_own_provider_only() {
    let keys = [("ANTHROPIC_API_KEY", "k"), ("GEMINI_API_KEY", "k"), ("OPENAI_API_KEY", "k")];
    let providers = providers(&keys);
    let adapters = ["anthropic", "gemini", "openai-responses", "openai"];
    let mut leaks = Vec::new();
    for adapter in adapters {
        let model = match adapter {
            "anthropic" => "anthropic/claude-haiku-5-5",
            "gemini" => "gemini/gemini-3.8-flash",
            "openai-responses" => "openai-responses/gpt-5",
            _ => "openai/gpt-5",
        };
        for other in adapters {
            let request = ModelRequest {
                path: Path::parse("Chat/0").unwrap(),
                attempt: 0,
                system: "You help.".into(),
                context: [].into(),
                tools: Arc::default(),
                messages: Transcript::new(history(other)),
                settings: Arc::default(),
            };
            let body = providers.model(model).unwrap().wire(&request);
            assert!(body.contains("a tree"), "{body}");
            let document: Value = serde_json::from_str(&body).unwrap();
            let fits = match adapter {
                "anthropic" => rules::anthropic::check(&document),
                "gemini" => rules::gemini::check(&document),
                "openai" if other != adapter => rules::chat::check(&document),
                _ => Ok(()),
            };
            let marks = body.matches("of-").count();
            let is_right = if adapter == other {
                marks == body.matches(&format!("\"of-{adapter}\"")).count() && marks >= 3
            } else {
                marks == 0
            };
            if !is_right || fits.is_err() {
                leaks.push(format!("{other} → {adapter}: {fits:?} {body}"));
            }
        }
    }
    assert!(leaks.is_empty(), "{leaks:#?}");
}
