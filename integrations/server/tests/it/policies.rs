//! Who decides a pending item, and who starts runs of a brain.

use axum::http::StatusCode;
use positronic_core::prelude::*;
use positronic_core::record::{RunId, Timestamp};
use positronic_core::store::MemoryStore;
use positronic_server::{Caller, DeciderPolicy, DeciderRule, Options, Question, Scope, Token};
use serde_json::json;

use crate::support::{Shop, refund, refunding};

const PERSON: [Scope; 3] = [Scope::Read, Scope::Run, Scope::Decide];

fn with_rules(rules: &'static [&'static str]) -> Shop {
    let policy: DeciderPolicy = rules.iter().map(|rule| rule.parse::<DeciderRule>().unwrap()).collect();
    Shop::open(|runner| Options::builder().brains(runner).deciders(policy).build())
}

#[tokio::test]
async fn starter_does_not_decide_in_any_way() {
    let shop = with_rules(&["not-the-starter"]);
    let ann = shop.token(Some("ann"), &[PERSON.as_slice(), &[Scope::Operate]].concat()).await;
    let boss = shop.token(Some("boss"), &Scope::ALL).await;
    let (run, id) = shop.waiting_run(&ann, 7).await;
    let path = format!("/api/v1/runs/{run}");

    let one = shop.post(&ann, &format!("{path}/calls/{id}/decision"), json!({ "approve": true })).await;
    assert_eq!(one.problem(), "not-an-approver");
    let many = json!([{ "run": run, "id": id, "approve": true }]);
    let many = shop.post(&ann, "/api/v1/decisions", many).await.json();
    assert_eq!(many["items"][0]["status"], 403, "{many}");
    assert_eq!(many["items"][0]["problem"]["type"], "/problems/not-an-approver");
    let at = shop.get(&ann, &path).await.json()["head"].clone();
    let given = json!({ "at": at, "results": { "Chat/0.0": "refunded 100" } });
    assert_eq!(shop.post(&ann, &format!("{path}/fork"), given.clone()).await.problem(), "not-an-approver");
    for list in [path.clone(), "/api/v1/pending".to_owned()] {
        let seen = shop.get(&ann, &list).await.json();
        let item = if list == path { &seen["pending"][0] } else { &seen["items"][0] };
        let reason = "the person who has started the run does not decide about it";
        assert_eq!(item["allowed"], json!({ "allowed": false, "reason": reason }), "{list}");
    }

    assert_eq!(shop.get(&boss, &path).await.json()["pending"][0]["allowed"], json!({ "allowed": true }));
    assert_eq!(shop.post(&boss, &format!("{path}/fork"), given).await.status, StatusCode::CREATED);
    let approved = shop.post(&boss, &format!("{path}/calls/{id}/decision"), json!({ "approve": true })).await;
    assert_eq!(approved.status, StatusCode::OK, "{approved:?}");

    // A fork right after the approval would run the call again, with the approval of another person.
    shop.end(&run).await;
    let again = json!({ "at": approved.json()["seq"] });
    assert_eq!(shop.post(&ann, &format!("{path}/fork"), again.clone()).await.problem(), "not-an-approver");
    assert_eq!(shop.post(&boss, &format!("{path}/fork"), again).await.status, StatusCode::CREATED);
    let rerun = shop.post(&ann, &format!("{path}/rerun"), json!({ "from": "Chat" })).await;
    assert_eq!(rerun.status, StatusCode::CREATED, "it asks again: {rerun:?}");
}

#[tokio::test]
async fn other_token_of_the_starter_does_not_decide_about_a_run_for_another_user() {
    let shop = with_rules(&["not-the-starter"]);
    let all = [PERSON.as_slice(), &[Scope::Operate]].concat();
    let token = async |subject: &str| {
        let token = Token::builder().subject(subject).user(Some("ann".to_owned())).scopes(all.clone());
        Token::create(&shop.client, token.created(Timestamp(0)).build()).await.unwrap().1
    };
    let (laptop, phone) = (token("ann-laptop").await, token("ann-phone").await);
    let order = json!({ "brain": "Refund", "options": { "number": 7 }, "user": "bob" });
    let run = shop.post(&laptop, "/api/v1/runs", order).await.json()["id"].as_str().unwrap().to_owned();
    let id = shop.question(&laptop, &RunId::new(&run)).await;

    let path = format!("/api/v1/runs/{run}/calls/{id}/decision");
    for own in [laptop, phone] {
        assert_eq!(shop.post(&own, &path, json!({ "approve": true })).await.problem(), "not-an-approver");
    }
}

#[tokio::test]
async fn who_has_set_or_triggered_a_schedule_does_not_decide_about_its_runs() {
    let policy = DeciderPolicy::from_iter([DeciderRule::not_the_starter()]);
    let runner = Runner::new(refunding()).store(MemoryStore::new()).brain(refund());
    let shop = Shop::of(runner.clone(), |runner| Options::builder().brains(runner).deciders(policy).build());
    let ann = shop.token(Some("ann"), &Scope::ALL).await;
    let ben = shop.token(Some("ben"), &Scope::ALL).await;
    let boss = shop.token(Some("boss"), &Scope::ALL).await;
    let schedule = json!({ "brain": "Refund", "options": { "number": 7 }, "every": [{ "seconds": 86400 }] });
    let set = shop.call(&ann, "PUT", "/api/v1/schedules/daily", Some(schedule)).await;
    assert_eq!(set.status, StatusCode::CREATED, "{set:?}");
    assert_eq!(shop.post(&ben, "/api/v1/schedules/daily/trigger", json!({})).await.status, StatusCode::ACCEPTED);

    let timers = shop.client.schedules().due().await.unwrap();
    let run = runner.fire(&timers[0]).await.unwrap().id().clone();
    let id = shop.question(&boss, &run).await;
    let path = format!("/api/v1/runs/{run}/calls/{id}/decision");

    for own in [&ann, &ben] {
        assert_eq!(shop.post(own, &path, json!({ "approve": true })).await.problem(), "not-an-approver");
    }
    assert_eq!(shop.post(&boss, &path, json!({ "approve": true })).await.status, StatusCode::OK);
}

#[tokio::test]
async fn second_token_of_the_starter_does_not_decide_either() {
    let shop = with_rules(&["not-the-starter"]);
    let bot = Token::builder().subject("ann-bot").user(Some("ann".to_owned())).scopes(PERSON).created(Timestamp(0));
    let (_, bot) = Token::create(&shop.client, bot.build()).await.unwrap();
    let ann = shop.token(Some("ann"), &PERSON).await;
    let (run, id) = shop.waiting_run(&bot, 7).await;

    let decided = shop.post(&ann, &format!("/api/v1/runs/{run}/calls/{id}/decision"), json!({ "approve": true })).await;

    assert_eq!(decided.problem(), "not-an-approver");
}

#[tokio::test]
async fn listed_people_decide_about_calls_of_a_tool() {
    for (rule, is_allowed) in [("refund=ben", false), ("refund=ann,ben", true), ("transfer=ben", true), ("ben", false)]
    {
        let policy: DeciderPolicy = [rule.parse::<DeciderRule>().unwrap()].into_iter().collect();
        let shop = Shop::open(|runner| Options::builder().brains(runner).deciders(policy).build());
        let ann = shop.token(Some("ann"), &PERSON).await;
        let (run, id) = shop.waiting_run(&ann, 7).await;

        let path = format!("/api/v1/runs/{run}/calls/{id}/decision");
        let decided = shop.post(&ann, &path, json!({ "approve": true })).await;

        assert_eq!(decided.status == StatusCode::OK, is_allowed, "{rule}: {decided:?}");
    }
}

#[tokio::test]
async fn closure_decides_by_the_arguments() {
    let small = |_: &Caller, question: &Question<'_>| match question.pending.arguments["amount"].as_u64() {
        Some(amount) if amount < 50 => Ok(()),
        _ => Err("only the board decides about so much".to_owned()),
    };
    let shop = Shop::open(|runner| Options::builder().brains(runner).deciders(small).build());
    let ann = shop.token(Some("ann"), &PERSON).await;
    let (run, id) = shop.waiting_run(&ann, 7).await;

    let decided = shop.post(&ann, &format!("/api/v1/runs/{run}/calls/{id}/decision"), json!({ "approve": true })).await;

    assert_eq!(decided.problem(), "not-an-approver");
    assert_eq!(decided.json()["detail"], "only the board decides about so much");
}

#[tokio::test]
async fn caller_starts_only_the_brains_that_it_may_start() {
    let shop = Shop::open(|runner| {
        let may_start = |caller: &Caller, brain: &str| caller.subject() != "guest" || brain != "Refund";
        Options::builder().brains(runner).may_start(may_start).build()
    });
    let guest = shop.token(Some("guest"), &[Scope::Read, Scope::Run, Scope::Operate]).await;
    let other = Token::builder().subject("other").scopes(Scope::ALL).brains(vec!["Report".to_owned()]);
    let (_, other) = Token::create(&shop.client, other.created(Timestamp(0)).build()).await.unwrap();
    let ann = shop.token(Some("ann"), &PERSON).await;
    let (run, _) = shop.waiting_run(&ann, 7).await;
    let order = json!({ "brain": "Refund", "options": { "number": 7 } });
    let said = json!({ "brain": "Refund", "options": { "number": 7 }, "text": "Please." });
    let schedule = json!({ "brain": "Refund", "options": { "number": 7 }, "every": [{ "seconds": 60 }] });

    for token in [&guest, &other] {
        assert_eq!(shop.post(token, "/api/v1/runs", order.clone()).await.problem(), "not-allowed");
        let chat = shop.post(token, "/api/v1/conversations/c/messages", said.clone()).await;
        assert_eq!(chat.problem(), "not-allowed");
        let fork = shop.post(token, &format!("/api/v1/runs/{run}/fork"), json!({ "at": 1 })).await;
        assert_eq!(fork.problem(), "not-allowed");
        assert_eq!(shop.get(token, "/api/v1/brains").await.json()["items"][0]["start"]["allowed"], false);
        assert_eq!(shop.get(token, &format!("/api/v1/runs/{run}")).await.json()["actions"]["fork"]["allowed"], false);
    }
    let put = shop.call(&other, "PUT", "/api/v1/schedules/daily", Some(schedule)).await;
    assert_eq!(put.problem(), "not-allowed");
    assert_eq!(shop.get(&ann, "/api/v1/brains").await.json()["items"][0]["start"], json!({ "allowed": true }));
}

#[tokio::test]
async fn caller_sends_messages_only_to_runs_of_the_brains_that_it_may_start() {
    let report = brain("Report").r#loop("Chat", |cx| cx.system("You report."));
    let runner = Runner::new(refunding()).store(MemoryStore::new()).brain(refund()).brain(report);
    let shop = Shop::of(runner, |runner| Options::builder().brains(runner).build());
    let ann = shop.token(None, &Scope::ALL).await;
    let reporter = Token::builder().subject("reporter").scopes(Scope::ALL).brains(vec!["Report".to_owned()]);
    let (_, reporter) = Token::create(&shop.client, reporter.created(Timestamp(0)).build()).await.unwrap();
    let order = json!({ "brain": "Refund", "options": { "number": 7 }, "text": "Please." });
    let run = shop.post(&ann, "/api/v1/conversations/c/messages", order).await.json();
    let run = RunId::new(run["id"].as_str().unwrap());
    let id = shop.question(&ann, &run).await;
    let path = format!("/api/v1/runs/{run}");
    let (said, signal) =
        (json!({ "brain": "Report", "text": "Hurry." }), json!({ "type": "message", "text": "Hurry." }));

    let sent = shop.post(&reporter, "/api/v1/conversations/c/messages", said.clone()).await;
    assert_eq!(sent.problem(), "not-allowed");
    let started = json!({ "brain": "Report", "conversation": "c", "message": "Hurry." });
    assert_eq!(shop.post(&reporter, "/api/v1/runs", started).await.problem(), "not-allowed");
    let signalled = shop.post(&reporter, &format!("{path}/signals"), signal.clone()).await;
    assert_eq!(signalled.problem(), "not-allowed");
    assert_eq!(shop.get(&reporter, &path).await.json()["actions"]["message"]["allowed"], false);
    assert_eq!(shop.get(&ann, &path).await.json()["actions"]["message"]["allowed"], true);
    assert_eq!(shop.post(&ann, &format!("{path}/signals"), signal).await.status, StatusCode::OK);

    // A new run has the brain of the message.
    shop.post(&ann, &format!("{path}/calls/{id}/decision"), json!({ "reject": true })).await;
    shop.end(&run).await;
    let next = shop.post(&reporter, "/api/v1/conversations/c/messages", said).await;
    assert_eq!((next.status, &next.json()["brain"]), (StatusCode::CREATED, &json!("Report")), "{next:?}");
}
