//! Webhooks that arrive before their wait, and duplicates: promise 22.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt as _;
use positronic_core::machine::Refusal;
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{Seq, SignalId, SignalKind, Start, Timestamp};
use positronic_core::runner::{Client, Delivered, Fork, RunHandle, Settled, SignalError};
use positronic_core::store::prelude::*;
use positronic_core::store::{EventStore, MemoryStore, StoreError};
use positronic_store_suite::{Fault, FaultyStore};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::bench::{Bench, by, named, refusal, run_id, signal};
use crate::stores::{Fresh, on_both_stores};
use crate::support::{
    Board, Job, Journal, Shop, ShopLoop, batch, done, path, result, settled, tools, waits, work, workshop,
};

on_both_stores! {
    promise_22_early_webhook_is_stored_and_matched
    promise_22_duplicate_webhook_counts_once
    promise_22_one_of_two_waiting_runs_gets_the_webhook
    promise_22_mailbox_entry_expires_and_an_invalid_one_is_refused
    promise_22_process_started_after_a_crash_finds_the_mailbox_entry
    promise_22_one_of_two_runs_beginning_to_wait_gets_the_earlier_webhook
    promise_22_temporarily_unreadable_mailbox_is_read_later
    promise_22_unusable_mailbox_entry_hides_no_later_one
    promise_22_failure_during_delivery_loses_no_webhook
    promise_22_webhook_sent_to_its_run_and_delivered_counts_once
    promise_22_imported_run_finds_its_mailbox_entry
    promise_22_fork_takes_no_webhook_of_its_origin
    promise_22_wait_that_refuses_a_webhook_hides_no_other_wait
    promise_22_each_webhook_finds_its_wait
    promise_22_earliest_webhook_counts_whatever_the_order_of_waits
    promise_22_first_payload_counts_when_an_id_is_reused
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Note {
    text: String,
}

fn asking(config: ShopLoop) -> ShopLoop {
    tools(config).tool("ask", |t| {
        t.wait(|job: &Job, _: &Shop| {
            ["slack", "mail"].map(|name| {
                webhook::<Note>(name).on(&job.id).resume(|board: &mut Board, note| board.done.push(note.text))
            })
        })
        .execute(work)
    })
}

fn says(place: &str) -> Reply {
    match place {
        "Work/0" => batch([("gated", "first")]),
        "Work/1" => batch([("ask", "a")]),
        _ => done(),
    }
}

fn note(text: &str) -> Value {
    // The keys have no order and are stored sorted, even if `serde_json` preserves their order.
    json!({ "text": text, "from": "slack" })
}

async fn deliver(client: &Client, id: &str, webhook: &str, identifier: &str, text: &str) -> Delivered {
    client.deliver(SignalId::from(id), webhook, identifier, note(text), by("slack")).await.unwrap()
}

async fn begun(bench: &Bench<impl EventStore + Clone>, id: &str) -> (Runner, RunHandle<Board>) {
    let process = bench.process(id, says);
    let start = Start { id: Some(SignalId::new(id)), ..Start::default() };
    let run = process.start_with(&workshop(&Journal::default(), asking), (), start).await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.0"]);
    (process, run)
}

async fn promise_22_early_webhook_is_stored_and_matched<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let (_process, run) = begun(&bench, "run").await;
    let client = bench.client("machine");
    assert_eq!(deliver(&client, "one", "slack", "a", "early").await, Delivered::Kept);
    assert_eq!(deliver(&client, "other", "slack", "b", "for another").await, Delivered::Kept);
    // The same webhook again is the same mailbox entry.
    assert_eq!(deliver(&client, "one", "slack", "a", "early").await, Delivered::Kept);
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert_eq!(bench.waits(&run).await, ["Work/0.0"]);

    run.approve(&path("Work/0.0"), "ann").await.unwrap();

    assert!(matches!(settled(&run).await, Settled::Completed(_)), "{:?}", settled(&run).await);
    assert_eq!(run.document(), json!({"done": ["first", "a", "early"]}));
    let log = bench.checked().await;
    assert_eq!(named(&log, "LOOP_RESUME"), ["Work/1.0"]);
    // A much later duplicate gets the original outcome.
    let seq = log.iter().find(|event| event.kind.name() == "LOOP_RESUME").unwrap().seq;
    assert_eq!(deliver(&client, "one", "slack", "a", "early").await, Delivered::To { run: run_id(), seq });
    assert_eq!(bench.log().await, log);
    let left = bench.store.mail("slack", "b", Timestamp(0), Timestamp(0)).await.unwrap();
    assert_eq!(left.unwrap().id, SignalId::from("other"), "no call has waited for it");
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Count {
    count: u32,
}

/// A call waits for slack or mail, in this order; both have come before, mail first.
async fn promise_22_earliest_webhook_counts_whatever_the_order_of_waits<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let (_process, run) = begun(&bench, "run").await;
    let client = bench.client("machine");
    assert_eq!(deliver(&client, "by mail", "mail", "a", "mail").await, Delivered::Kept);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(deliver(&client, "by slack", "slack", "a", "slack").await, Delivered::Kept);

    run.approve(&path("Work/0.0"), "ann").await.unwrap();

    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(run.document(), json!({"done": ["first", "a", "mail"]}));
}

/// Three calls wait for the same identifier: one for another name, one too briefly, and one that accepts it.
async fn promise_22_wait_that_refuses_a_webhook_hides_no_other_wait<S: Fresh>() {
    let three = |config: ShopLoop| {
        let hours = |hours| Duration::from_hours(hours);
        let note = move |long| move |job: &Job, _: &Shop| [webhook::<Note>("slack").on(&job.id).timeout(hours(long))];
        let count = |job: &Job, _: &Shop| [webhook::<Count>("slack").on(&job.id)];
        let tools = tools(config).tool("count", |t| t.wait(count).execute(work));
        tools.tool("brief", |t| t.wait(note(1)).execute(work)).tool("long", |t| t.wait(note(24)).execute(work))
    };
    let bench = Bench::<S>::fresh();
    let says = |_: &str| batch([("count", "a"), ("brief", "a"), ("long", "a")]);
    let run = bench.start(&bench.process("first", says), &workshop(&Journal::default(), three)).await;
    assert_eq!(waits(&run).await, ["Work/0.0", "Work/0.1", "Work/0.2"]);
    // No worker has the copy, so no expiry is recorded yet.
    let left = bench.cut(bench.log().await.len()).await;
    tokio::time::advance(Duration::from_hours(2)).await;

    let delivered = deliver(&left.client("machine"), "hook", "slack", "a", "in time").await;

    assert!(matches!(delivered, Delivered::To { .. }), "{delivered:?}");
    assert_eq!(named(&left.log().await, "LOOP_RESUME"), ["Work/0.2"]);
    let late = left.client("machine").deliver(SignalId::from("late"), "slack", "a", note("twice"), by("slack")).await;
    assert!(matches!(late.map_err(refusal), Err(Refusal::Misfit { .. })), "what waits takes no note");
}

/// A fork waits for the webhook of its origin, under an id that a list may show earlier.
async fn promise_22_fork_takes_no_webhook_of_its_origin<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let (process, run) = begun(&bench, "run").await;
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work/1.0"]);
    let (client, last) = (bench.client("a"), Seq(run.state().next.0 - 1));
    let fork = client.fork(&run_id(), last, Fork::default()).await.unwrap();
    assert!(fork < run_id(), "{fork} is listed first");

    let one = deliver(&client, "one", "slack", "a", "for the origin").await;

    assert!(matches!(&one, Delivered::To { run, .. } if *run == run_id()), "{one:?}");
    result(&run).await;
    let two = deliver(&client, "two", "slack", "a", "for the fork").await;
    assert!(matches!(&two, Delivered::To { run, .. } if *run == fork), "{two:?}");
    // No call waits any more; a later entry in the mailbox does not go to a fork of an earlier moment.
    assert_eq!(deliver(&client, "three", "slack", "a", "for any later waiter").await, Delivered::Kept);
    let process =
        process.definition(positronic_core::dsl::IntoBrain::definition(&workshop(&Journal::default(), asking)));
    let later = process.fork(&run_id(), last, Fork::default()).await.unwrap();
    assert_eq!(waits(&later).await, ["Work/1.0"]);
    assert_eq!(
        bench.store.mail("slack", "a", Timestamp(0), Timestamp(0)).await.unwrap().unwrap().id,
        SignalId::from("three")
    );
}

async fn promise_22_each_webhook_finds_its_wait<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let twice =
        |place: &str| if place == "Work/0" { batch([("ask", "a"), ("ask", "b"), ("ask", "c")]) } else { done() };
    let process = bench.process("run", twice);
    let client = bench.client("machine");
    deliver(&client, "one", "slack", "c", "for c").await;
    let run = bench.start(&process, &workshop(&Journal::default(), asking)).await;
    assert_eq!(waits(&run).await, ["Work/0.0", "Work/0.1"]);

    deliver(&client, "two", "mail", "b", "for b").await;
    assert_eq!(bench.waits(&run).await, ["Work/0.0"]);
    deliver(&client, "three", "slack", "a", "for a").await;

    result(&run).await;
    let answers = [("a", "slack"), ("b", "mail"), ("c", "slack")].map(|(id, webhook)| {
        format!(r#"{{"answer":{{"from":"slack","text":"for {id}"}},"result":"{id} done","webhook":"{webhook}"}}"#)
    });
    assert_eq!(bench.last_results(), answers);
}

async fn promise_22_duplicate_webhook_counts_once<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let (_process, run) = begun(&bench, "run").await;
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work/1.0"]);
    let (one, other) = (bench.client("one"), bench.client("other"));

    let (a, b) =
        tokio::join!(deliver(&one, "hook", "slack", "a", "once"), deliver(&other, "hook", "slack", "a", "once"));

    assert_eq!(a, b);
    assert!(matches!(a, Delivered::To { .. }));
    assert!(matches!(bench.settled(&run).await, Settled::Completed(_)));
    assert_eq!(run.document(), json!({"done": ["first", "a", "once"]}));
    // Another webhook for the same wait came too late: it is stored for another waiter.
    assert_eq!(deliver(&one, "late", "slack", "a", "twice").await, Delivered::Kept);
    assert_eq!(named(&bench.checked().await, "LOOP_RESUME").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn promise_22_concurrently_delivered_webhook_is_not_reported_as_stored() {
    for another_waits in [false, true] {
        let (faster, hit) = (Arc::<OnceLock<Client>>::default(), Arc::<AtomicBool>::default());
        let (other, is_hit) = (Arc::clone(&faster), Arc::clone(&hit));
        // The other delivery happens between this one's check of the mailbox and its check of the waits.
        let store = FaultyStore::new(MemoryStore::new(), |_, _| None).reading(move |method| {
            let client = other.get().filter(|_| method == "pending")?;
            if !is_hit.swap(true, Ordering::SeqCst) {
                let delivered = deliver(client, "hook", "slack", "a", "once").now_or_never();
                assert!(matches!(delivered, Some(Delivered::To { .. })), "{delivered:?}");
            }
            None
        });
        let bench = Bench::on(store);
        let (_process, run) = begun(&bench, "run").await;
        run.approve(&path("Work/0.0"), "ann").await.unwrap();
        assert_eq!(waits(&run).await, ["Work/1.0"]);
        let (_two, second) = begun(&bench, "second").await;
        if another_waits {
            second.approve(&path("Work/0.0"), "ann").await.unwrap();
            assert_eq!(waits(&second).await, ["Work/1.0"]);
        }
        faster.set(bench.client("other")).unwrap();

        let delivered = deliver(&bench.client("one"), "hook", "slack", "a", "once").await;

        assert!(hit.load(Ordering::SeqCst));
        assert!(matches!(&delivered, Delivered::To { run, .. } if *run == run_id()), "{delivered:?}");
        assert_eq!(waits(&second).await.len(), 1, "it counts once");
    }
}

async fn promise_22_first_payload_counts_when_an_id_is_reused<S: Fresh>() {
    let broken = Arc::<AtomicBool>::default();
    let is_broken = Arc::clone(&broken);
    let store = FaultyStore::new(S::fresh(), move |_, _| {
        let failed = || Fault::Refused(StoreError::Failed { message: "the disk is full".to_owned() });
        is_broken.load(Ordering::SeqCst).then(failed)
    });
    let bench = Bench::on(store);
    let (_process, run) = begun(&bench, "run").await;
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work/1.0"]);
    let client = bench.client("machine");
    broken.store(true, Ordering::SeqCst);
    let first = client.deliver(SignalId::from("hook"), "slack", "a", note("first"), by("slack")).await;
    assert!(matches!(first, Err(SignalError::Store(_))), "{first:?}");
    broken.store(false, Ordering::SeqCst);

    deliver(&client, "hook", "slack", "a", "second").await;

    assert!(matches!(bench.settled(&run).await, Settled::Completed(_)));
    assert_eq!(run.document(), json!({"done": ["first", "a", "first"]}));
}

async fn promise_22_one_of_two_waiting_runs_gets_the_webhook<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let (_one, first) = begun(&bench, "run").await;
    let (_two, second) = begun(&bench, "second").await;
    let client = bench.client("machine");
    deliver(&client, "hook", "slack", "a", "early").await;
    first.approve(&path("Work/0.0"), "ann").await.unwrap();
    second.approve(&path("Work/0.0"), "ann").await.unwrap();
    let mut ends = [bench.settled(&first).await, bench.settled(&second).await];
    ends.sort_by_key(|end| matches!(end, Settled::Waiting(_)));

    assert!(matches!(&ends[0], Settled::Completed(_)), "{ends:?}");
    let Settled::Waiting(pending) = &ends[1] else { panic!("{ends:?}") };
    assert_eq!(pending[0].call, path("Work/1.0"));
    deliver(&client, "hook 2", "slack", "a", "second").await;
    for run in [first, second] {
        assert!(matches!(bench.settled(&run).await, Settled::Completed(_)));
    }
}

async fn promise_22_one_of_two_runs_beginning_to_wait_gets_the_earlier_webhook<S: Fresh>() {
    for _ in 0..20 {
        let bench = Bench::on(FaultyStore::new(S::fresh(), |_, _| Some(Fault::Slow(Duration::from_millis(1)))));
        let ((_one, first), (_two, second)) = (begun(&bench, "run").await, begun(&bench, "second").await);
        let client = bench.client("machine");
        deliver(&client, "hook", "slack", "a", "early").await;
        let gate = path("Work/0.0");
        let (yes, also) = tokio::join!(first.approve(&gate, "ann"), second.approve(&gate, "ann"));
        yes.unwrap();
        also.unwrap();
        let ends = [bench.settled(&first).await, bench.settled(&second).await];

        assert_eq!(ends.iter().filter(|end| matches!(end, Settled::Completed(_))).count(), 1, "{ends:?}");
        assert_eq!(ends.iter().filter(|end| matches!(end, Settled::Waiting(_))).count(), 1, "{ends:?}");
        let winner = if matches!(ends[0], Settled::Completed(_)) { first.id() } else { second.id() };
        let again = deliver(&client, "hook", "slack", "a", "early").await;
        assert!(matches!(&again, Delivered::To { run, .. } if run == winner), "{again:?}");
    }
}

async fn promise_22_temporarily_unreadable_mailbox_is_read_later<S: Fresh>() {
    let (fails, memory) = (Arc::new(AtomicBool::new(false)), S::fresh());
    let is_broken = Arc::clone(&fails);
    let store = FaultyStore::new(memory, |_, _| None).reading(move |method| {
        let hit = method == "mail" && is_broken.load(Ordering::SeqCst);
        hit.then(|| StoreError::Unusable { message: "the disk is gone".to_owned() })
    });
    let bench = Bench::on(store);
    let (process, run) = begun(&bench, "run").await;
    deliver(&bench.client("machine"), "hook", "slack", "a", "early").await;
    fails.store(true, Ordering::SeqCst);
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    assert!(matches!(settled(&run).await, Settled::Stopped(_)));
    fails.store(false, Ordering::SeqCst);
    drop(run);

    let _service = process.brain(workshop(&Journal::default(), asking)).serve();

    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(bench.client("people").state(&run_id()).await.unwrap().has_ended());
    assert_eq!(named(&bench.checked().await, "LOOP_RESUME"), ["Work/1.0"]);
}

async fn promise_22_mailbox_entry_expires_and_an_invalid_one_is_refused<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let (_process, run) = begun(&bench, "run").await;
    let client = bench.client("machine");
    deliver(&client, "old", "slack", "a", "too old").await;
    tokio::time::advance(Client::KEEP + Duration::from_secs(1)).await;
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work/1.0"], "an expired entry answers nothing");

    let before = bench.log().await;
    let odd = client.deliver(SignalId::from("odd"), "slack", "a", json!({"txt": 1}), by("slack")).await.unwrap_err();
    assert!(matches!(refusal(odd), Refusal::Misfit { .. }));
    assert_eq!(bench.log().await, before);
    assert!(
        bench
            .store
            .mail("slack", "a", Timestamp(0), Timestamp(0))
            .await
            .unwrap()
            .is_none_or(|mail| mail.id != SignalId::from("odd"))
    );

    assert!(matches!(deliver(&client, "good", "mail", "a", "by mail").await, Delivered::To { .. }));
    assert!(matches!(bench.settled(&run).await, Settled::Completed(_)));
    assert_eq!(run.document(), json!({"done": ["first", "a", "by mail"]}));
}

async fn promise_22_process_started_after_a_crash_finds_the_mailbox_entry<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let (_process, run) = begun(&bench, "run").await;
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    waits(&run).await;
    let log = bench.log().await;
    let asked = crate::bench::behind(&log, "Work/1.0", "LOOP_TOOL_START");
    // It died right after it recorded the wait, before it checked for the earlier webhook.
    for served in [false, true] {
        let dead = Bench::<S>::fresh();
        deliver(&dead.client("machine"), "hook", "slack", "a", "meanwhile").await;
        dead.client("copy").import(&run_id(), &log[..asked + 1]).await.unwrap();
        let process = dead.process("second", says).brain(workshop(&Journal::default(), asking));
        // No signal is sent.
        let _service = served.then(|| process.serve());
        let run = if served { process.open(&run_id()).await } else { Ok(process.resume(&run_id()).await.unwrap()) };
        let run = run.unwrap();
        result(&run).await;
        assert_eq!(named(&dead.checked().await, "LOOP_RESUME"), ["Work/1.0"]);
    }
    // It died before it recorded the wait; then the webhook came, and the tool is repeatable.
    for until in [asked, asked + 1] {
        let cut = bench.cut(until).await;
        let client = cut.client("machine");
        deliver(&client, "hook", "slack", "a", "meanwhile").await;
        let shop = workshop(&Journal::default(), asking);
        let run = cut.process("second", says).brain(shop).resume(&run_id()).await.unwrap();
        assert!(matches!(settled(&run).await, Settled::Completed(_)), "after {until}");
        let noted = named(&cut.checked().await, "LOOP_RESUME").len();
        // An unrepeatable call is interrupted and waits for nothing.
        assert_eq!(noted, usize::from(until > asked));
    }
}

async fn promise_22_unusable_mailbox_entry_hides_no_later_one<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let (_process, run) = begun(&bench, "run").await;
    let client = bench.client("machine");
    deliver(&client, "old", "slack", "a", "too old").await;
    tokio::time::advance(Client::KEEP - Duration::from_secs(10)).await;
    let odd = client.deliver(SignalId::from("odd"), "slack", "a", json!({"txt": 1}), by("slack")).await;
    assert_eq!(odd.unwrap(), Delivered::Kept, "no call waits yet");
    tokio::time::advance(Duration::from_secs(1)).await;
    deliver(&client, "good", "slack", "a", "early").await;
    tokio::time::advance(Duration::from_secs(20)).await;

    run.approve(&path("Work/0.0"), "ann").await.unwrap();

    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(run.document(), json!({"done": ["first", "a", "early"]}));
    let now = Timestamp(0);
    assert!(
        bench
            .store
            .mail("slack", "a", Timestamp(0), now)
            .await
            .unwrap()
            .is_none_or(|mail| mail.id == SignalId::from("old"))
    );
}

async fn promise_22_failure_during_delivery_loses_no_webhook<S: Fresh>() {
    let broken = Arc::<AtomicBool>::default();
    let is_broken = Arc::clone(&broken);
    let store = FaultyStore::new(S::fresh(), move |run, append| {
        let resumes = append.events.iter().any(|event| event.kind.name() == "LOOP_RESUME");
        let failed = || Fault::Refused(StoreError::Failed { message: "the disk is full".to_owned() });
        (resumes && *run == run_id() && is_broken.load(Ordering::SeqCst)).then(failed)
    });
    let bench = Bench::on(store);
    let (_one, run) = begun(&bench, "run").await;
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work/1.0"]);
    let client = bench.client("machine");
    broken.store(true, Ordering::SeqCst);
    let hook = || client.deliver(SignalId::from("hook"), "slack", "a", note("once"), by("slack"));

    assert!(matches!(hook().await, Err(SignalError::Store(_))));
    let kept = bench.store.mail("slack", "a", Timestamp(0), Timestamp(0)).await.unwrap();
    assert_eq!(kept.unwrap().id, SignalId::from("hook"));

    // Another waiter for the same identifier gets it, although the first one's log cannot be written.
    let (_two, second) = begun(&bench, "second").await;
    second.approve(&path("Work/0.0"), "ann").await.unwrap();
    assert!(matches!(bench.settled(&second).await, Settled::Completed(_)));
    let (_three, third) = begun(&bench, "third").await;
    third.approve(&path("Work/0.0"), "ann").await.unwrap();
    assert_eq!(waits(&third).await, ["Work/1.0"]);
    let next = deliver(&client, "next", "slack", "a", "for the third").await;
    assert!(matches!(&next, Delivered::To { run, .. } if run == third.id()), "{next:?}");
}

async fn promise_22_webhook_sent_to_its_run_and_delivered_counts_once<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let twice = |place: &str| if ["Work/0", "Work/1"].contains(&place) { batch([("ask", "a")]) } else { done() };
    let process = bench.process("run", twice);
    let run = bench.start(&process, &workshop(&Journal::default(), asking)).await;
    assert_eq!(waits(&run).await, ["Work/0.0"]);
    let client = bench.client("machine");
    let (webhook, identifier, payload) = ("slack".to_owned(), "a".to_owned(), note("once"));
    let sent = signal("hook", SignalKind::Webhook { name: webhook, identifier, payload });
    let seq = client.send(&run_id(), sent).await.unwrap();
    assert_eq!(bench.waits(&run).await, ["Work/1.0"]);

    let delivered = deliver(&client, "hook", "slack", "a", "once").await;

    assert_eq!(delivered, Delivered::To { run: run_id(), seq });
    assert_eq!(bench.waits(&run).await, ["Work/1.0"], "it was the answer to the first question");
    assert_eq!(
        bench.store.mail("slack", "a", Timestamp(0), Timestamp(0)).await.unwrap(),
        None,
        "no other call gets it"
    );
}

async fn promise_22_imported_run_finds_its_mailbox_entry<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let (_process, run) = begun(&bench, "run").await;
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    waits(&run).await;
    let mut log = bench.log().await;
    let claim = log.last().unwrap().epoch;
    let released = positronic_core::record::EventKind::RunReleased { reason: "it moves".to_owned() };
    let (seq, at) = (log.last().unwrap().seq.next(), log.last().unwrap().at);
    let path = positronic_core::record::Path::root();
    log.push(std::sync::Arc::new(positronic_core::record::Event {
        seq,
        at,
        epoch: claim,
        clock: None,
        with_next: false,
        path,
        kind: released,
    }));

    let there = Bench::<S>::fresh();
    deliver(&there.client("machine"), "hook", "slack", "a", "before it came").await;
    there.client("copy").import(&run_id(), &log).await.unwrap();
    let process = there.process("second", says).brain(workshop(&Journal::default(), asking));
    let _service = process.serve();

    let run = process.open(&run_id()).await.unwrap();
    result(&run).await;
    assert_eq!(named(&there.checked().await, "LOOP_RESUME"), ["Work/1.0"]);
}
