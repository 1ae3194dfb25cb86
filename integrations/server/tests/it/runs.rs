//! Starting, reading, signalling and forking runs.

use std::sync::Arc;

use axum::http::StatusCode;
use positronic_core::model::cassette::Cassette;
use positronic_core::prelude::*;
use positronic_core::record::{RunId, Seq};
use positronic_core::store::MemoryStore;
use positronic_server::{Options, Scope};
use serde_json::{Value, json};

use crate::support::{Answer, Order, Shop, refund, refunding, request};

async fn keyed(shop: &Shop, token: &str, path: &str, key: &str, body: Value) -> Answer {
    let mut request = request(token, "POST", path, Some(body));
    request.headers_mut().insert("idempotency-key", key.parse().unwrap());
    shop.send(request).await
}

/// Approves the call of a run, which then ends.
async fn approve(shop: &Shop, token: &str, run: &RunId, id: &str) {
    shop.post(token, &format!("/api/v1/runs/{run}/calls/{id}/decision"), json!({ "approve": true })).await;
    shop.end(run).await;
}

fn order(number: u32) -> Value {
    json!({ "brain": "Refund", "options": { "number": number } })
}

#[tokio::test]
async fn repeated_start_returns_the_same_run_and_another_one_under_its_key_is_refused() {
    let shop = Shop::new();
    let (ann, ben) = (shop.token(Some("ann"), &[Scope::Run]).await, shop.token(Some("ben"), &[Scope::Run]).await);

    let first = keyed(&shop, &ann, "/api/v1/runs", "order-7", order(7)).await;
    let again = keyed(&shop, &ann, "/api/v1/runs", "order-7", order(7)).await;
    let other = keyed(&shop, &ann, "/api/v1/runs", "order-7", order(8)).await;
    let foreign = keyed(&shop, &ben, "/api/v1/runs", "order-7", order(8)).await;

    assert_eq!(first.status, StatusCode::CREATED);
    assert_eq!(first.header("idempotency-replayed"), "");
    let id = first.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(first.header("location"), format!("runs/{id}"));
    assert_eq!((again.json()["id"].as_str(), again.header("idempotency-replayed")), (Some(&*id), "true"));
    assert_eq!(other.problem(), "key-reused");
    assert_eq!(foreign.status, StatusCode::CREATED);
    assert_ne!(foreign.json()["id"], id);
}

#[tokio::test]
async fn start_checks_the_brain_and_its_options() {
    let shop = Shop::new();
    let token = shop.token(None, &[Scope::Run]).await;
    let start = async |body| shop.post(&token, "/api/v1/runs", body).await;

    assert_eq!(start(json!({ "brain": "Other" })).await.problem(), "unknown-brain");
    let misfit = start(json!({ "brain": "Refund", "options": { "number": "seven" } })).await;
    assert_eq!(misfit.problem(), "options-invalid");
    assert_eq!(misfit.json()["errors"][0]["pointer"], "/options");
    let unknown = start(json!({ "brain": "Refund", "options": { "number": 7, "extra": 8 } })).await;
    assert_eq!(unknown.problem(), "options-invalid", "a misspelt option would start a run with a default");
    let detail = "unknown option `extra`; the options are number";
    assert_eq!(unknown.json()["errors"], json!([{ "pointer": "/options/extra", "detail": detail }]));
    for (field, name, reason) in [
        ("user", "a\nb", "the user of the run contains a line break or another control character"),
        ("user", " ", "the user of the run is empty"),
        (
            "conversation",
            "x".repeat(181).as_str(),
            "the conversation of the run has 181 characters; the maximum is 180",
        ),
    ] {
        let mut body = order(7);
        body[field] = name.into();
        let refused = start(body).await;
        assert_eq!(refused.problem(), "unprocessable", "{refused:?}");
        let place = json!([{ "pointer": format!("/{field}"), "detail": reason }]);
        assert_eq!(refused.json()["errors"], place);
    }
    let runs = shop.client.store().runs(&positronic_core::store::RunFilter::default()).await.unwrap();
    assert!(runs.is_empty());

    let mut body = order(7);
    body["conversation"] = "é/x?y#z".into();
    assert_eq!(start(body).await.header("location"), "runs/%C3%A9%2Fx%3Fy%23z-0");
}

#[tokio::test]
async fn run_shows_what_waits_and_what_the_caller_may_do() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await;
    let boss = shop.token(None, &Scope::ALL).await;
    let (run, id) = shop.waiting_run(&ann, 7).await;
    let path = format!("/api/v1/runs/{run}");

    let seen = shop.get(&ann, &path).await;
    let detail = seen.json();

    assert_eq!(detail["status"], "waiting");
    assert_eq!(detail["options"], json!({ "number": 7 }));
    assert_eq!(detail["brain_known"], true);
    let item = &detail["pending"][0];
    assert_eq!((&item["id"], &item["kind"], &item["tool"]), (&json!(id), &json!("approval"), &json!("refund")));
    assert_eq!(item["arguments_schema"]["properties"]["amount"]["type"], "integer", "{item}");
    assert_eq!(item["message"], "it costs money");
    assert_eq!(item["allowed"]["reason"], "the caller lacks the scope `decide`");
    assert_eq!(detail["actions"]["pause"]["reason"], "the caller lacks the scope `operate`");
    let actions = shop.get(&boss, &path).await.json()["actions"].clone();
    assert_eq!(actions["pause"], json!({ "allowed": true }));
    assert_eq!(actions["resume"]["allowed"], false);
    let mut known = request(&ann, "GET", &path, None);
    known.headers_mut().insert("if-none-match", seen.header("etag").parse().unwrap());
    assert_eq!(shop.send(known).await.status, StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn state_and_requests_are_read_as_of_an_event() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, id) = shop.waiting_run(&token, 7).await;
    approve(&shop, &token, &run, &id).await;
    let path = format!("/api/v1/runs/{run}");

    let early = shop.get(&token, &format!("{path}/state?at=1")).await;
    assert_eq!(early.json()["at"], 1);
    assert_eq!(early.header("cache-control"), "private, max-age=31536000, immutable");
    assert_eq!(shop.get(&token, &format!("{path}/state?at=999")).await.problem(), "beyond-head");

    let requests = shop.get(&token, &format!("{path}/requests")).await.json();
    let seqs: Vec<_> = requests["items"].as_array().unwrap().iter().map(|row| row["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs.len(), 2, "{requests}");
    let second = shop.get(&token, &format!("{path}/requests/{}", seqs[1])).await.json();
    assert_eq!(second["previous"], seqs[0]);
    assert_eq!((&second["shared"], &second["same_head"]), (&json!(1), &json!(true)), "{second}");
    assert_eq!(second["request"]["messages"].as_array().unwrap().len(), 3);
    assert!(!second["curl"].as_str().unwrap().contains("sk-"));
    assert_eq!(shop.get(&token, &format!("{path}/requests/0")).await.problem(), "beyond-head");
    assert_eq!(shop.get(&token, &format!("{path}/requests/x")).await.problem(), "invalid-path");
}

#[tokio::test]
async fn lines_of_the_requests_are_a_cassette_that_plays_the_run_again() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, id) = shop.waiting_run(&token, 7).await;
    approve(&shop, &token, &run, &id).await;
    let path = format!("/api/v1/runs/{run}/requests");
    let mut lines = vec![json!({ "cassette": 1 }).to_string()];
    for row in shop.get(&token, &path).await.json()["items"].as_array().unwrap() {
        let request = shop.get(&token, &format!("{path}/{}", row["seq"])).await.json();
        lines.push(request["cassette"].as_str().unwrap().to_owned());
    }

    let cassette = Arc::new(Cassette::replay(&lines.join("\n")).unwrap());
    let runner = Runner::new(Arc::clone(&cassette)).store(MemoryStore::new()).brain(refund());
    let played = Shop::of(runner, |runner| Options::builder().brains(runner).build());
    let own = played.token(None, &Scope::ALL).await;
    let (again, id) = played.waiting_run(&own, 7).await;
    approve(&played, &own, &again, &id).await;

    assert_eq!(cassette.unused(), Vec::<String>::new());
    let last = async |shop: &Shop, token: &str, run: &RunId| {
        let path = format!("/api/v1/runs/{run}/requests");
        let rows = shop.get(token, &path).await.json();
        let seq = &rows["items"][1]["seq"];
        shop.get(token, &format!("{path}/{seq}")).await.json()["request"].clone()
    };
    assert_eq!(last(&played, &own, &again).await, last(&shop, &token, &run).await);
}

#[tokio::test]
async fn signals_pause_resume_and_cancel_and_are_accepted_once_per_key() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, _) = shop.waiting_run(&token, 7).await;
    let path = format!("/api/v1/runs/{run}/signals");
    let cancel = json!({ "type": "cancel", "reason": "too late" });

    let paused = keyed(&shop, &token, &path, "k1", json!({ "type": "pause" })).await;
    let again = keyed(&shop, &token, &path, "k1", json!({ "type": "pause" })).await;
    let reused = keyed(&shop, &token, &path, "k1", cancel.clone()).await;
    let twice = shop.post(&token, &path, json!({ "type": "pause" })).await;
    let resumed = shop.post(&token, &path, json!({ "type": "resume" })).await;
    let cancelled = shop.post(&token, &path, cancel.clone()).await;
    let late = shop.post(&token, &path, cancel).await;

    assert_eq!(paused.json(), again.json());
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(reused.problem(), "key-reused");
    assert_eq!(twice.problem(), "not-waiting");
    assert_eq!((resumed.status, cancelled.status), (StatusCode::OK, StatusCode::OK), "{resumed:?}");
    assert_eq!(late.problem(), "run-closed");
    let events = shop.client.events(&run, Seq(0)).await.unwrap();
    let actor = events.iter().find_map(|event| match &event.kind {
        positronic_core::record::EventKind::BrainCancelled { actor, .. } => Some(actor.clone()),
        _ => None,
    });
    let actor = actor.unwrap();
    assert_eq!((actor.by.as_deref(), actor.channel.as_deref()), (Some("service"), Some("http")));
}

#[tokio::test]
async fn fork_lists_what_runs_again_and_shares_the_past() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, id) = shop.waiting_run(&token, 7).await;
    approve(&shop, &token, &run, &id).await;
    let path = format!("/api/v1/runs/{run}");

    let preview = shop.get(&token, &format!("{path}/fork?from=Chat%2F0.0")).await.json();
    let effects: Vec<_> = preview["rerun"].as_array().unwrap().iter().map(|effect| effect["kind"].clone()).collect();
    assert_eq!(effects, [json!("tool"), json!("model")], "{preview}");
    let body = json!({ "at": preview["at"], "options": { "number": 8 } });
    let forked = keyed(&shop, &token, &format!("{path}/fork"), "f1", body.clone()).await;
    let again = keyed(&shop, &token, &format!("{path}/fork"), "f1", body).await;
    let reused = keyed(&shop, &token, &format!("{path}/fork"), "f1", json!({ "at": 0 })).await;
    let rerun = shop.post(&token, &format!("{path}/rerun"), json!({ "from": "Chat" })).await;
    let nowhere = shop.post(&token, &format!("{path}/rerun"), json!({ "from": "Elsewhere" })).await;
    for (action, body, detail) in [
        ("rerun", json!({ "from": "" }), "`from` is empty"),
        ("rerun", json!({ "from": "Chat", "model": "" }), "the name of the model is empty"),
        ("fork", json!({ "at": 1, "model": " " }), "the name of the model is empty"),
        ("fork", json!({ "at": 1, "model": "a\nb" }), "the name of the model contains a line break"),
    ] {
        let refused = shop.post(&token, &format!("{path}/{action}"), body).await;
        assert_eq!(refused.problem(), "unprocessable", "{action}: {refused:?}");
        assert!(refused.json()["detail"].as_str().unwrap().starts_with(detail), "{refused:?}");
    }
    assert_eq!(shop.get(&token, &format!("{path}/fork?from=")).await.problem(), "unprocessable");

    assert_eq!(forked.status, StatusCode::CREATED, "{forked:?}");
    let new = RunId::new(forked.json()["id"].as_str().unwrap());
    assert_eq!(forked.header("location"), format!("../{new}"));
    assert_eq!(forked.json()["forked_from"], json!({ "run": run, "seq": preview["at"] }));
    assert_eq!(again.json()["id"], forked.json()["id"]);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(reused.problem(), "key-reused");
    assert_eq!(rerun.status, StatusCode::CREATED, "{rerun:?}");
    assert_eq!(nowhere.problem(), "unprocessable");
    let forks = shop.get(&token, &path).await.json()["forks"].clone();
    assert_eq!(forks.as_array().unwrap().len(), 2, "{forks}");
    assert!(
        forks.as_array().unwrap().iter().any(|fork| fork["id"] == forked.json()["id"] && fork["status"].is_string())
    );
    let diff = shop.get(&token, &format!("/api/v1/diff?a={run}&b={new}")).await.json();
    assert_eq!(diff["diff"]["given"][1]["options"], json!({ "number": 8 }), "{diff}");
    let rows = diff["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["kind"] == "call" && row["same"] == false), "{rows:?}");
    assert!(rows.iter().any(|row| row["kind"] == "message" && row["same"] == true), "{rows:?}");
}

#[tokio::test]
async fn message_to_a_conversation_is_said_once_per_key() {
    let shop = Shop::new();
    let token = shop.token(Some("ann"), &[Scope::Read, Scope::Run, Scope::Decide]).await;
    let path = "/api/v1/conversations/chat-1/messages";
    let said = json!({ "brain": "Refund", "options": { "number": 1 }, "text": "Please." });

    let first = keyed(&shop, &token, path, "m1", said.clone()).await;
    let again = keyed(&shop, &token, path, "m1", said).await;
    let reused =
        keyed(&shop, &token, path, "m1", json!({ "brain": "Refund", "options": { "number": 1 }, "text": "No." })).await;

    assert_eq!(first.status, StatusCode::CREATED, "{first:?}");
    assert_eq!(again.json()["id"], first.json()["id"]);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(reused.problem(), "key-reused");
    let conversation = shop.get(&token, "/api/v1/conversations/chat-1").await.json();
    assert_eq!(conversation["runs"].as_array().unwrap().len(), 1);
    assert_eq!(conversation["user"], "ann");
}

#[tokio::test]
async fn attached_file_is_downloaded_and_runs_nothing_in_a_browser() {
    use base64::Engine as _;

    let shop = Shop::new();
    let token = shop.token(None, &[Scope::Read, Scope::Run]).await;
    let page = "<script>alert(1)</script>";
    let base64 = base64::engine::general_purpose::STANDARD.encode(page);
    let files = json!([{ "name": "a b.html", "media_type": "text/html", "base64": base64 }]);
    let said = json!({ "brain": "Refund", "options": { "number": 1 }, "text": "See.", "files": files });

    let sent = shop.post(&token, "/api/v1/conversations/chat-1/messages", said).await;
    let run = sent.json()["id"].as_str().unwrap().to_owned();

    let listed = shop.get(&token, &format!("/api/v1/runs/{run}/files")).await.json();
    let hash = listed["items"][0]["sha256"].as_str().unwrap();
    let file = shop.get(&token, &format!("/api/v1/runs/{run}/files/{hash}")).await;
    assert_eq!(file.text, page);
    assert_eq!(file.header("content-disposition"), "attachment; filename*=UTF-8''a%20b.html");
    assert_eq!(file.header("content-security-policy"), "default-src 'none'; sandbox");
    let other = shop.waiting_run(&token, 2).await.0;
    assert_eq!(shop.get(&token, &format!("/api/v1/runs/{other}/files/{hash}")).await.problem(), "not-found");
    let stolen = json!([{ "name": "x", "media_type": "text/html", "uri": format!("blob:{hash}") }]);
    let said = json!({ "brain": "Refund", "options": { "number": 1 }, "text": "See.", "files": stolen });
    assert_eq!(shop.post(&token, "/api/v1/conversations/chat-2/messages", said).await.problem(), "invalid-body");
}

#[tokio::test]
async fn answers_have_the_fields_that_the_document_requires() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, id) = shop.waiting_run(&token, 7).await;
    approve(&shop, &token, &run, &id).await;
    let (other, asked) = shop.waiting_run(&token, 8).await;
    let mut document = positronic_server::openapi();
    let paths = document["paths"].take();
    let places = [
        ("/api/v1/runs", "/api/v1/runs".to_owned()),
        ("/api/v1/runs/counts", "/api/v1/runs/counts".to_owned()),
        ("/api/v1/runs/sums", "/api/v1/runs/sums".to_owned()),
        ("/api/v1/runs/{run}", format!("/api/v1/runs/{run}")),
        ("/api/v1/runs/{run}", format!("/api/v1/runs/{other}")),
        ("/api/v1/runs/{run}/events", format!("/api/v1/runs/{run}/events")),
        ("/api/v1/runs/{run}/timeline", format!("/api/v1/runs/{run}/timeline")),
        ("/api/v1/runs/{run}/state", format!("/api/v1/runs/{run}/state?at=2")),
        ("/api/v1/runs/{run}/requests", format!("/api/v1/runs/{run}/requests")),
        ("/api/v1/runs/{run}/requests/{seq}", format!("/api/v1/runs/{run}/requests/4")),
        ("/api/v1/runs/{run}/files", format!("/api/v1/runs/{run}/files")),
        ("/api/v1/runs/{run}/fork", format!("/api/v1/runs/{run}/fork?at=3")),
        ("/api/v1/diff", format!("/api/v1/diff?a={run}&b={other}")),
        ("/api/v1/pending", "/api/v1/pending".to_owned()),
        ("/api/v1/runs/{run}/calls/{id}", format!("/api/v1/runs/{other}/calls/{asked}?context=3")),
        ("/api/v1/conversations", "/api/v1/conversations".to_owned()),
        ("/api/v1/brains", "/api/v1/brains".to_owned()),
        ("/api/v1/brains/{title}", "/api/v1/brains/Refund".to_owned()),
        ("/api/v1/session", "/api/v1/session".to_owned()),
    ];

    for (listed, at) in places {
        let answer = shop.get(&token, &at).await;
        assert_eq!(answer.status, StatusCode::OK, "{at}: {answer:?}");
        let schema = &paths[listed]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        let mut schema = schema.clone();
        schema["components"] = document["components"].clone();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<_> = validator.iter_errors(&answer.json()).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{at}: {errors:?}");
        // No field is there twice.
        let fields = serde_json::from_str::<Fields>(&answer.text).unwrap();
        assert!(fields.0.is_none(), "{at}: `{}` is there twice", fields.0.unwrap_or_default());
    }
}

/// Finds a field of the outermost object that is there twice, which `Value` hides.
struct Fields(Option<String>);

impl<'de> serde::Deserialize<'de> for Fields {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> serde::de::Visitor<'de> for Visit {
            type Value = Fields;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let (mut seen, mut twice) = (std::collections::BTreeSet::new(), None);
                while let Some((name, _)) = map.next_entry::<String, Value>()? {
                    if !seen.insert(name.clone()) {
                        twice = Some(name);
                    }
                }
                Ok(Fields(twice))
            }
        }
        deserializer.deserialize_map(Visit)
    }
}

#[tokio::test]
async fn message_in_the_name_of_a_user_does_not_reach_the_conversation_of_another_one() {
    let shop = Shop::new();
    let service = shop.token(None, &Scope::ALL).await;
    let said = |user: &str| json!({ "brain": "Refund", "options": { "number": 1 }, "text": "Please.", "user": user });
    let path = "/api/v1/conversations/ticket-7/messages";
    assert_eq!(shop.post(&service, path, said("ann")).await.status, StatusCode::CREATED);

    assert_eq!(shop.post(&service, path, said("ben")).await.problem(), "not-found");
    assert_eq!(shop.post(&service, path, said("ann")).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn conversation_cannot_take_the_id_of_a_run() {
    let shop = Shop::new();
    let (ann, ben) = (shop.token(Some("ann"), &Scope::ALL).await, shop.token(Some("ben"), &Scope::ALL).await);
    let order = json!({ "brain": "Refund", "options": { "number": 1 } });
    let run = shop.post(&ann, "/api/v1/runs", order.clone()).await.json()["id"].as_str().unwrap().to_owned();
    let message = json!({ "brain": "Refund", "options": { "number": 1 }, "text": "Please." });
    let path = format!("/api/v1/conversations/{run}/messages");
    let mut without_message = order;
    without_message["conversation"] = json!(run);

    for (token, problem) in [(&ben, "not-found"), (&ann, "unprocessable")] {
        assert_eq!(shop.post(token, &path, message.clone()).await.problem(), problem);
        assert_eq!(shop.post(token, "/api/v1/runs", without_message.clone()).await.problem(), problem);
    }

    assert_eq!(shop.client.conversations().runs(&run).await.unwrap().len(), 0);
    assert_eq!(shop.get(&ann, &format!("/api/v1/runs/{run}")).await.status, StatusCode::OK);
}

/// A shop whose brain returns the double of its order's number.
fn doubling() -> Shop {
    let double = brain("Double").options::<Order>().step("Double", async |cx| Ok(cx.options.number * 2));
    Shop::with(refunding(), double, |runner| Options::builder().brains(runner).build())
}

#[tokio::test]
async fn start_with_wait_answers_with_the_result() {
    let shop = doubling();
    let token = shop.token(None, &[Scope::Read, Scope::Run]).await;
    let order = json!({ "brain": "Double", "options": { "number": 21 } });

    let ended = keyed(&shop, &token, "/api/v1/runs?wait=25", "order-21", order.clone()).await;
    let again = keyed(&shop, &token, "/api/v1/runs", "order-21", order).await;
    let seen = shop.get(&token, &format!("/api/v1/runs/{}", ended.json()["id"].as_str().unwrap())).await;

    assert_eq!(ended.status, StatusCode::CREATED);
    for answer in [&ended, &again, &seen] {
        assert_eq!(
            (&answer.json()["status"], &answer.json()["result"]),
            (&json!("completed"), &json!(42)),
            "{answer:?}"
        );
    }
    assert_eq!(again.header("idempotency-replayed"), "true");
}

#[tokio::test]
async fn wait_for_a_run_ends_when_the_run_waits_for_a_person_and_when_it_has_ended() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;

    let asking = shop.post(&token, "/api/v1/runs?wait=25", order(7)).await.json();
    assert_eq!((&asking["status"], &asking["pending"]), (&json!("waiting"), &json!(1)), "{asking}");
    assert_eq!(asking.get("result"), None, "{asking}");

    let run = RunId::new(asking["id"].as_str().unwrap());
    let path = format!("/api/v1/runs/{run}");
    let id = shop.question(&token, &run).await;
    shop.post(&token, &format!("{path}/calls/{id}/decision"), json!({ "approve": true })).await;
    let ended = shop.get(&token, &format!("{path}?wait=25")).await.json();
    assert_eq!((&ended["status"], ended.get("result")), (&json!("completed"), Some(&Value::Null)), "{ended}");

    let long = shop.get(&token, &format!("{path}?wait=26")).await;
    assert_eq!(long.problem(), "invalid-query");
    assert_eq!(long.json()["detail"], "`wait=26`: expected 0 to 25 seconds; to wait longer, ask again");
}

/// A brain whose step never ends.
fn endless() -> Brain<(), ()> {
    brain("Endless").step("Wait", async |_| std::future::pending::<Result<()>>().await).build()
}

#[tokio::test(start_paused = true)]
async fn wait_ends_after_its_seconds_and_counts_as_a_long_answer() {
    let shop = Shop::with(refunding(), endless(), |runner| Options::builder().brains(runner).max_streams(1).build());
    let token = shop.token(None, &Scope::ALL).await;
    let begun = tokio::time::Instant::now();

    let slow = shop.post(&token, "/api/v1/runs?wait=20", json!({ "brain": "Endless" }));
    let second = async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        shop.post(&token, "/api/v1/runs?wait=20", json!({ "brain": "Endless" })).await
    };
    let (slow, second) = tokio::join!(slow, second);

    assert_eq!((slow.status, &slow.json()["status"]), (StatusCode::CREATED, &json!("running")));
    assert_eq!(begun.elapsed().as_secs(), 20);
    assert_eq!(second.problem(), "too-many-streams");
    let runs = shop.client.store().runs(&positronic_core::store::RunFilter::default()).await.unwrap();
    assert_eq!(runs.len(), 1, "the refused start has started nothing");
}
