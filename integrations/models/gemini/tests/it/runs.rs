//! Runs of several iterations, with answers from recordings.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::model::{Model as _, NoDeltas};
use positronic_core::prelude::*;
use positronic_core::record::{ModelErrorKind, ModelRequest, Path, Settings, Transcript};
use positronic_gemini::{Gemini, GeminiConfig};
use positronic_model_testing::rules::gemini::check;
use positronic_model_testing::{Provider, ResponseTemplate, events};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::recorded::{CALL, TEXT};

fn model(provider: &Provider) -> Gemini {
    let config = GeminiConfig::builder()
        .base_url(format!("{}/v1beta", provider.url()))
        .api_key("AIza-test")
        .model("gemini-3-pro-preview");
    Gemini::new(config.build()).unwrap()
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The city.
    location: String,
}

#[tokio::test]
async fn loop_calls_a_tool_and_ends_with_the_text() {
    let provider = Provider::start(check, vec![events(CALL), events(TEXT)]).await;
    let forecast = brain("Forecast").r#loop("Work", |cx| {
        cx.system("You know the weather.").input("How is it in San Francisco?").tool("weather", |t| {
            t.description("Tells the weather").execute(async |Place { location }, _| Ok(format!("fog in {location}")))
        })
    });
    let run = Runner::new(model(&provider)).start(&forecast, ()).await.unwrap();
    run.result().await.unwrap();

    assert!(run.answer().unwrap().starts_with("There are **3**"));
    let requests = provider.requests().await;
    assert_eq!(requests[0].url.path(), "/v1beta/models/gemini-3-pro-preview:streamGenerateContent");
    assert_eq!(requests[0].url.query(), Some("alt=sse"));
    assert_eq!(requests[0].headers.get("x-goog-api-key").unwrap(), "AIza-test");
    insta::assert_snapshot!(provider.bodies()[1]["contents"][2], @r#"{"parts":[{"functionResponse":{"name":"weather","response":{"output":"fog in San Francisco"}}}],"role":"user"}"#);
}

fn empty(settings: Settings) -> ModelRequest {
    ModelRequest {
        path: Path::parse("Chat/0").unwrap(),
        attempt: 0,
        system: "You help.".into(),
        context: [].into(),
        tools: Arc::default(),
        messages: Transcript::default(),
        settings: Arc::new(settings),
    }
}

#[tokio::test]
async fn failures_have_their_kinds() {
    let details = json!([{ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s" }]);
    for (status, name, expected, wait) in [
        (429, "RESOURCE_EXHAUSTED", ModelErrorKind::RateLimited, Some(Duration::from_secs(7))),
        (403, "PERMISSION_DENIED", ModelErrorKind::Auth, None),
        (404, "NOT_FOUND", ModelErrorKind::NotFound, None),
        (503, "UNAVAILABLE", ModelErrorKind::Server, None),
    ] {
        let details = if wait.is_some() { details.clone() } else { json!([]) };
        let body = json!({ "error": { "code": status, "message": "no", "status": name, "details": details } });
        let provider = Provider::with(|_| Ok(()), vec![ResponseTemplate::new(status).set_body_json(body)]).await;
        let error = model(&provider).call(&empty(Settings::default()), &NoDeltas).await.unwrap_err();

        assert_eq!((error.kind, error.retry_after), (expected, wait), "{name}");
    }
}

#[tokio::test]
async fn request_names_its_model_in_the_path() {
    let count = ResponseTemplate::new(200).set_body_json(json!({ "totalTokens": 14 }));
    let provider = Provider::with(|_| Ok(()), vec![count]).await;
    let request = empty(Settings::builder().model("tunedModels/cook-1").build());

    assert_eq!(model(&provider).count_tokens(&request).await.unwrap(), 14);
    assert_eq!(provider.requests().await[0].url.path(), "/v1beta/tunedModels/cook-1:countTokens");
    assert_eq!(provider.bodies()[0]["generateContentRequest"]["model"], "tunedModels/cook-1");
}
