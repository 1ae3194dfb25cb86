//! Signals: they are admitted before they are written, and their record names the sender. Promises 1 and 20.

use std::time::Duration;

use positronic_core::machine::Refusal;
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{Actor, Amounts, Decision, EventKind, SignalKind, Usage, hash_json};
use positronic_core::runner::{RunHandle, Settled};
use serde_json::{Value, json};

use crate::bench::{Bench, approve, by, edit, in_two_iterations, refusal, reject, run_id, signal};
use crate::stores::{Fresh, on_both_stores};
use crate::support::{
    Board, Job, Journal, Shop, ShopLoop, batch, path, result, settled, tools, waits, work, worker, workshop,
};

on_both_stores! {
    promise_01_invalid_decision_is_refused_and_changes_nothing
    promise_20_decision_records_who_when_why_how_and_which_arguments
}

fn careful(config: ShopLoop) -> ShopLoop {
    let careful = tools(config).tools([
        worker("fixed", |t| t.requires_approval("sure?").not_editable()),
        worker("quick", |t| t.requires_approval("now?").approval_expires(Duration::from_secs(60))),
    ]);
    careful.tool("asks", |t| {
        let waits = |job: &Job, _: &Shop| {
            let eventually = webhook::<Job>("soon").on(&job.id).timeout(Duration::from_secs(60));
            [eventually, webhook::<Job>("later").on(&job.id)]
        };
        t.read_only().wait(waits).execute(work)
    })
}

async fn promise_01_invalid_decision_is_refused_and_changes_nothing<S: Fresh>() {
    let (bench, journal) = (Bench::<S>::fresh(), Journal::default());
    let jobs = [("safe", "a"), ("gated", "b"), ("fixed", "c"), ("quick", "d"), ("asks", "e")];
    let process = bench.process("work", in_two_iterations(batch(jobs)));
    let run = bench.start(&process, &workshop(&journal, careful)).await;
    assert_eq!(waits(&run).await, ["Work/0.1", "Work/0.2", "Work/0.3", "Work/0.4"]);
    run.pause().await.unwrap();
    assert_eq!(settled(&run).await, Settled::Paused);
    tokio::time::advance(Duration::from_secs(61)).await;
    let client = bench.client("people");
    let before = bench.log().await;

    type Fits = fn(&Refusal) -> bool;
    let nowhere = Some(path("Nowhere"));
    let webhook = |name: &str, payload: Value| {
        let (name, identifier) = (name.to_owned(), "e".to_owned());
        SignalKind::Webhook { name, identifier, payload }
    };
    let refused: Vec<(Vec<SignalKind>, Fits)> = vec![
        (vec![approve("Work/0.9")], |r| matches!(r, Refusal::NoSuchCall { .. })),
        (vec![approve("Other/0.1")], |r| matches!(r, Refusal::NoSuchCall { .. })),
        (vec![approve("Work/0.0")], |r| matches!(r, Refusal::Decided { how, .. } if how == "it ran and succeeded")),
        (vec![edit("Work/0.1", json!({"id": 7}))], |r| matches!(r, Refusal::Misfit { .. })),
        (vec![edit("Work/0.1", json!({"id": "x", "more": 1}))], |r| matches!(r, Refusal::Misfit { .. })),
        (vec![edit("Work/0.2", json!({"id": "x"}))], |r| matches!(r, Refusal::NotEditable { .. })),
        (vec![approve("Work/0.3")], |r| matches!(r, Refusal::Expired { .. })),
        (vec![reject("Work/0.3", "no")], |r| matches!(r, Refusal::Expired { .. })),
        (vec![webhook("slack", json!({"id": "x"}))], |r| matches!(r, Refusal::NothingWaits { .. })),
        (vec![webhook("soon", json!({"id": "x"}))], |r| matches!(r, Refusal::Expired { .. })),
        (vec![webhook("later", json!({"id": 7}))], |r| matches!(r, Refusal::Misfit { .. })),
        (
            vec![SignalKind::Reply { call: path("Work/0.1"), payload: json!({}) }],
            |r| matches!(r, Refusal::Unasked { how, .. } if how == "waits for a decision, not for a reply"),
        ),
        (
            vec![SignalKind::Message {
                to: nowhere,
                text: "hello".to_owned(),
                message_id: None,
                files: Vec::new(),
                caller_tools: None,
            }],
            |r| matches!(r, Refusal::NoListener(_)),
        ),
        (vec![SignalKind::Pause], |r| matches!(r, Refusal::Paused)),
        // All or none: the second one is invalid after the first.
        (vec![approve("Work/0.1"), reject("Work/0.1", "no")], |r| matches!(r, Refusal::Decided { .. })),
        (vec![approve("Work/0.1"), approve("Work/0.3")], |r| matches!(r, Refusal::Expired { .. })),
    ];
    for (index, (kinds, fits)) in refused.into_iter().enumerate() {
        let signals: Vec<_> =
            kinds.into_iter().enumerate().map(|(n, kind)| signal(&format!("{index}.{n}"), kind)).collect();
        let why = refusal(client.send_all(&run_id(), &signals).await.unwrap_err());
        assert!(fits(&why), "{signals:?}: {why:?}");
        assert_eq!(bench.log().await, before, "{signals:?}");
        assert_eq!(client.state(&run_id()).await.unwrap(), run.state());
    }

    // A valid signal is accepted, even under a previously refused id.
    client
        .send_all(&run_id(), &[signal("0.0", approve("Work/0.1")), signal("1.0", reject("Work/0.2", "no"))])
        .await
        .unwrap();
    run.resume().await.unwrap();
    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(journal.take(), ["a", "e", "b"]);
    let over = bench.checked().await;
    for (call, how) in
        [("Work/0.1", "it was approved by ann over test"), ("Work/0.2", "it was rejected by ann over test: no")]
    {
        let why = refusal(client.approve(&run_id(), &path(call), by("bob")).await.unwrap_err());
        assert_eq!(why, Refusal::Decided { call: path(call), how: how.to_owned() });
    }
    assert_eq!(refusal(run.pause().await.unwrap_err()), Refusal::Ended);
    assert_eq!(bench.log().await, over);
}

/// Another process has written events that the sender has not read yet.
#[tokio::test(start_paused = true)]
async fn promise_01_decision_is_admitted_against_the_log_and_not_the_senders_view() {
    let (bench, journal) = (Bench::new(), Journal::default());
    let process = bench.process("work", in_two_iterations(batch([("gated", "a")])));
    let run = bench.start(&process, &workshop(&journal, tools)).await;
    waits(&run).await;
    let client = bench.client("people");
    let paused = async || {
        client.signal(&run_id(), SignalKind::Pause, by("bob")).await.unwrap();
        assert_eq!(run.state().paused, None, "the sender has not read that");
    };

    paused().await;
    run.resume().await.unwrap();
    paused().await;
    assert_eq!(refusal(run.pause().await.unwrap_err()), Refusal::Paused);

    run.resume().await.unwrap();
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    result(&run).await;
    bench.checked().await;
}

/// A loop that used 100 tokens of 50 in its first iteration, and asks for more.
fn at_its_limit(place: &str) -> Reply {
    let reply = if place == "Work/0" { batch([("asks", "a")]) } else { batch([("safe", "b")]) };
    reply.usage(Usage { input: 100, ..Usage::default() })
}

#[tokio::test(start_paused = true)]
async fn promise_01_grant_is_accepted_in_time_and_where_it_helps() {
    let bench = Bench::new();
    let shop = workshop(&Journal::default(), |config| {
        tools(config).max_tokens(50).ask_for_more_within(Duration::from_secs(60))
    });
    let process = bench.process("work", |_| at_its_limit("Work/1"));
    let run = bench.start(&process, &shop).await;
    assert_eq!(waits(&run).await, ["Work"]);
    run.pause().await.unwrap();
    let (client, before) = (bench.client("people"), bench.log().await);
    let grant = |at: &str, more: Amounts| SignalKind::Grant { to: path(at), more };
    let said = async |kind: SignalKind| {
        let why = refusal(client.signal(&run_id(), kind, by("ann")).await.unwrap_err());
        assert_eq!(bench.log().await, before, "{why}");
        why
    };

    assert!(matches!(said(grant("Work", Amounts::tokens(50))).await, Refusal::TooLittle { .. }));
    assert!(matches!(said(grant("Work", Amounts::iterations(9))).await, Refusal::TooLittle { .. }));
    assert!(matches!(said(grant("Other", Amounts::tokens(99))).await, Refusal::NotAsked { .. }));
    assert!(matches!(said(approve("Work")).await, Refusal::Unasked { .. }));
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(matches!(said(grant("Work", Amounts::tokens(99))).await, Refusal::Expired { .. }));
    assert!(matches!(said(reject("Work", "no")).await, Refusal::Expired { .. }));
}

async fn promise_20_decision_records_who_when_why_how_and_which_arguments<S: Fresh>() {
    let (bench, journal) = (Bench::<S>::fresh(), Journal::default());
    let process = bench.process("work", in_two_iterations(batch([("gated", "a"), ("gated", "b"), ("gated", "c")])));
    let run: RunHandle<Board> = bench.start(&process, &workshop(&journal, tools)).await;
    waits(&run).await;
    let before = run.state().at;
    tokio::time::advance(Duration::from_secs(90)).await;
    let ann = Actor::builder().by("ann").channel("slack").trace("00-ab-cd-01").build();
    let client = bench.client("people");
    client.signal(&run_id(), edit("Work/0.1", json!({"id": "edited"})), ann.clone()).await.unwrap();
    client.reject(&run_id(), &path("Work/0.2"), "too risky", by("bob")).await.unwrap();
    client.approve(&run_id(), &path("Work/0.0"), by("cem")).await.unwrap();
    result(&run).await;

    let log = bench.checked().await;
    let asked: Vec<_> = log
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::LoopApprovalRequested { reason, arguments_hash, .. } => {
                Some((event.path.to_string(), reason.as_str(), arguments_hash.clone()))
            }
            _ => None,
        })
        .collect();
    let hash = |id: &str| hash_json(&json!({ "id": id }));
    for (index, id) in ["a", "b", "c"].into_iter().enumerate() {
        assert_eq!(asked[index], (format!("Work/0.{index}"), "it is dangerous", hash(id)));
    }
    let decided: Vec<_> = log
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::LoopApprovalDecided { decision, arguments, reason, actor, .. } => {
                assert_eq!(event.at.since(before), Duration::from_secs(90), "when");
                Some((event.path.as_str(), *decision, arguments.clone(), reason.as_deref(), actor.clone()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        decided,
        [
            ("Work/0.1", Decision::Approved, Some(json!({"id": "edited"})), None, ann),
            ("Work/0.2", Decision::Rejected, None, Some("too risky"), by("bob")),
            ("Work/0.0", Decision::Approved, None, None, by("cem")),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn promise_20_every_signal_records_sender_channel_and_reason() {
    let reason = || Some("enough".to_owned());
    for last in [SignalKind::Reject { call: path("Work"), reason: reason() }, SignalKind::Cancel { reason: reason() }] {
        let bench = Bench::new();
        let shop = workshop(&Journal::default(), |config| careful(config).max_tokens(50).ask_for_more());
        let run = bench.start(&bench.process("work", at_its_limit), &shop).await;
        assert_eq!(waits(&run).await, ["Work/0.0"]);
        let client = bench.client("people");
        let who = |name: &str| Actor::builder().by(name).channel("slack").trace("00-ab-cd-01").build();
        let say = async |name: &str, kind: SignalKind| client.signal(&run_id(), kind, who(name)).await.unwrap();

        say("ann", SignalKind::Pause).await;
        say("bob", SignalKind::Resume).await;
        say("cem", SignalKind::message("hello")).await;
        let (name, identifier, payload) = ("later".to_owned(), "a".to_owned(), json!({"id": "x"}));
        say("dan", SignalKind::Webhook { name, identifier, payload }).await;
        assert_eq!(bench.waits(&run).await, ["Work"]);
        say("eve", SignalKind::Grant { to: path("Work"), more: Amounts::tokens(100) }).await;
        assert_eq!(bench.waits(&run).await, ["Work"]);
        say("flo", last).await;
        assert!(matches!(bench.settled(&run).await, Settled::Completed(_) | Settled::Cancelled));

        let log: Vec<_> = bench.checked().await.iter().map(|event| event.kind.to_value()).collect();
        let said: Vec<_> = log.iter().filter(|body| !body["actor"].is_null()).collect();
        let actors: Vec<_> = said.iter().map(|body| body["actor"].clone()).collect();
        let expected = ["ann", "bob", "cem", "dan", "eve", "flo"].map(|name| serde_json::to_value(who(name)).unwrap());
        assert_eq!(actors, expected);
        assert_eq!(said[5]["reason"], "enough");
    }
}
