//! Two processes at once: promise 4.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::machine::{KNOWN_SIGNALS, Refusal};
use positronic_core::model::scripted::Reply;
use positronic_core::record::{Epoch, Event, EventKind, RunSummary, SignalKind, ToolResult};
use positronic_core::runner::{ResumeError, Settled};
use positronic_core::store::prelude::*;
use positronic_core::store::{Append, EventStore, Index, StoreError};
use positronic_store_suite::{Fault, FaultyStore};

use crate::bench::{Bench, approve, behind, by, decisions, named, refusal, reject, result_of, run_id, signal};
use crate::stores::{Fresh, on_both_stores};
use crate::support::{Journal, batch, done, path, settled, slow_batch, tools, waits, workshop};

on_both_stores! {
    promise_04_one_of_two_concurrent_decisions_wins_and_the_other_is_refused
    promise_04_two_processes_approving_the_same_call_a_hundred_times_run_it_once
    promise_04_same_signal_twice_gets_the_same_outcome
    promise_04_old_signal_gets_the_same_outcome_without_growing_the_state
    promise_04_one_of_two_processes_resuming_a_run_claims_it
    promise_04_worker_declared_dead_writes_nothing_more
    promise_04_worker_that_lost_its_run_stops_its_effects_in_flight
    promise_04_store_fences_a_stale_attachment
    promise_04_two_concurrent_starts_with_one_id_get_the_same_run
}

fn one_gated(place: &str) -> Reply {
    if place == "Work/0" { batch([("gated", "a")]) } else { done() }
}

/// A store with slow appends, so that two processes overlap.
fn crowded(store: impl EventStore + Clone) -> FaultyStore<impl EventStore + Clone> {
    FaultyStore::new(store, |_, _| Some(Fault::Slow(Duration::from_millis(1))))
}

async fn two_people_decide_at_once(store: impl EventStore + Clone) {
    let (bench, journal) = (Bench::on(crowded(store)), Journal::default());
    let process = bench.process("work", one_gated);
    let run = bench.start(&process, &workshop(&journal, tools)).await;
    waits(&run).await;
    let (ann, bob) = (bench.client("ann"), bench.client("bob"));
    let (id, call) = (run_id(), path("Work/0.0"));

    let (yes, no) = tokio::join!(ann.approve(&id, &call, by("ann")), bob.reject(&id, &call, "no", by("bob")));

    let (lost, how) = match (yes, no) {
        (Ok(_), Err(lost)) => (lost, "it was approved by ann over test"),
        (Err(lost), Ok(_)) => (lost, "it was rejected by bob over test: no"),
        both => panic!("one of them wins: {both:?}"),
    };
    assert_eq!(refusal(lost), Refusal::Decided { call, how: how.to_owned() });
    assert!(matches!(bench.settled(&run).await, Settled::Completed(_)));
    let log = bench.checked().await;
    assert_eq!(decisions(&log).len(), 1);
    let approved = how.contains("approved");
    assert_eq!(journal.take(), if approved { vec!["a"] } else { Vec::new() });
    assert_eq!(result_of(&log, "Work/0.0").is_success(), approved);
}

async fn promise_04_one_of_two_concurrent_decisions_wins_and_the_other_is_refused<S: Fresh>() {
    for _ in 0..100 {
        two_people_decide_at_once(S::fresh()).await;
    }
}

async fn promise_04_two_processes_approving_the_same_call_a_hundred_times_run_it_once<S: Fresh>() {
    for _ in 0..100 {
        let (bench, journal) = (Bench::on(crowded(S::fresh())), Journal::default());
        let process = bench.process("work", one_gated);
        let run = bench.start(&process, &workshop(&journal, tools)).await;
        waits(&run).await;
        let (one, other) = (bench.client("one"), bench.client("other"));
        let (id, call) = (run_id(), path("Work/0.0"));

        let (a, b) = tokio::join!(one.approve(&id, &call, by("ann")), other.approve(&id, &call, by("ann")));

        assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
        assert!(matches!(refusal(a.and(b).unwrap_err()), Refusal::Decided { .. }));
        assert!(matches!(bench.settled(&run).await, Settled::Completed(_)));
        assert_eq!(journal.take(), ["a"]);
    }
}

async fn promise_04_same_signal_twice_gets_the_same_outcome<S: Fresh>() {
    for order in [["one", "other"], ["other", "one"]] {
        let (bench, journal) = (Bench::on(crowded(S::fresh())), Journal::default());
        let process = bench.process("work", |place| match place {
            "Work/0" => batch([("gated", "a"), ("gated", "b")]),
            _ => done(),
        });
        let run = bench.start(&process, &workshop(&journal, tools)).await;
        waits(&run).await;
        let twice = signal("click-1", approve("Work/0.0"));
        let [one, other] = order.map(|name| bench.client(name));

        let id = run_id();
        let (a, b) = tokio::join!(one.send(&id, twice.clone()), other.send(&id, twice.clone()));

        assert_eq!(a.as_ref().unwrap(), b.as_ref().unwrap());
        // Also long after its call has ended, and within one list.
        let pair = [twice.clone(), signal("click-2", reject("Work/0.1", "no")), signal("click-2", approve("Work/0.1"))];
        let later = other.send_all(&id, &pair).await.unwrap();
        assert_eq!((later[0], later[1]), (a.unwrap(), later[2]));
        assert!(matches!(bench.settled(&run).await, Settled::Completed(_)));
        assert_eq!(decisions(&bench.checked().await).len(), 2);
        assert_eq!(journal.take(), ["a"]);
        let message = |text: &str| SignalKind::message(text);
        let late = one.send(&id, signal("say", message("hello"))).await.unwrap_err();
        assert_eq!(refusal(late), Refusal::Ended);
    }
}

async fn promise_04_old_signal_gets_the_same_outcome_without_growing_the_state<S: Fresh>() {
    let (bench, journal) = (Bench::<S>::fresh(), Journal::default());
    let process = bench.process("work", |place| if place == "Work/0" { batch([("gated", "a")]) } else { done() });
    let run = bench.start(&process, &workshop(&journal, tools)).await;
    waits(&run).await;
    let client = bench.client("people");
    let message = |n: usize| SignalKind::message(format!("message {n}"));
    let said: Vec<_> = (0..2 * KNOWN_SIGNALS).map(|n| signal(&format!("say-{n}"), message(n))).collect();
    let accepted = client.send_all(&run_id(), &said).await.unwrap();
    let log = bench.log().await;

    let again = client.send_all(&run_id(), &said).await.unwrap();
    let first = run.send(said[0].clone()).await.unwrap();

    assert_eq!(again, accepted);
    assert_eq!(first, accepted[0]);
    assert_eq!(bench.log().await, log);
    assert_eq!(client.state(&run_id()).await.unwrap().signals.len(), KNOWN_SIGNALS);
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    assert!(matches!(bench.settled(&run).await, Settled::Completed(_)));
    assert_eq!(named(&bench.checked().await, "LOOP_MESSAGE").len(), said.len());
}

async fn promise_04_one_of_two_processes_resuming_a_run_claims_it<S: Fresh>() {
    let journal = Journal::default();
    let shop = workshop(&journal, tools);
    let says = |place: &str| if place == "Work/0" { slow_batch([("read", "a", 5), ("safe", "b", 5)]) } else { done() };
    let baseline = Bench::<S>::fresh();
    let first = baseline.process("first", says);
    let run = baseline.start(&first, &shop).await;
    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    let log = baseline.log().await;
    let until = behind(&log, "Work/0.0", "LOOP_TOOL_CALL");
    for _ in 0..100 {
        let bench = Bench::on(crowded(S::fresh()));
        bench.client("copy").import(&run_id(), &log[..until + 1]).await.unwrap();
        journal.take();
        let (one, other) =
            (bench.process("one", says).brain(shop.clone()), bench.process("other", says).brain(shop.clone()));
        let id = run_id();

        let (a, b) = tokio::join!(one.resume(&id), other.resume(&id));

        let (run, lost) = match (a, b) {
            (Ok(run), Err(lost)) | (Err(lost), Ok(run)) => (run, lost),
            both => panic!("one of them has it: {both:?}"),
        };
        let by = bench.store.run(&run_id()).await.unwrap().claim.unwrap().owner.to_string();
        assert_eq!(lost, ResumeError::Claimed { by });
        assert!(matches!(bench.settled(&run).await, Settled::Completed(_)));
        let log = bench.checked().await;
        assert_eq!(named(&log, "RUN_CLAIMED").len(), 2, "the first process's, and one of the two");
        let mut did = journal.take();
        did.sort();
        assert_eq!(did, ["a", "a-", "b", "b-"]);
    }
}

async fn promise_04_worker_declared_dead_writes_nothing_more<S: Fresh>() {
    let (bench, journal) = (Bench::<S>::fresh(), Journal::default());
    let shop = workshop(&journal, tools);
    let says = |place: &str| if place == "Work/0" { slow_batch([("safe", "a", 1000)]) } else { done() };
    let stale = bench.process("stale", says);
    let run = bench.start(&stale, &shop).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let fresh = bench.process("fresh", says).brain(shop);
    let by = bench.store.run(&run_id()).await.unwrap().claim.unwrap().owner;
    assert_eq!(fresh.resume(&run_id()).await.unwrap_err(), ResumeError::Claimed { by: by.to_string() });

    bench.declare_dead().await;
    let taken = fresh.resume(&run_id()).await.unwrap();

    assert!(matches!(bench.settled(&taken).await, Settled::Completed(_)));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let log = bench.checked().await;
    assert!(
        matches!(result_of(&log, "Work/0.0"), ToolResult::Interrupted { .. }),
        "the stale worker's effects in flight"
    );
    let claimed = behind(&log[2..], "", "RUN_CLAIMED") + 2;
    assert!(log[claimed..].iter().all(|event| event.epoch == Some(Epoch(2))), "{log:#?}");
    assert_eq!(named(&log, "LOOP_TOOL_RESULT").len(), 1);
    assert!(matches!(settled(&run).await, Settled::Completed(_)), "who started the run sees its end");
    assert!(
        !log.iter().any(|event| matches!(&event.kind, EventKind::RunReleased { .. })),
        "the stale worker appends nothing"
    );
}

async fn promise_04_worker_that_lost_its_run_stops_its_effects_in_flight<S: Fresh>() {
    let (bench, journal) = (Bench::<S>::fresh(), Journal::default());
    let shop = workshop(&journal, tools);
    let says = |place: &str| match place {
        "Work/0" => slow_batch([("safe", "a", 1000)]),
        _ => batch([("gated", "b")]),
    };
    let stale = bench.process("stale", says);
    let run = bench.start(&stale, &shop).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(journal.take(), ["a"]);
    bench.declare_dead().await;
    let fresh = bench.process("fresh", says).brain(shop);

    let taken = fresh.resume(&run_id()).await.unwrap();

    assert_eq!(bench.waits(&taken).await, ["Work/1.0"]);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(journal.take(), Vec::<String>::new(), "the stale worker's tool does not come to its end");
    drop(run);
}

async fn promise_04_store_fences_a_stale_attachment<S: Fresh>() {
    let (bench, journal) = (Bench::<S>::fresh(), Journal::default());
    let shop = workshop(&journal, tools);
    let first = bench.process("first", one_gated);
    let run = bench.start(&first, &shop).await;
    waits(&run).await;
    bench.declare_dead().await;
    bench.client("people").approve(&run_id(), &path("Work/0.0"), by("ann")).await.unwrap();
    let second = bench.process("second", one_gated).brain(shop).resume(&run_id()).await;
    let row = bench.store.run(&run_id()).await.unwrap();
    let held = row.claim.clone().unwrap().epoch;
    let append = |epoch| {
        let kind = EventKind::RunReleased { reason: "late".to_owned() };
        let event = Event { seq: row.next, at: row.at, epoch, clock: None, with_next: false, path: path(""), kind };
        let summary = RunSummary { next: row.next.next(), ..row.clone() };
        let index = Index { summary, pending: None };
        Append {
            expected: row.next,
            epoch,
            events: vec![Arc::new(event)],
            index,
            deliveries: Vec::new(),
            timers: Vec::new(),
            snapshot: None,
            prompts: None,
            sinks: Vec::new(),
        }
    };

    let stale = bench.store.append(&run_id(), append(Some(Epoch(held.0 - 1)))).await;

    assert_eq!(stale, Err(StoreError::Fenced { current: held }), "the number is right, the attachment is not");
    drop(second);
}

async fn promise_04_two_concurrent_starts_with_one_id_get_the_same_run<S: Fresh>() {
    for twice in [false, true] {
        let bench = Bench::on(crowded(S::fresh()));
        let shop = workshop(&Journal::default(), tools);
        let (one, other) = (bench.process("one", one_gated), bench.process("other", one_gated));
        let other = if twice { &one } else { &other };

        let (a, b) = tokio::join!(bench.start(&one, &shop), bench.start(other, &shop));

        assert_eq!((a.id(), b.id()), (&run_id(), &run_id()));
        assert_eq!(bench.waits(&a).await, ["Work/0.0"]);
        assert_eq!(bench.waits(&b).await, ["Work/0.0"]);
        assert_eq!(named(&bench.checked().await, "BRAIN_START").len(), 1);
    }
}
