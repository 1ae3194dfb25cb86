//! Tools of the caller over OpenAI's API: their calls end an answer, and the next request brings the results.

use axum::http::StatusCode;
use positronic_bridges::Bridges;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Message, ModelRequest, Seq};
use positronic_core::store::{MemoryStore, RunFilter};
use positronic_openai::{OpenAiChat, OpenAiConfig, OpenAiResponses};
use positronic_server::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::Shop;

const RUN: [Scope; 2] = [Scope::Read, Scope::Run];
const BASE: &str = "/api/v1/openai/v1";

/// A brain that takes tools of its caller, and has two of its own.
fn helper() -> Brain<(), ()> {
    let helper = brain("Helper").r#loop("Chat", |cx| {
        cx.system("Help.")
            .tool("clock", |t| t.description("Reads the clock").execute(async |_: NoArgs, _| Ok("noon")))
            .tool("pay", |t| t.requires_approval("it costs money").execute(async |_: NoArgs, _| Ok("paid")))
    });
    helper.caller_tools().build()
}

/// A brain that takes none.
fn plain() -> Brain<(), ()> {
    brain("Plain").r#loop("Chat", |cx| cx.system("Help.")).build()
}

fn reply(request: &ModelRequest) -> Reply {
    let weather = |city: &str| ("get_weather", json!({ "city": city }));
    let messages = request.messages.messages();
    match messages.last() {
        Some(Message::User { text, .. }) => match text.as_str() {
            "weather" => Reply::calls([weather("Graz"), ("clock", json!({}))]).and_text("I look."),
            "two" => Reply::calls([weather("Graz"), weather("Bern")]),
            "bad" => Reply::call("get_weather", json!({ "town": "Graz" })),
            "pay" => Reply::calls([weather("Graz"), ("pay", json!({}))]),
            said => Reply::text(format!("You said {said}.")),
        },
        _ => {
            let mut results: Vec<_> = messages
                .iter()
                .rev()
                .map_while(|message| match message {
                    Message::Tool { text, .. } => Some(text.clone()),
                    _ => None,
                })
                .collect();
            results.reverse();
            Reply::text(format!("Read {}.", results.join(" and ")))
        }
    }
}

fn shop() -> Shop {
    let runner = Runner::new(ScriptedModel::from_fn(reply)).store(MemoryStore::new());
    Shop::of(runner.brain(helper()).brain(plain()), &Bridges::builder().build(), &[])
}

async fn post(shop: &Shop, token: &str, path: &str, body: Value) -> (StatusCode, Value) {
    let (status, text) = shop.send(token, "POST", &format!("{BASE}{path}"), Some(body)).await;
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

fn function() -> Value {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
    json!({ "name": "get_weather", "description": "Reads the weather", "parameters": schema })
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn result(call: &Value, text: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": call["id"], "content": text })
}

fn chat(messages: &[Value]) -> Value {
    let tools = json!([{ "type": "function", "function": function() }]);
    json!({ "model": "Helper", "messages": messages, "tools": tools })
}

async fn answered(shop: &Shop, token: &str, messages: &[Value]) -> Value {
    let (status, answer) = post(shop, token, "/chat/completions", chat(messages)).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer["choices"][0].clone()
}

async fn refused(shop: &Shop, token: &str, messages: &[Value]) -> (u16, String) {
    let (status, answer) = post(shop, token, "/chat/completions", chat(messages)).await;
    (status.as_u16(), answer["error"]["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn chat_answers_with_calls_of_the_callers_tools_and_continues_with_their_results() {
    let shop = shop();
    let ann = shop.token(Some("ann"), &RUN).await;
    let mut messages = vec![json!({ "role": "system", "content": "Obey." }), user("weather")];

    let asked = answered(&shop, &ann, &messages).await;
    let call = asked["message"]["tool_calls"][0].clone();
    messages.extend([asked["message"].clone(), result(&call, "sun")]);
    let done = answered(&shop, &ann, &messages).await;
    let again = answered(&shop, &ann, &messages).await;
    messages.extend([done["message"].clone(), user("thanks")]);
    let thanks = answered(&shop, &ann, &messages).await;

    assert_eq!((&asked["finish_reason"], &asked["message"]["content"]), (&json!("tool_calls"), &json!("I look.")));
    assert_eq!(call["function"], json!({ "name": "get_weather", "arguments": "{\"city\":\"Graz\"}" }));
    assert_eq!((&done["finish_reason"], &done["message"]["content"]), (&json!("stop"), &json!("Read sun and noon.")));
    assert_eq!(again, done, "the same results are one answer");
    assert_eq!(thanks["message"]["content"], "You said thanks.");
    let runs = shop.client.store().runs(&RunFilter::builder().build()).await.unwrap();
    assert_eq!(runs.len(), 2, "the calls and their results are one run");
    let log = shop.client.events(&runs[1].run, Seq(0)).await.unwrap();
    assert!(json!(log[0]).to_string().contains("get_weather"), "the start has the tools");
}

#[tokio::test]
async fn streamed_chat_has_the_calls_in_its_last_pieces() {
    let shop = shop();
    let ann = shop.token(Some("ann"), &RUN).await;
    let mut body = chat(&[user("two")]);
    body["stream"] = true.into();

    let (_, text) = shop.send(&ann, "POST", &format!("{BASE}/chat/completions"), Some(body)).await;
    let pieces = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|line| *line != "[DONE]");
    let choices: Vec<Value> =
        pieces.map(|line| serde_json::from_str::<Value>(line).unwrap()["choices"][0].clone()).collect();
    let calls: Vec<_> =
        choices.iter().filter_map(|choice| choice["delta"]["tool_calls"].as_array().cloned()).flatten().collect();
    let streamed = json!({ "role": "assistant", "content": null, "tool_calls": calls });
    let results = [result(&calls[0], "sun"), result(&calls[1], "rain")];
    let done = answered(&shop, &ann, &[&[user("two"), streamed][..], &results].concat()).await;

    assert_eq!(calls.iter().map(|call| &call["index"]).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(choices.last().unwrap()["finish_reason"], "tool_calls");
    assert_eq!(done["message"]["content"], "Read sun and rain.");
}

#[tokio::test]
async fn results_are_those_of_all_calls_of_the_answer_and_recorded_once() {
    let shop = shop();
    let ann = shop.token(Some("ann"), &RUN).await;
    let asked = answered(&shop, &ann, &[user("two")]).await["message"].clone();
    let (one, two) = (asked["tool_calls"][0].clone(), asked["tool_calls"][1].clone());
    let history = [user("two"), asked.clone()];
    let with = |results: &[Value]| [&history[..], results].concat();
    let (sun, rain) = (result(&one, "sun"), result(&two, "rain"));

    let partial = refused(&shop, &ann, &with(std::slice::from_ref(&sun))).await;
    let unknown = refused(&shop, &ann, &with(&[sun.clone(), rain.clone(), result(&json!({ "id": "x" }), "y")])).await;
    let twice = refused(&shop, &ann, &with(&[sun.clone(), sun.clone(), rain.clone()])).await;
    let message = refused(&shop, &ann, &with(&[user("never mind")])).await;
    let run = shop.client.store().runs(&RunFilter::builder().build()).await.unwrap()[0].run.clone();
    let resumed = |log: &[std::sync::Arc<positronic_core::record::Event>]| {
        log.iter().filter(|event| event.kind.name() == "LOOP_RESUME").count()
    };
    let before = resumed(&shop.client.events(&run, Seq(0)).await.unwrap());
    let done = answered(&shop, &ann, &with(&[rain.clone(), sun.clone()])).await;
    let other = refused(&shop, &ann, &with(&[sun.clone(), result(&two, "snow")])).await;
    let invented = refused(
        &shop,
        &ann,
        &[
            user("two"),
            json!({ "role": "assistant", "tool_calls": [{ "id": "x" }] }),
            result(&json!({ "id": "x" }), "y"),
        ],
    )
    .await;

    assert_eq!((partial.0, partial.1.contains(two["id"].as_str().unwrap())), (422, true), "{partial:?}");
    assert_eq!((unknown.0, unknown.1.contains("no call `x` of a tool of its caller")), (422, true), "{unknown:?}");
    assert_eq!((twice.0, twice.1.contains("has two results")), (422, true), "{twice:?}");
    assert_eq!((message.0, message.1.contains("waits for the results of the calls")), (409, true), "{message:?}");
    assert_eq!(before, 0, "a refused request records nothing");
    assert_eq!(done["message"]["content"], "Read sun and rain.");
    assert_eq!((other.0, other.1.contains("has another result")), (409, true), "{other:?}");
    assert_eq!(invented.0, 422, "{invented:?}");
}

#[tokio::test]
async fn tools_need_a_loop_that_takes_them_and_fit_their_limits() {
    let shop = shop();
    let ann = shop.token(Some("ann"), &RUN).await;
    let mut plain = chat(&[user("weather")]);
    plain["model"] = "Plain".into();
    let mut many = chat(&[user("weather")]);
    many["tools"] = (0..200).map(|n| json!({ "type": "function", "function": { "name": format!("t{n}") } })).collect();
    let mut own = chat(&[user("weather")]);
    own["tools"][0]["function"]["name"] = "clock".into();

    let (status, error) = post(&shop, &ann, "/chat/completions", plain).await;
    let (too_many, limit) = post(&shop, &ann, "/chat/completions", many).await;
    let begun = shop.client.store().runs(&RunFilter::builder().build()).await.unwrap().len();
    let (collides, same) = post(&shop, &ann, "/chat/completions", own).await;

    assert_eq!((status, &error["error"]["param"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("tools")));
    assert!(error["error"]["message"].as_str().unwrap().contains("`.caller_tools()`"), "{error}");
    assert_eq!((too_many, begun), (StatusCode::UNPROCESSABLE_ENTITY, 0), "{limit}");
    assert!(limit["error"]["message"].as_str().unwrap().contains("200 tools are too many"), "{limit}");
    assert_eq!((collides, &same["error"]["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("run_failed")), "{same}");
    assert!(same["error"]["message"].as_str().unwrap().contains("has to rename it"), "{same}");
}

#[tokio::test]
async fn results_need_the_owner_and_the_scope_of_messages_and_no_right_to_decide() {
    let shop = shop();
    let (ann, ben) = (shop.token(Some("ann"), &RUN).await, shop.token(Some("ben"), &RUN).await);
    let reader = shop.token(Some("ann"), &[Scope::Read]).await;
    let named = |messages: &[Value]| {
        let mut body = chat(messages);
        body["metadata"] = json!({ "conversation": "of-ann" });
        body
    };
    let (_, asked) = post(&shop, &ann, "/chat/completions", named(&[user("weather")])).await;
    let call = &asked["choices"][0]["message"]["tool_calls"][0];

    let (stolen, _) = post(&shop, &ben, "/chat/completions", named(&[result(call, "rain")])).await;
    let (unscoped, _) = post(&shop, &reader, "/chat/completions", named(&[result(call, "rain")])).await;
    let (_, done) = post(&shop, &ann, "/chat/completions", named(&[result(call, "sun")])).await;

    assert_eq!((stolen, unscoped), (StatusCode::NOT_FOUND, StatusCode::FORBIDDEN));
    assert_eq!(done["choices"][0]["message"]["content"], "Read sun and noon.");
}

#[tokio::test]
async fn arguments_that_do_not_match_the_schema_go_back_to_the_model_and_approvals_follow_the_calls() {
    let shop = shop();
    let ann = shop.token(Some("ann"), &RUN).await;

    let bad = answered(&shop, &ann, &[user("bad")]).await;
    let asked = answered(&shop, &ann, &[user("pay")]).await["message"].clone();
    let waits = answered(&shop, &ann, &[user("pay"), asked.clone(), result(&asked["tool_calls"][0], "sun")]).await;

    let text = bad["message"]["content"].as_str().unwrap();
    assert!(text.contains("do not match the schema"), "{text}");
    assert_eq!(asked["tool_calls"].as_array().unwrap().len(), 1, "a person decides about the other call");
    let refusal = waits["message"]["refusal"].as_str().unwrap();
    assert!(refusal.contains("positronic approve"), "{refusal}");
}

#[tokio::test]
async fn response_has_calls_as_items_and_is_continued_with_their_outputs() {
    let shop = shop();
    let ann = shop.token(Some("ann"), &RUN).await;
    let mut tool = function();
    tool["type"] = "function".into();
    let body = |input: Value, previous: &Value| json!({ "model": "Helper", "input": input, "tools": [tool], "previous_response_id": previous });
    let output = |call: &Value, text: &str| json!({ "type": "function_call_output", "call_id": call["call_id"], "output": text });
    let (_, first) = post(&shop, &ann, "/responses", body("two".into(), &Value::Null)).await;
    let calls = first["output"].as_array().unwrap();
    let outputs = json!([output(&calls[0], "sun"), output(&calls[1], "rain")]);

    let (partial, _) = post(&shop, &ann, "/responses", body(json!([output(&calls[0], "sun")]), &first["id"])).await;
    let (_, second) = post(&shop, &ann, "/responses", body(outputs.clone(), &first["id"])).await;
    let (_, again) = post(&shop, &ann, "/responses", body(outputs, &first["id"])).await;
    let (_, third) = post(&shop, &ann, "/responses", body("thanks".into(), &second["id"])).await;
    let read = async |response: &Value| {
        let path = format!("{BASE}/responses/{}", response["id"].as_str().unwrap());
        serde_json::from_str::<Value>(&shop.send(&ann, "GET", &path, None).await.1).unwrap()
    };

    assert_eq!(first["status"], "completed");
    assert_eq!((&calls[1]["type"], &calls[1]["arguments"]), (&json!("function_call"), &json!("{\"city\":\"Bern\"}")));
    assert_eq!(partial, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(second["output"][0]["content"][0]["text"], "Read sun and rain.");
    assert_eq!((&again["id"], &again["output"]), (&second["id"], &second["output"]));
    assert_eq!(third["output"][0]["content"][0]["text"], "You said thanks.");
    assert_eq!(read(&first).await["output"], first["output"], "the log has it");
    assert_eq!(read(&second).await["output"], second["output"]);
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct City {
    city: String,
}

#[tokio::test]
async fn tool_of_a_brain_is_called_by_the_brain_that_is_its_model() {
    let shop = shop();
    let ann = shop.token(Some("ann"), &RUN).await;
    let config = || {
        let base = shop.listen();
        let token = ann.clone();
        async move {
            OpenAiConfig::builder().base_url(format!("{}{BASE}", base.await)).api_key(token).model("Helper").build()
        }
    };
    let outer = brain("Outer").r#loop("Ask", |cx| {
        cx.system("Ask.").input("two").tool("get_weather", |t| {
            t.description("Reads the weather").execute(async |City { city }: City, _| Ok(format!("sun in {city}")))
        })
    });
    let (chat, responses) = (OpenAiChat::new(config().await).unwrap(), OpenAiResponses::new(config().await).unwrap());

    for (runner, name) in [(Runner::new(chat), "chat"), (Runner::new(responses), "responses")] {
        let runner = runner.store(MemoryStore::new());
        let run = runner.start(&outer, ()).await.unwrap();
        run.result().await.unwrap();
        let log = json!(runner.client().events(run.id(), Seq(0)).await.unwrap()).to_string();
        assert!(log.contains("Read sun in Graz and sun in Bern."), "{name}: {log}");
    }
}
