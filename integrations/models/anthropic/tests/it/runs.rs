//! Runs of several iterations, with answers from recordings.

use std::sync::Arc;
use std::time::Duration;

use positronic_anthropic::{Anthropic, AnthropicConfig};
use positronic_core::model::{Model as _, NoDeltas};
use positronic_core::prelude::*;
use positronic_core::record::{ModelErrorKind, ModelRequest, Path, Transcript};
use positronic_model_testing::rules::anthropic::check;
use positronic_model_testing::{Provider, ResponseTemplate, events};
use serde_json::{Value, json};

use crate::recorded::{TEXT, TOOL_WITHOUT_ARGUMENTS, WEB_SEARCH};

fn model(provider: &Provider) -> Anthropic {
    let config = AnthropicConfig::builder()
        .base_url(format!("{}/v1", provider.url()))
        .api_key("sk-ant-test")
        .model("claude-sonnet-4-5")
        .beta(vec!["context-1m-2025-08-07".to_owned()]);
    Anthropic::new(config.build()).unwrap()
}

fn tracker() -> Brain {
    brain("Tracker")
        .r#loop("Work", |cx| {
            cx.system("You keep a list of issues.").input("Update the list.").tool("updateIssueList", |t| {
                t.description("Updates the list").execute(async |_: NoArgs, _| Ok("12 issues"))
            })
        })
        .build()
}

fn empty() -> ModelRequest {
    ModelRequest {
        path: Path::parse("Chat/0").unwrap(),
        attempt: 0,
        system: "You help.".into(),
        context: [].into(),
        tools: Arc::default(),
        messages: Transcript::default(),
        settings: Arc::default(),
    }
}

#[tokio::test]
async fn loop_calls_a_tool_and_ends_with_the_text() {
    let provider = Provider::start(check, vec![events(TOOL_WITHOUT_ARGUMENTS), events(TEXT)]).await;
    let runner = Runner::new(model(&provider));
    let run = runner.start(&tracker(), ()).await.unwrap();
    run.result().await.unwrap();

    let text = run.answer().unwrap();
    assert!(text.starts_with("Hello! I'm doing well"), "{text}");
    insta::assert_json_snapshot!(provider.bodies()[1]["messages"], @r#"
    [
      {
        "content": [
          {
            "cache_control": {
              "type": "ephemeral"
            },
            "text": "Update the list.",
            "type": "text"
          }
        ],
        "role": "user"
      },
      {
        "content": [
          {
            "text": "I'll update the issue list for you.",
            "type": "text"
          },
          {
            "id": "toolu_01QE1WLsSVp5hy5Q3GmGTmjP",
            "input": {},
            "name": "updateIssueList",
            "type": "tool_use"
          }
        ],
        "role": "assistant"
      },
      {
        "content": [
          {
            "cache_control": {
              "type": "ephemeral"
            },
            "content": "12 issues",
            "tool_use_id": "toolu_01QE1WLsSVp5hy5Q3GmGTmjP",
            "type": "tool_result"
          }
        ],
        "role": "user"
      }
    ]
    "#);
    let requests = provider.requests().await;
    let header = |name: &str| requests[0].headers.get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!(requests[0].url.path(), "/v1/messages");
    assert_eq!(
        ["x-api-key", "anthropic-version", "anthropic-beta"].map(header),
        ["sk-ant-test", "2023-06-01", "context-1m-2025-08-07"]
    );
}

/// Returns an answer that thinks and calls a tool.
fn thinking_call() -> Vec<String> {
    let block = |index: u32, block: Value, deltas: Vec<Value>| {
        let start = json!({ "type": "content_block_start", "index": index, "content_block": block });
        let delta = move |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        [start].into_iter().chain(deltas.into_iter().map(delta)).map(|event| event.to_string())
    };
    let thinking = vec![
        json!({ "type": "thinking_delta", "thinking": "I look it up." }),
        json!({ "type": "signature_delta", "signature": "EqQB" }),
    ];
    let end =
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 9 } });
    block(0, json!({ "type": "thinking", "thinking": "", "signature": "" }), thinking)
        .chain(block(1, json!({ "type": "redacted_thinking", "data": "x9f" }), Vec::new()))
        .chain(block(
            2,
            json!({ "type": "tool_use", "id": "toolu_1", "name": "updateIssueList", "input": {} }),
            Vec::new(),
        ))
        .chain([end.to_string()])
        .collect()
}

#[tokio::test]
async fn thinking_goes_back_with_its_signature() {
    let provider = Provider::start(check, vec![thinking_call(), events(TEXT)]).await;
    Runner::new(model(&provider)).start(&tracker(), ()).await.unwrap().result().await.unwrap();

    insta::assert_snapshot!(provider.bodies()[1]["messages"][1]["content"], @r#"[{"signature":"EqQB","thinking":"I look it up.","type":"thinking"},{"data":"x9f","type":"redacted_thinking"},{"id":"toolu_1","input":{},"name":"updateIssueList","type":"tool_use"}]"#);
}

#[tokio::test]
async fn failures_have_their_kinds() {
    for (status, kind, expected, wait) in [
        (529, "overloaded_error", ModelErrorKind::Server, None),
        (429, "rate_limit_error", ModelErrorKind::RateLimited, Some(Duration::from_secs(7))),
        (413, "request_too_large", ModelErrorKind::ContextTooLong, None),
        (402, "billing_error", ModelErrorKind::QuotaExhausted, None),
        (504, "timeout_error", ModelErrorKind::Server, None),
    ] {
        let body = json!({ "type": "error", "error": { "type": kind, "message": "no" }, "request_id": "req_1" });
        let answer = ResponseTemplate::new(status).set_body_json(body).insert_header("request-id", "req_1");
        let answer = if wait.is_some() { answer.insert_header("retry-after", "7") } else { answer };
        let provider = Provider::with(|_| Ok(()), vec![answer]).await;
        let error = model(&provider).call(&empty(), &NoDeltas).await.unwrap_err();

        assert_eq!((error.kind, error.retry_after), (expected, wait), "{kind}");
        assert_eq!((error.provider_code.as_deref(), error.request_id.as_deref()), (Some(kind), Some("req_1")));
    }
}

#[tokio::test]
async fn tokens_are_counted_by_the_provider() {
    let count = ResponseTemplate::new(200).set_body_json(json!({ "input_tokens": 14 }));
    let provider = Provider::with(|_| Ok(()), vec![count]).await;

    assert_eq!(model(&provider).count_tokens(&empty()).await.unwrap(), 14);
    assert_eq!(provider.requests().await[0].url.path(), "/v1/messages/count_tokens");
    let body = &provider.bodies()[0];
    assert!(body["max_tokens"].is_null() && body["stream"].is_null(), "{body}");
}

#[tokio::test]
async fn paused_turn_is_continued_with_its_blocks() {
    let paused = |event: String| event.replace(r#""stop_reason":"end_turn""#, r#""stop_reason":"pause_turn""#);
    let provider =
        Provider::start(check, vec![events(WEB_SEARCH).into_iter().map(paused).collect(), events(TEXT)]).await;
    let runner = Runner::new(model(&provider));
    let run = runner.start(&tracker(), ()).await.unwrap();
    run.result().await.unwrap();

    let messages = &provider.bodies()[1]["messages"];
    assert_eq!(messages.as_array().unwrap().len(), 2);
    assert_eq!(messages[1]["content"][0]["type"], "server_tool_use");
    assert!(run.answer().unwrap().starts_with("Hello!"));
}
