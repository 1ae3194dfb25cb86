//! Decisions of people.

use axum::http::StatusCode;
use positronic_core::dsl::Wait;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{ModelRequest, RunId, Status};
use positronic_server::{Options, Scope};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::support::{Shop, request};

#[tokio::test]
async fn approval_continues_the_run_in_the_name_of_the_caller() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run, Scope::Decide]).await;
    let (run, id) = shop.waiting_run(&ann, 7).await;
    let path = format!("/api/v1/runs/{run}/calls/{id}/decision");

    let decided = shop.post(&ann, &path, json!({ "approve": true, "arguments": { "amount": 50 } })).await;

    assert_eq!(decided.status, StatusCode::OK, "{decided:?}");
    let decision = decided.json()["decision"].clone();
    assert_eq!(decision["verdict"], "approved");
    assert_eq!((&decision["by"], &decision["channel"]), (&json!("ann"), &json!("http")));
    assert_eq!(decision["arguments"], json!({ "amount": 50 }));
    shop.end(&run).await;
    let row = shop.client.store().run(&run).await.unwrap();
    assert_eq!(row.status, Status::Completed);
    let log = shop.client.events(&run, positronic_core::record::Seq(0)).await.unwrap();
    assert!(log.iter().any(|event| event.to_json().unwrap().contains("refunded 50")));
}

#[tokio::test]
async fn lost_race_tells_what_was_decided_by_whom_and_when() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run, Scope::Decide]).await;
    let boss = shop.token(Some("boss"), &Scope::ALL).await;
    let (run, id) = shop.waiting_run(&ann, 7).await;
    let path = format!("/api/v1/runs/{run}/calls/{id}/decision");
    shop.post(&boss, &path, json!({ "reject": true, "reason": "too much" })).await;

    let early = shop.post(&ann, &path, json!({ "approve": true })).await;
    shop.end(&run).await;
    let late = shop.post(&ann, &path, json!({ "approve": true })).await;

    for answer in [early, late] {
        assert_eq!(answer.problem(), "already-decided");
        let decision = answer.json()["decision"].clone();
        assert_eq!((&decision["verdict"], &decision["by"]), (&json!("rejected"), &json!("boss")), "{decision}");
        assert_eq!(decision["reason"], "too much");
        assert!(decision["at"].as_str().unwrap().ends_with('Z'), "{decision}");
    }
}

#[tokio::test]
async fn what_became_of_an_item_is_read_without_a_decision() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await;
    let boss = shop.token(Some("boss"), &Scope::ALL).await;
    let (run, id) = shop.waiting_run(&ann, 7).await;
    let path = format!("/api/v1/runs/{run}/calls/{id}/decision");

    let open = shop.get(&ann, &path).await;
    shop.post(&boss, &path, json!({ "reject": true, "reason": "too much" })).await;
    let closed = shop.get(&ann, &path).await;
    let unknown = shop.get(&ann, &format!("/api/v1/runs/{run}/calls/0123/decision")).await;

    assert_eq!(open.json(), json!({ "pending": true }));
    let closed = closed.json();
    assert_eq!(closed["pending"], false);
    let decision = &closed["problem"]["decision"];
    assert_eq!((&decision["verdict"], &decision["by"]), (&json!("rejected"), &json!("boss")), "{closed}");
    assert_eq!(decision["reason"], "too much");
    assert_eq!(unknown.problem(), "unknown-call");
}

#[tokio::test]
async fn concurrent_decisions_are_accepted_once() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, id) = shop.waiting_run(&token, 7).await;
    let path = format!("/api/v1/runs/{run}/calls/{id}/decision");

    let decide = |verdict: &'static str| shop.post(&token, &path, json!({ verdict: true }));
    let (one, other, third) = tokio::join!(decide("approve"), decide("reject"), decide("approve"));

    let mut statuses = [one.status, other.status, third.status].map(|status| status.as_u16());
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409]);
}

#[tokio::test]
async fn repeated_decision_gets_the_same_answer() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, id) = shop.waiting_run(&token, 7).await;
    let decide = |body| {
        let mut request = request(&token, "POST", &format!("/api/v1/runs/{run}/calls/{id}/decision"), Some(body));
        request.headers_mut().insert("idempotency-key", "click-1".parse().unwrap());
        shop.send(request)
    };

    let first = decide(json!({ "approve": true })).await;
    shop.end(&run).await;
    let again = decide(json!({ "approve": true })).await;
    let other = decide(json!({ "reject": true })).await;

    assert_eq!(first.json(), again.json());
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(other.problem(), "key-reused");
}

#[tokio::test]
async fn invalid_arguments_name_their_places_and_change_nothing() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, id) = shop.waiting_run(&token, 7).await;
    let path = format!("/api/v1/runs/{run}/calls/{id}/decision");

    let misfit = shop.post(&token, &path, json!({ "approve": true, "arguments": { "amount": "all" } })).await;
    let lacking = shop.post(&token, &path, json!({ "approve": true, "arguments": {} })).await;
    let both = shop.post(&token, &path, json!({ "approve": true, "reject": true })).await;
    let none = shop.post(&token, &path, json!({})).await;
    let reply = shop.post(&token, &path, json!({ "reply": "yes" })).await;
    let unknown = shop.post(&token, &format!("/api/v1/runs/{run}/calls/x/decision"), json!({ "approve": true })).await;

    assert_eq!(misfit.problem(), "arguments-invalid");
    assert_eq!(misfit.json()["errors"][0]["pointer"], "/amount", "{misfit:?}");
    assert!(misfit.json()["detail"].is_string(), "{misfit:?}");
    assert!(!misfit.json()["detail"].to_string().contains("type"), "the place alone says what is wrong: {misfit:?}");
    assert_eq!(lacking.json()["errors"], json!([{ "pointer": "/amount", "detail": "is required" }]));
    assert_eq!((both.problem(), none.problem()), ("invalid-body".to_owned(), "invalid-body".to_owned()));
    assert_eq!(reply.problem(), "unprocessable");
    assert_eq!(unknown.problem(), "unknown-call");
    assert_eq!(shop.client.store().run(&run).await.unwrap().status, Status::Waiting);
}

#[tokio::test]
async fn several_decisions_have_each_an_outcome() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (one, first) = shop.waiting_run(&token, 1).await;
    let (other, second) = shop.waiting_run(&token, 2).await;
    let decisions = json!([
        { "run": one, "id": first, "approve": true },
        { "run": one, "id": "x", "approve": true },
        { "run": "none", "id": second, "approve": true },
        { "run": other, "id": second, "reject": true },
    ]);

    let outcomes = shop.post(&token, "/api/v1/decisions", decisions).await.json();

    let items = outcomes["items"].as_array().unwrap();
    let statuses: Vec<_> = items.iter().map(|item| item["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [200, 404, 404, 200], "{outcomes}");
    assert_eq!(items[1]["problem"]["type"], "/problems/unknown-call");
    shop.end(&one).await;
    shop.end(&other).await;
}

/// The arguments of a call, and the payload of a webhook.
#[derive(Debug, Deserialize, JsonSchema)]
struct Empty {}

/// A brain whose call waits for a person's reply or for the webhook of a bank.
pub(crate) fn transfer() -> Brain<(), ()> {
    brain("Transfer")
        .r#loop("Chat", |cx| {
            let wait = Tool::new("wait", |t| {
                t.description("Waits for the money")
                    .wait(|_: &Empty, _| {
                        let reply = Wait::<(), Empty>::reply("Is it there?");
                        [reply.untyped(), webhook::<Empty>("bank").on("7").untyped()]
                    })
                    .execute(async |Empty {}, _| Ok("asked"))
            });
            cx.system("You wait.").input("Wait.").tools([wait])
        })
        .build()
}

#[tokio::test]
async fn scope_decide_does_not_answer_for_a_program() {
    let model = ScriptedModel::from_fn(|request: &ModelRequest| match request.messages.len() {
        1 => Reply::call("wait", json!({})),
        _ => Reply::text("Done."),
    });
    let shop = Shop::with(model, transfer(), |runner| Options::builder().brains(runner).build());
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run, Scope::Decide]).await;
    let operator = shop.token(None, &[Scope::Read, Scope::Operate]).await;
    let run = shop.post(&ann, "/api/v1/runs", json!({ "brain": "Transfer" })).await;
    let run = RunId::new(run.json()["id"].as_str().unwrap());
    let id = shop.question(&ann, &run).await;
    let path = format!("/api/v1/runs/{run}/calls/{id}/decision");
    let (bank, reply) = (json!({ "reply": {}, "wait": 1 }), json!({ "reply": {}, "wait": 0 }));

    assert_eq!(shop.post(&ann, &path, bank).await.problem(), "scope-missing");
    assert_eq!(shop.post(&operator, &path, reply.clone()).await.problem(), "scope-missing");
    assert_eq!(shop.post(&ann, &path, reply).await.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn decision_after_the_expiry_is_gone() {
    use positronic_core::testing::TestClock;

    let brain = brain("Refund").r#loop("Chat", |cx| {
        let pay = Tool::new("refund", |t| {
            t.description("Refunds money")
                .requires_approval("it costs money")
                .approval_expires(std::time::Duration::from_secs(60))
                .execute(async |Empty {}, _| Ok("refunded"))
        });
        cx.system("You refund.").input("Refund.").tools([pay])
    });
    let model = ScriptedModel::from_fn(|request: &ModelRequest| match request.messages.len() {
        1 => Reply::call("refund", json!({})),
        _ => Reply::text("Done."),
    });
    let runner = Runner::new(model).clock(TestClock::default()).brain(brain);
    let _service = runner.serve();
    let shop = Shop::of(runner, |runner| Options::builder().brains(runner).build());
    let token = shop.token(None, &Scope::ALL).await;
    let run = shop.post(&token, "/api/v1/runs", json!({ "brain": "Refund" })).await.json();
    let run = RunId::new(run["id"].as_str().unwrap());
    let id = shop.question(&token, &run).await;

    shop.end(&run).await;
    let late = shop.post(&token, &format!("/api/v1/runs/{run}/calls/{id}/decision"), json!({ "approve": true })).await;

    assert_eq!((late.status, late.problem()), (StatusCode::GONE, "expired".to_owned()));
    assert!(late.json()["at"].as_str().unwrap().ends_with('Z'), "{late:?}");
}
