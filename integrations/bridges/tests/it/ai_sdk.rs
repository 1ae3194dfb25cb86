//! What the AI SDK's stream says of recorded runs.

use axum::http::StatusCode;
use positronic_bridges::Bridges;
use positronic_core::dsl::form;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::Message;
use positronic_core::store::MemoryStore;
use positronic_server::Scope;
use serde_json::{Value, json};

use crate::support::{Shop, input};

const ALL: [Scope; 3] = [Scope::Read, Scope::Run, Scope::Decide];

/// Posts a chat whose last message is this one, and returns the chunks.
async fn chat(shop: &Shop, token: &str, more: Value) -> String {
    let mut body = json!({ "id": "chat", "messages": [] });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, text) = shop.send(token, "POST", "/api/v1/ai-sdk/Refund", Some(body)).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    chunks(&text)
}

/// Returns one chunk a line.
fn chunks(text: &str) -> String {
    text.lines().filter_map(|line| line.strip_prefix("data: ")).collect::<Vec<_>>().join("\n")
}

fn said(text: &str) -> Value {
    json!({ "messages": [{ "id": format!("m-{text}"), "role": "user", "parts": [{ "type": "text", "text": text }] }] })
}

#[tokio::test]
async fn chat_up_to_an_approval_and_after_it() {
    let shop = Shop::open(&Bridges::builder().build(), &["none"]);
    let ann = shop.token(Some("ann"), &ALL).await;

    let first = chat(&shop, &ann, said("pay")).await;
    let asked = first.lines().find(|line| line.contains("tool-approval-request")).unwrap();
    let asked: Value = serde_json::from_str(asked).unwrap();
    let part = json!({
        "type": "dynamic-tool", "state": "approval-responded", "approval": { "id": asked["approvalId"], "approved": true },
    });
    let answered = json!({ "messages": [{ "id": "a", "role": "assistant", "parts": [part] }] });
    let second = chat(&shop, &ann, answered.clone()).await;
    let repeated = chat(&shop, &ann, answered).await;

    insta::assert_snapshot!("chat_up_to_an_approval", first);
    insta::assert_snapshot!("chat_after_the_approval", second);
    assert!(repeated.contains(r#""finishReason":"stop""#), "the same answer is one decision: {repeated}");
}

#[tokio::test]
async fn refused_answer_is_an_error_at_the_end_and_its_question_stays() {
    let shop = Shop::open(&Bridges::builder().build(), &["none"]);
    let ann = shop.token(Some("ann"), &ALL).await;
    let powerless = shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await;
    let first = chat(&shop, &ann, said("pay")).await;
    let asked: Value =
        serde_json::from_str(first.lines().find(|line| line.contains("tool-approval-request")).unwrap()).unwrap();
    let answer = |approved: bool| {
        let part = json!({ "type": "dynamic-tool", "approval": { "id": asked["approvalId"], "approved": approved } });
        json!({ "messages": [{ "id": "a", "role": "assistant", "parts": [part] }] })
    };

    let refused = chat(&shop, &powerless, answer(true)).await;
    let denied = chat(&shop, &ann, answer(false)).await;
    let late = chat(&shop, &ann, answer(true)).await;

    let lines: Vec<_> = refused.lines().rev().take(3).collect();
    assert!(lines[0] == "[DONE]" && lines[1].contains("lacks the scope `decide`"), "{refused}");
    assert!(refused.contains("tool-approval-request"), "the question is still open: {refused}");
    assert!(denied.contains(r#""finishReason":"stop""#), "{denied}");
    assert!(
        late.contains(r#""approved":false"#) && late.contains("Done."),
        "what was decided, and what followed: {late}"
    );
    assert!(late.lines().rev().nth(1).unwrap().contains("already rejected by ann"), "{late}");
}

#[tokio::test]
async fn stream_of_a_waiting_run_is_replayed_and_that_of_an_ended_one_is_empty() {
    let shop = Shop::open(&Bridges::builder().build(), &["none"]);
    let ann = shop.token(Some("ann"), &ALL).await;
    let first = chat(&shop, &ann, said("pay")).await;

    let (status, again) = shop.send(&ann, "GET", "/api/v1/ai-sdk/Refund/chat/stream", None).await;
    chat(&shop, &ann, json!({ "id": "other", "messages": said("hello")["messages"] })).await;
    let (ended, _) = shop.send(&ann, "GET", "/api/v1/ai-sdk/Refund/other/stream", None).await;
    let (shown, whole) = shop.send(&ann, "GET", "/api/v1/ai-sdk/Refund/other/stream?seq=0", None).await;
    let (unknown, _) = shop.send(&ann, "GET", "/api/v1/ai-sdk/Refund/none/stream?seq=0", None).await;

    assert_eq!((status, chunks(&again)), (StatusCode::OK, first));
    assert_eq!((ended, unknown), (StatusCode::NO_CONTENT, StatusCode::NO_CONTENT));
    assert!(shown == StatusCode::OK && whole.contains("You said hello."), "a page that has nothing gets it: {whole}");
}

/// Returns where a page asks for what a message does not show: the run and the event are in the message's metadata.
fn watch(chunks: &str) -> String {
    let metadata: Vec<Value> = chunks
        .lines()
        .filter(|line| line.contains("messageMetadata"))
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["messageMetadata"].clone())
        .collect();
    let (run, seq) = (metadata[0]["runId"].as_str().unwrap(), &metadata.last().unwrap()["seq"]);
    format!("/api/v1/ai-sdk/Refund/chat/stream?run={run}&seq={seq}")
}

#[tokio::test]
async fn page_that_watches_gets_the_message_again_once_another_one_has_decided() {
    let shop = Shop::open(&Bridges::builder().build(), &["none"]);
    let ann = shop.token(Some("ann"), &ALL).await;
    let first = chat(&shop, &ann, said("pay")).await;
    let asked: Value =
        serde_json::from_str(first.lines().find(|line| line.contains("tool-approval-request")).unwrap()).unwrap();
    let decision = json!({ "approve": true });
    let path = format!("/api/v1/runs/chat-0/calls/{}/decision", asked["approvalId"].as_str().unwrap());

    let watched = watch(&first);
    let (seen, decided) = tokio::join!(
        shop.send(&ann, "GET", &watched, None),
        shop.send_with(&ann, "POST", &path, Some(decision), &[("idempotency-key", "elsewhere")]),
    );

    assert_eq!((seen.0, decided.status()), (StatusCode::OK, StatusCode::OK));
    let seen = chunks(&seen.1);
    assert!(seen.lines().next().unwrap().contains(r#""messageId":"chat-0:0""#), "the same message: {seen}");
    assert!(seen.contains("tool-output-available") || seen.contains(r#""approved":true"#), "{seen}");
    // What the run has come to is shown also when it is over.
    let mut last = seen;
    for _ in 0..10 {
        if last.contains(r#""finishReason":"stop""#) {
            break;
        }
        last = chunks(&shop.send(&ann, "GET", &watch(&last), None).await.1);
    }
    assert!(last.contains("paid 7 to DE02"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn page_that_watches_a_run_which_stands_still_is_sent_away() {
    let shop = Shop::open(&Bridges::builder().build(), &["none"]);
    let ann = shop.token(Some("ann"), &ALL).await;
    let first = chat(&shop, &ann, said("pay")).await;

    let (status, _) = shop.send(&ann, "GET", &watch(&first), None).await;
    let (other, again) = shop.send(&ann, "GET", "/api/v1/ai-sdk/Refund/chat/stream?run=earlier&seq=3", None).await;

    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!((other, chunks(&again)), (StatusCode::OK, first), "the message of a further run is news");
}

#[tokio::test]
async fn page_that_watches_a_run_names_the_event() {
    let shop = Shop::open(&Bridges::builder().build(), &["none"]);
    let ann = shop.token(Some("ann"), &ALL).await;
    chat(&shop, &ann, said("pay")).await;

    let (status, problem) = shop.send(&ann, "GET", "/api/v1/ai-sdk/Refund/chat/stream?run=chat-0", None).await;

    assert_eq!((status, problem.contains("`run` needs a `seq`")), (StatusCode::BAD_REQUEST, true), "{problem}");
}

#[tokio::test]
async fn cancelled_run_closes_its_open_approvals_in_a_page_that_watches() {
    let shop = Shop::open(&Bridges::builder().build(), &["none"]);
    let ann = shop.token(Some("ann"), &ALL).await;
    let operator = shop.token(None, &[Scope::Read, Scope::Operate]).await;
    let first = chat(&shop, &ann, said("pay")).await;
    let cancel = Some(json!({ "type": "cancel" }));
    let headers = [("idempotency-key", "once")];
    let cancelled = shop.send_with(&operator, "POST", "/api/v1/runs/chat-0/signals", cancel, &headers).await;
    assert!(cancelled.status().is_success(), "{cancelled:?}");

    let seen = chunks(&shop.send(&ann, "GET", &watch(&first), None).await.1);
    let (again, _) = shop.send(&ann, "GET", &watch(&seen), None).await;

    // With an open approval the page would ask again and again.
    let closed: Vec<_> = seen.lines().filter(|line| line.contains("tool-output-error")).collect();
    assert_eq!(closed.len(), 1, "{seen}");
    assert!(seen.contains(r#""approved":false"#) && seen.contains(r#""type":"abort""#), "{seen}");
    assert_eq!(again, StatusCode::NO_CONTENT);
}

/// Returns the messages of a chat, as a page loads them.
async fn messages(shop: &Shop, token: &str, chat: &str) -> Value {
    let (status, text) = shop.send(token, "GET", &format!("/api/v1/ai-sdk/Refund/{chat}"), None).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn page_loads_the_messages_of_its_chat() {
    let shop = Shop::open(&Bridges::builder().build(), &["none"]);
    let ann = shop.token(Some("ann"), &ALL).await;
    let none = messages(&shop, &ann, "chat").await;
    chat(&shop, &ann, said("hello")).await;
    let first = chat(&shop, &ann, said("pay")).await;
    let asked = messages(&shop, &ann, "chat").await;
    chat(&shop, &ann, answered(&first, false)).await;
    let denied = messages(&shop, &ann, "chat").await;

    assert_eq!(none, json!([]), "a chat that has not begun");
    insta::assert_json_snapshot!("messages_up_to_an_approval", asked);
    let states: Vec<_> = denied[3]["parts"].as_array().unwrap().iter().map(|part| part["state"].clone()).collect();
    assert!(states.contains(&json!("output-denied")), "{denied}");
    assert_eq!(denied[3]["id"], asked[3]["id"]);
}

/// Returns the request of a client after its user has answered the approval of a stream.
fn answered(chunks: &str, approved: bool) -> Value {
    let asked = chunks.lines().find(|line| line.contains("tool-approval-request")).unwrap();
    let asked: Value = serde_json::from_str(asked).unwrap();
    let part = json!({ "type": "dynamic-tool", "approval": { "id": asked["approvalId"], "approved": approved } });
    json!({ "messages": [{ "id": "a", "role": "assistant", "parts": [part] }] })
}

#[tokio::test]
async fn message_while_an_approval_is_open_begins_an_answer_that_asks_again() {
    let shop = Shop::open(&Bridges::builder().build(), &["none"]);
    let ann = shop.token(Some("ann"), &ALL).await;
    let first = chat(&shop, &ann, said("pay")).await;

    let second = chat(&shop, &ann, said("quickly")).await;
    let loaded = messages(&shop, &ann, "chat").await;
    let third = chat(&shop, &ann, answered(&second, true)).await;

    let request = |chunks: &str| chunks.lines().find(|line| line.contains("tool-approval-request")).map(str::to_owned);
    assert_eq!(request(&second), request(&first), "{second}");
    assert!(second.contains("tool-input-available"), "a client knows only the calls of its message: {second}");
    assert!(third.contains("paid 7 to DE02"), "{third}");
    let asking = |message: &Value| message["parts"].to_string().contains("approval-requested");
    let list = loaded.as_array().unwrap();
    assert_eq!(list.iter().map(asking).collect::<Vec<_>>(), [false, false, false, true], "{loaded}");
}

#[tokio::test]
async fn question_says_whether_the_caller_may_answer_it() {
    let shop = Shop::of_four_eyes();
    let ann = shop.token(Some("ann"), &ALL).await;
    let powerless = shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await;
    let service = shop.token(None, &ALL).await;
    let first = chat(&shop, &ann, said("pay")).await;
    let asked = first.lines().rfind(|line| line.contains("tool-approval-request")).unwrap();
    let asked: Value = serde_json::from_str(asked).unwrap();
    let path = format!("/api/v1/runs/chat-0/calls/{}/decision", asked["approvalId"].as_str().unwrap());

    let starter = messages(&shop, &ann, "chat").await;
    let without = messages(&shop, &powerless, "chat").await;
    let headers = [("idempotency-key", "elsewhere")];
    let decided = shop.send_with(&service, "POST", &path, Some(json!({ "approve": true })), &headers).await;
    let closed = messages(&shop, &ann, "chat").await;

    let descriptor = |messages: &Value| {
        let parts = messages[1]["parts"].as_array().unwrap();
        parts.iter().find_map(|part| part.pointer("/approval/descriptor").cloned()).unwrap()
    };
    assert_eq!(descriptor(&starter)["answerable"], false);
    assert!(descriptor(&starter)["refused"].as_str().unwrap().contains("start"), "{starter}");
    assert!(descriptor(&without)["refused"].as_str().unwrap().contains("`decide`"), "{without}");
    assert_eq!(asked["approvalDescriptor"], descriptor(&starter), "{first}");
    assert_eq!(decided.status(), StatusCode::OK);
    assert!(!closed.to_string().contains("descriptor"), "a decided approval has no descriptor: {closed}");
}

#[tokio::test]
async fn answer_to_an_unknown_question_is_an_error_and_one_to_an_earlier_run_is_known() {
    let shop = Shop::open(&Bridges::builder().build(), &["none"]);
    let ann = shop.token(Some("ann"), &ALL).await;
    let first = chat(&shop, &ann, said("pay")).await;
    chat(&shop, &ann, answered(&first, true)).await;
    // The last run has more events than the first one had when its approval was decided.
    let pay = json!({ "id": "m-again", "role": "user", "parts": [{ "type": "text", "text": "pay" }] });
    let last = chat(&shop, &ann, json!({ "messages": [pay] })).await;
    chat(&shop, &ann, answered(&last, true)).await;
    let part = json!({ "type": "dynamic-tool", "approval": { "id": "nothing", "approved": true } });

    let same = chat(&shop, &ann, answered(&first, true)).await;
    let other = chat(&shop, &ann, answered(&first, false)).await;
    let unknown = chat(&shop, &ann, json!({ "messages": [{ "id": "a", "role": "assistant", "parts": [part] }] })).await;

    assert!(!same.contains("\"error\""), "{same}");
    assert!(other.contains("it was already approved by ann"), "{other}");
    assert!(!other.contains("Done.") && !other.contains("tool-"), "nothing of the last run is sent again: {other}");
    let [.., error, done] = unknown.lines().collect::<Vec<_>>()[..] else { panic!("{unknown}") };
    assert!(
        error.contains(r#""type":"error""#) && error.contains("no item `nothing`") && done == "[DONE]",
        "{unknown}"
    );
}

#[tokio::test]
async fn request_with_too_many_answers_is_refused_before_one_is_read() {
    let shop = Shop::open(&Bridges::builder().build(), &["none"]);
    let ann = shop.token(Some("ann"), &ALL).await;
    chat(&shop, &ann, said("pay")).await;
    let decided = |count: u32| {
        let part = |id| json!({ "type": "dynamic-tool", "state": "approval-responded", "approval": { "id": format!("{id}"), "approved": true } });
        let parts: Vec<_> = (0..count).map(part).collect();
        json!({ "id": "chat", "messages": [{ "id": "a", "role": "assistant", "parts": parts }] })
    };

    let (status, refused) = shop.send(&ann, "POST", "/api/v1/ai-sdk/Refund", Some(decided(257))).await;
    let unknown = chat(&shop, &ann, decided(256)).await;
    let resume: Vec<_> =
        (0..257).map(|id| json!({ "interruptId": format!("{id}"), "status": "resolved", "payload": true })).collect();
    let input = input("chat", json!({ "resume": resume }));
    let (of_ag_ui, same) = shop.send(&ann, "POST", "/api/v1/ag-ui/Refund", Some(input)).await;

    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.contains("257 answers to questions; send at most 256"), "{refused}");
    assert!(unknown.contains("no item `255`"), "{unknown}");
    assert_eq!((of_ag_ui, same), (status, refused));
    let (_, open) = shop.send(&ann, "GET", "/api/v1/ai-sdk/Refund/chat", None).await;
    assert!(open.contains("approval-requested"), "{open}");
}

#[tokio::test]
async fn message_with_many_ended_calls_is_answered() {
    let shop = Shop::open(&Bridges::builder().build(), &["none"]);
    let ann = shop.token(Some("ann"), &ALL).await;
    let first = chat(&shop, &ann, said("pay")).await;
    let mut request = answered(&first, true);
    let ended =
        json!({ "type": "dynamic-tool", "state": "output-available", "approval": { "id": "ended", "approved": true } });
    request["messages"][0]["parts"].as_array_mut().unwrap().extend(std::iter::repeat_n(ended, 300));

    let second = chat(&shop, &ann, request).await;

    assert!(second.contains("paid 7 to DE02") && !second.contains("no item"), "{second}");
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

/// Opens a shop whose brain asks for a name, and returns the token of a user, and the id of the question.
async fn asking(brain: Brain<(), String>, options: Value) -> (Shop, String, String) {
    let model = ScriptedModel::from_fn(|request| match request.messages.messages().pop() {
        Some(Message::User { text, .. }) if text == "ask" => Reply::call("ask", json!({})),
        Some(Message::User { text, .. }) => Reply::text(format!("You said {text}.")),
        _ => Reply::text("Hello."),
    });
    let shop = Shop::of(Runner::new(model).store(MemoryStore::new()).brain(brain), &Bridges::builder().build(), &[]);
    let ann = shop.token(Some("ann"), &ALL).await;
    let asked = chat(&shop, &ann, options).await;
    let wait: Value = serde_json::from_str(asked.lines().find(|line| line.contains("data-wait")).unwrap()).unwrap();
    (shop, ann, wait["id"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn message_beside_answers_in_the_body_is_read_with_them() {
    let brain = brain("Refund").state(String::new()).r#loop("Chat", |cx| {
        cx.system("Talk.").tool("ask", |t| {
            t.description("Asks").execute(async |_: NoArgs, cx| Ok(cx.result("asked").wait_for_reply::<Name>("Who?")))
        })
    });
    let (shop, ann, wait) = asking(brain.build(), said("ask")).await;
    // As in a page that keeps its answers in the body of its transport.
    let request = |text: &str| {
        let mut request = said(text);
        request["answers"] = json!({ &wait: { "name": "Tom" } });
        request
    };

    let first = chat(&shop, &ann, request("thanks")).await;
    let more = chat(&shop, &ann, request("more")).await;

    assert!(first.contains("You said thanks.") && !first.contains("errorText"), "{first}");
    assert!(more.contains("You said more.") && !more.contains("errorText"), "{more}");
}

#[tokio::test]
async fn text_answers_a_question_beside_older_answers_in_the_body() {
    let brain = brain("Refund").state(String::new());
    let brain = brain.ask_person("Ask", |_| form::<String>("Who?".to_owned()), |_, answer| answer);
    let (shop, ann, _) = asking(brain.build(), json!({ "options": {} })).await;
    let mut tom = said("Tom");
    tom["answers"] = json!({ "older": { "name": "Tim" } });

    let answered = chat(&shop, &ann, tom).await;

    assert!(answered.contains(r#""status":"answered""#), "{answered}");
}

#[tokio::test]
async fn answer_counts_if_its_run_takes_no_message() {
    let brain = brain("Refund").state(String::new()).ask_person(
        "Ask",
        |_| form::<Name>("Who?".to_owned()),
        |_, answer| answer.name,
    );
    let (shop, ann, wait) = asking(brain.build(), json!({ "options": {} })).await;
    let mut both = said("thanks");
    both["answers"] = json!({ &wait: { "name": "Tom" } });

    let first = chat(&shop, &ann, both).await;

    assert!(first.contains(r#""status":"answered""#), "{first}");
    assert!(first.lines().rev().nth(1).unwrap().contains("takes no message now"), "{first}");
}
