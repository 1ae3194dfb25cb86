//! Conversations whose answers cannot go back as they came: private data of another model, ids and thinking that an API refuses.

use std::sync::Arc;

use positronic_core::model::Model;
use positronic_core::prelude::*;
use positronic_core::store::MemoryStore;
use positronic_model_testing::rules::{anthropic, chat, gemini, responses};
use positronic_model_testing::wire_forms::{self, Reply};
use positronic_model_testing::{Provider as Server, ResponseTemplate, Rules};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::strings::providers;

fn talker() -> Brain {
    brain("Talker")
        .r#loop("Talk", |cx| {
            cx.system("Help.")
                .tool("larder", |t| t.description("Lists what there is").execute(async |_: NoArgs, _| Ok("flour")))
        })
        .build()
}

/// Sends a message in the conversation of a store.
async fn say(store: &MemoryStore, model: &Arc<dyn Model>, text: &str) {
    let runner = Runner::new(Arc::clone(model)).store(store.clone());
    runner.conversation("c").send(&talker(), (), text).await.unwrap().result().await.unwrap();
}

fn stream(events: &[Value]) -> ResponseTemplate {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
}

/// Encodes an answer with data that is private to a model.
type Encode = fn(model: &str) -> ResponseTemplate;

fn claude(model: &str) -> ResponseTemplate {
    let block =
        |index: u32, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    stream(&[
        json!({"type": "message_start", "message": {"id": "msg_1", "model": model, "usage": {"input_tokens": 9}}}),
        block(0, json!({"type": "thinking", "thinking": "Hm.", "signature": format!("model:{model}")})),
        block(1, json!({"type": "redacted_thinking", "data": format!("model:{model}")})),
        block(2, json!({"type": "text", "text": "Fine."})),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}),
    ])
}

fn response(model: &str) -> ResponseTemplate {
    let thought =
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": format!("model:{model}")});
    let content = json!([{"type": "output_text", "text": "Fine.", "annotations": []}]);
    let message =
        json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": content});
    let usage = json!({"input_tokens": 9, "output_tokens": 7});
    let response =
        json!({"id": "resp_1", "model": model, "status": "completed", "output": [thought, message], "usage": usage});
    stream(&[json!({"type": "response.completed", "response": response})])
}

fn completion(model: &str) -> ResponseTemplate {
    let details = json!([{"type": "reasoning.encrypted", "index": 0, "data": format!("model:{model}")}]);
    let delta = json!({"reasoning": "Hm.", "reasoning_details": details, "content": "Fine."});
    stream(&[json!({"model": model, "choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]})])
}

fn content(model: &str) -> ResponseTemplate {
    let part = json!({"text": "Fine.", "thoughtSignature": format!("model:{model}")});
    let candidate = json!({"content": {"parts": [part], "role": "model"}, "finishReason": "STOP", "index": 0});
    stream(&[json!({"modelVersion": model, "candidates": [candidate]})])
}

/// Speaks with two models of a provider in turn, and then with the first one at another server.
async fn speak_with_two(api: &str, variable: &str, rules: Rules, encode: Encode) {
    let answers = vec![encode("one-1"), encode("two-2"), encode("one-1"), encode("two-2")];
    let server = Server::with(rules, answers).await;
    let elsewhere = Server::with(rules, vec![encode("one-1")]).await;
    let at = |server: &Server| {
        let url = if variable == "OPENAI_BASE_URL" { format!("{}/v1", server.url()) } else { server.url() };
        let providers = providers(&[(variable, &url)]);
        ["one-1", "two-2"].map(|model| providers.model(&format!("{api}/{model}")).unwrap())
    };
    let store = MemoryStore::new();
    let [one, two] = at(&server);
    for model in [&one, &two, &one, &two] {
        say(&store, model, "Hi.").await;
    }
    say(&store, &at(&elsewhere)[0], "Hi.").await;

    let held = |body: &Value| ["model:one-1", "model:two-2"].map(|secret| body.to_string().contains(secret));
    let bodies = server.bodies();
    assert_eq!(bodies.len(), 4, "each request fits the rules of {api}");
    // Chat completions send reasoning back only with calls.
    let goes_back = api != "openai";
    let expected = [[false, false], [false, false], [goes_back, false], [false, goes_back]];
    assert_eq!(bodies.iter().map(held).collect::<Vec<_>>(), expected, "{api}");
    assert_eq!(elsewhere.bodies().iter().map(held).collect::<Vec<_>>(), [[false, false]], "{api}");
    assert_eq!(elsewhere.bodies()[0].to_string().matches("Fine.").count(), 4, "all models read the answers");
}

#[tokio::test]
async fn private_data_goes_back_only_to_the_model_that_made_it() {
    speak_with_two("anthropic", "ANTHROPIC_BASE_URL", anthropic::check, claude).await;
    speak_with_two("openai-responses", "OPENAI_BASE_URL", responses::check, response).await;
    speak_with_two("openai", "OPENAI_BASE_URL", chat::check, completion).await;
    speak_with_two("gemini", "GEMINI_BASE_URL", gemini::check, content).await;
}

/// Plays the answers of a report, and returns the last request. The server refuses what the provider refuses.
async fn reported(report: &str) -> Value {
    let report: Value = serde_json::from_str(report).unwrap();
    let answers = report["answers"].as_array().unwrap().iter();
    let answers: Vec<_> = answers
        .map(|body| ResponseTemplate::new(200).set_body_raw(body.as_str().unwrap(), "text/event-stream"))
        .collect();
    let (count, is_chat) = (answers.len(), report["api"] == "chat");
    let server = Server::with(if is_chat { chat::check } else { anthropic::check }, answers).await;
    let url = server.url();
    let model = if is_chat {
        providers(&[("OPENAI_BASE_URL", &format!("{url}/v1"))]).model("openai/m")
    } else {
        providers(&[("ANTHROPIC_BASE_URL", &url)]).model("anthropic/m")
    };
    let (store, model) = (MemoryStore::new(), model.unwrap());
    say(&store, &model, "Hi.").await;
    if server.bodies().len() < count {
        say(&store, &model, "Go on.").await;
    }
    assert_eq!(server.bodies().len(), count, "{}", report["must"]);
    server.bodies().pop().unwrap()
}

fn ids(body: &Value) -> Vec<&str> {
    let calls = body["messages"].as_array().unwrap().iter().filter_map(|message| message["tool_calls"].as_array());
    calls.flatten().map(|call| call["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn calls_go_back_with_ids_that_the_api_accepts() {
    let repeated = reported(include_str!("../data/reported/loop-dup-id-one-answer-chat.json")).await;
    assert_eq!(ids(&repeated), ["call_1", "call00002"]);
    let long = reported(include_str!("../data/reported/loop-long-id-chat.json")).await;
    assert_eq!(ids(&long), ["call00001"]);
}

#[tokio::test]
async fn thinking_goes_back_only_signed_and_before_the_answer() {
    for (report, text) in [
        (include_str!("../data/reported/loop-text-then-think-anthropic.json"), "Hello."),
        (include_str!("../data/reported/loop-think-unsigned-anthropic.json"), "Hi."),
    ] {
        let body = reported(report).await;
        assert_eq!(body["messages"][1]["content"], json!([{"type": "text", "text": text}]));
    }
}

#[derive(Deserialize, JsonSchema)]
struct Query {
    #[serde(rename = "$filter")]
    filter: String,
}

#[tokio::test]
async fn tool_gets_a_field_whose_name_the_provider_refuses() {
    let searcher = brain("Searcher").r#loop("Search", |cx| {
        cx.system("Search.").input("Bees?").tool("orders", |t| {
            t.description("Lists orders").execute(async |Query { filter }, _| Ok(format!("all {filter}")))
        })
    });
    let call = Reply { text: String::new(), calls: vec![("orders".to_owned(), json!({"_filter": "bees"}))] };
    let end = Reply { text: "Fine.".to_owned(), calls: Vec::new() };
    let answers = vec![wire_forms::messages(&call, 0), wire_forms::messages(&end, 1)];
    let server = Server::start(anthropic::check, answers).await;
    let model = providers(&[("ANTHROPIC_BASE_URL", &server.url())]).model("anthropic/m").unwrap();

    Runner::new(model).start(&searcher, ()).await.unwrap().result().await.unwrap();

    let bodies = server.bodies();
    assert_eq!(bodies[0]["tools"][0]["input_schema"]["required"], json!(["_filter"]));
    assert_eq!(bodies[1]["messages"][2]["content"][0]["content"], "all bees");
}
