//! What a fork decides: results that it gives, and decisions on which it acts again.

use axum::http::StatusCode;
use positronic_core::dsl::{IntoBrain as _, Runnable};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{ModelRequest, RunId, Seq};
use positronic_core::runner::Fork;
use positronic_server::{DeciderPolicy, DeciderRule, Options, Scope};
use serde_json::{Value, json};

use crate::decisions::transfer;
use crate::support::{Answer, Shop, refund, refunding};

const OPERATOR: [Scope; 3] = [Scope::Read, Scope::Run, Scope::Operate];

/// A model that calls the tool `wait` once.
fn waiting() -> ScriptedModel {
    ScriptedModel::from_fn(|request: &ModelRequest| match request.messages.len() {
        1 => Reply::call("wait", json!({})),
        _ => Reply::text("Done."),
    })
}

/// Opens a shop in which the starter of a run does not decide about it.
fn open(model: ScriptedModel, brain: impl Runnable) -> Shop {
    let policy = DeciderPolicy::from_iter([DeciderRule::not_the_starter()]);
    Shop::with(model, brain, |runner| Options::builder().brains(runner).deciders(policy).build())
}

/// Starts a run that waits. Returns its id and that of its pending item.
async fn start(shop: &Shop, token: &str, run: Value) -> (RunId, String) {
    let run = shop.post(token, "/api/v1/runs", run).await.json();
    let run = RunId::new(run["id"].as_str().unwrap());
    let id = shop.question(token, &run).await;
    (run, id)
}

async fn decide(shop: &Shop, token: &str, (run, id): &(RunId, String), decision: Value) {
    let decided = shop.post(token, &format!("/api/v1/runs/{run}/calls/{id}/decision"), decision).await;
    assert_eq!(decided.status, StatusCode::OK, "{decided:?}");
}

async fn fork(shop: &Shop, token: &str, run: &RunId, fork: Value) -> Answer {
    shop.post(token, &format!("/api/v1/runs/{run}/fork"), fork).await
}

/// Returns the number of the first event of a type.
async fn first(shop: &Shop, run: &RunId, name: &str) -> u64 {
    let log = shop.client.events(run, Seq(0)).await.unwrap();
    log.iter().find(|event| event.kind.name() == name).unwrap_or_else(|| panic!("{log:?}")).seq.0
}

#[tokio::test]
async fn given_result_is_a_decision_before_and_after_the_call_asks() {
    let order = json!({ "brain": "Refund", "options": { "number": 7 } });
    for (model, brain, run) in [
        (refunding(), refund().definition(), order),
        (waiting(), transfer().definition(), json!({ "brain": "Transfer" })),
    ] {
        let policy = DeciderPolicy::from_iter([DeciderRule::not_the_starter()]);
        let runner = Runner::new(model).definition(brain);
        let shop = Shop::of(runner, |runner| Options::builder().brains(runner).deciders(policy).build());
        let starter = shop.token(Some("ann"), &[OPERATOR.as_slice(), &[Scope::Decide]].concat()).await;
        let operator = shop.token(Some("ben"), &OPERATOR).await;
        let boss = shop.token(Some("boss"), &Scope::ALL).await;
        let (run, _) = start(&shop, &starter, run).await;
        let called = first(&shop, &run, "LOOP_TOOL_CALL").await;
        let head = shop.client.store().run(&run).await.unwrap().next.0 - 1;
        // Another run that has not asked: it ends with the call.
        let early = shop.client.fork(&run, Seq(called), Fork::default()).await.unwrap();

        for (run, at) in (called..=head).map(|at| (&run, at)).chain([(&early, called)]) {
            let given = json!({ "at": at, "results": { "Chat/0.0": "paid" } });
            assert_eq!(fork(&shop, &operator, run, given.clone()).await.problem(), "scope-missing", "{run} {at}");
            assert_eq!(fork(&shop, &boss, run, given).await.status, StatusCode::CREATED, "{run} {at}");
        }
        let given = json!({ "at": called, "results": { "Chat/0.0": "paid" } });
        assert_eq!(fork(&shop, &starter, &run, given).await.problem(), "not-an-approver");
        let without = json!({ "at": called });
        assert_eq!(fork(&shop, &operator, &run, without).await.status, StatusCode::CREATED, "it asks again");
    }
}

#[tokio::test]
async fn fork_acts_on_the_answer_of_a_person_only_for_those_who_may_give_it() {
    let shop = open(waiting(), transfer());
    let starter = shop.token(Some("ann"), &[OPERATOR.as_slice(), &[Scope::Decide]].concat()).await;
    let operator = shop.token(Some("ben"), &OPERATOR).await;
    let boss = shop.token(Some("boss"), &Scope::ALL).await;
    let transfer = json!({ "brain": "Transfer" });
    let (one, other) = (start(&shop, &starter, transfer.clone()).await, start(&shop, &starter, transfer).await);
    decide(&shop, &boss, &one, json!({ "reply": {}, "wait": 0 })).await;
    decide(&shop, &operator, &other, json!({ "reply": {}, "wait": 1 })).await;
    shop.end(&one.0).await;
    shop.end(&other.0).await;

    let answered = json!({ "at": first(&shop, &one.0, "LOOP_RESUME").await });
    assert_eq!(fork(&shop, &operator, &one.0, answered.clone()).await.problem(), "scope-missing");
    assert_eq!(fork(&shop, &starter, &one.0, answered.clone()).await.problem(), "not-an-approver");
    assert_eq!(fork(&shop, &boss, &one.0, answered).await.status, StatusCode::CREATED);
    let ended = json!({ "at": first(&shop, &one.0, "LOOP_TOOL_RESULT").await });
    assert_eq!(fork(&shop, &operator, &one.0, ended).await.status, StatusCode::CREATED);
    let by_the_bank = json!({ "at": first(&shop, &other.0, "LOOP_RESUME").await });
    assert_eq!(fork(&shop, &operator, &other.0, by_the_bank).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn fork_acts_on_a_grant_only_for_those_who_may_give_it() {
    let model = ScriptedModel::from_fn(|request: &ModelRequest| match request.messages.len() {
        1 => Reply::call("look", json!({})),
        _ => Reply::text("Done."),
    });
    let brain = brain("Look").r#loop("Chat", |cx| {
        let look = Tool::new("look", |t| t.description("Looks").execute(async |_: Value, _| Ok("seen")));
        cx.system("You look.").input("Look.").tools([look]).max_iterations(1).ask_for_more()
    });
    let shop = open(model, brain);
    let starter = shop.token(Some("ann"), &[OPERATOR.as_slice(), &[Scope::Decide]].concat()).await;
    let operator = shop.token(Some("ben"), &OPERATOR).await;
    let boss = shop.token(Some("boss"), &Scope::ALL).await;
    let asked = start(&shop, &starter, json!({ "brain": "Look" })).await;
    decide(&shop, &boss, &asked, json!({ "grant": { "iterations": 1 } })).await;
    shop.end(&asked.0).await;
    let run = &asked.0;

    let granted = json!({ "at": first(&shop, run, "BUDGET_DECIDED").await });
    assert_eq!(fork(&shop, &operator, run, granted.clone()).await.problem(), "scope-missing");
    assert_eq!(fork(&shop, &starter, run, granted.clone()).await.problem(), "not-an-approver");
    assert_eq!(fork(&shop, &boss, run, granted).await.status, StatusCode::CREATED);
    let ended = json!({ "at": first(&shop, run, "LOOP_COMPLETE").await });
    assert_eq!(fork(&shop, &operator, run, ended).await.status, StatusCode::CREATED);
    let rerun = shop.post(&operator, &format!("/api/v1/runs/{run}/rerun"), json!({ "from": "Chat" })).await;
    assert_eq!(rerun.status, StatusCode::CREATED, "it asks again: {rerun:?}");
}

#[tokio::test]
async fn preview_tells_which_tool_asks_a_person_while_it_runs() {
    let shop = open(waiting(), transfer());
    let token = shop.token(None, &OPERATOR).await;
    let (run, _) = start(&shop, &token, json!({ "brain": "Transfer" })).await;

    let preview = shop.get(&token, &format!("/api/v1/runs/{run}/fork?from=Chat")).await.json();

    let asking: Vec<_> = preview["rerun"].as_array().unwrap().iter().map(|effect| &effect["asks_again"]).collect();
    assert_eq!(asking, [&json!(false), &json!(true)], "{preview}");
}
