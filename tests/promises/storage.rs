//! Storage and lists: promises 13 and 19.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use positronic_core::machine::{RunState, pending, status};
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{
    Event, Pending, PendingKind, RunId, RunSummary, Seq, SignalId, SignalKind, Start, Status, Usage,
};
use positronic_core::runner::{Fork, Settled};
use positronic_core::store::{
    Append, BoxFuture, EventStore, PendingFilter, RunFilter, Snapshot, StoreError, StoreWrapper,
};

use crate::bench::{Bench, by, run_id};
use crate::stores::{Fresh, on_both_stores};
use crate::support::{Board, Job, Journal, Shop, ShopLoop, batch, done, path, settled, tools, waits, work, workshop};

on_both_stores! {
    promise_13_log_grows_linearly_with_its_transcript
    promise_13_snapshot_limits_the_events_that_a_decision_reads
    promise_13_unreadable_snapshot_loses_nothing
    promise_13_unfinished_run_is_never_pruned
    promise_13_fork_at_any_event_works_before_a_snapshot_and_outlives_its_origin
    promise_19_pending_items_of_all_runs_are_listed_without_a_log
    promise_13_repeatedly_released_run_has_snapshots
}

/// Counts the events read.
#[derive(Clone)]
struct Counting<S>(S, Arc<AtomicUsize>);

impl<S> Counting<S> {
    fn over(store: S) -> Self {
        Self(store, Arc::default())
    }

    /// Returns the number of events read since the last call.
    fn take(&self) -> usize {
        self.1.swap(0, Ordering::SeqCst)
    }
}

impl<S: EventStore> StoreWrapper for Counting<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.0
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        let counted = self.0.read(run, from, most).inspect(|read| {
            self.1.fetch_add(read.as_ref().map_or(0, Vec::len), Ordering::SeqCst);
        });
        Box::pin(counted)
    }
}

/// A loop of some iterations of a kilobyte each that then waits for a person.
async fn long(bench: &Bench<impl EventStore + Clone>, iterations: u32) {
    let last = format!("Work/{iterations}");
    let process = bench.process("work", move |place| {
        if place == last { batch([("gated", "end")]) } else { batch([("read", "a")]).and_text("x".repeat(1000)) }
    });
    let run = bench.start(&process, &long_shop()).await;
    assert_eq!(waits(&run).await, [format!("Work/{iterations}.0")]);
}

fn long_shop() -> Brain<(), Board> {
    workshop(&Journal::default(), |config| tools(config).unlimited())
}

async fn promise_13_log_grows_linearly_with_its_transcript<S: Fresh>() {
    let mut sizes = Vec::new();
    for iterations in [10, 110, 210] {
        let bench = Bench::<S>::fresh();
        long(&bench, iterations).await;
        let bytes: usize = bench.log().await.iter().map(|event| event.to_json().unwrap().len()).sum();
        sizes.push((bytes, bench.transcript().await.len()));
    }
    let grown = |a: (usize, usize), b: (usize, usize)| (b.0 - a.0, b.1 - a.1);
    let (first, second) = (grown(sizes[0], sizes[1]), grown(sizes[1], sizes[2]));
    // Only the numbers of events and iterations get longer.
    assert!(
        second.0.abs_diff(first.0) * 50 < first.0,
        "an iteration costs the same at every position: {first:?} {second:?}"
    );
    assert!(second.0 < 3 * second.1, "{} bytes for a transcript of {}", second.0, second.1);
}

async fn promise_13_snapshot_limits_the_events_that_a_decision_reads<S: Fresh>() {
    let store = Counting::over(S::fresh());
    let bench = Bench::on(store.clone());
    long(&bench, 150).await;
    let events = bench.log().await.len();
    assert!(events > 600, "{events}");
    store.take();

    bench.client("people").approve(&run_id(), &path("Work/150.0"), by("ann")).await.unwrap();

    let read = store.take();
    assert!(read < 300, "{read} of {events} events were read");
}

/// Corrupts every snapshot.
async fn corrupt(store: &impl EventStore, spoiled: Snapshot) {
    let next = store.run(&run_id()).await.unwrap().next;
    let message = positronic_core::record::EventKind::LoopMessage {
        text: "psst".to_owned(),
        files: Vec::new(),
        message_id: None,
        from: positronic_core::record::Speaker::Person,
        caller_tools: None,
        signal: None,
        actor: by("ann"),
    };
    let at = store.run(&run_id()).await.unwrap().at;
    let event = Event { seq: next, at, epoch: None, clock: None, with_next: false, path: path("Work"), kind: message };
    let summary = RunSummary { next: next.next(), ..store.run(&run_id()).await.unwrap() };
    let index = positronic_core::store::Index { summary, pending: None };
    let append = Append {
        expected: next,
        epoch: None,
        events: vec![Arc::new(event)],
        index,
        deliveries: Vec::new(),
        timers: Vec::new(),
        snapshot: Some(spoiled),
        prompts: None,
        sinks: Vec::new(),
    };
    store.append(&run_id(), append).await.unwrap();
}

async fn promise_13_unreadable_snapshot_loses_nothing<S: Fresh>() {
    let spoiled: [fn(Snapshot) -> Snapshot; 3] = [
        |snapshot| Snapshot { content: snapshot.content.replace('{', "["), ..snapshot },
        |snapshot| Snapshot { version: snapshot.version + 1, ..snapshot },
        |snapshot| Snapshot { next: Seq(snapshot.next.0 - 1), ..snapshot },
    ];
    for spoiled in spoiled {
        let bench = Bench::<S>::fresh();
        long(&bench, 150).await;
        let snapshot = bench.store.snapshot(&run_id()).await.unwrap().unwrap();
        // A reader of a corrupt snapshot would see another state than the log's.
        let misread = snapshot.content.replace("Do the jobs.", "Do no jobs.");
        assert_ne!(misread, snapshot.content);
        corrupt(&bench.store, spoiled(Snapshot { content: misread, ..snapshot })).await;
        let client = bench.client("people");
        let log = bench.log().await;
        let replayed = RunState::replay(log.iter().map(|event| &**event)).unwrap();
        assert_eq!(client.state(&run_id()).await.unwrap(), replayed);
        client.approve(&run_id(), &path("Work/150.0"), by("ann")).await.unwrap();
    }
}

async fn promise_13_unfinished_run_is_never_pruned<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    long(&bench, 3).await;
    let over = bench.process("over", |_| done());
    let start = Start { id: Some(SignalId::new("over")), ..Start::default() };
    let ended = over.start_with(&workshop(&Journal::default(), tools), (), start).await.unwrap();
    settled(&ended).await;
    let before = bench.log().await;

    assert_eq!(bench.store.remove(&[run_id(), RunId::new("over"), RunId::new("none")]).await.unwrap(), 1);

    assert_eq!(bench.log().await, before);
    assert!(matches!(bench.store.run(&RunId::new("over")).await, Err(StoreError::NoSuchRun { .. })));
    bench.declare_dead().await;
    let run = bench.process("second", |_| done()).brain(long_shop()).resume(&run_id()).await.unwrap();
    run.approve(&path("Work/3.0"), "ann").await.unwrap();
    assert!(matches!(bench.settled(&run).await, Settled::Completed(_)));
}

async fn promise_13_fork_at_any_event_works_before_a_snapshot_and_outlives_its_origin<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    long(&bench, 150).await;
    let log = bench.log().await;
    let snapshot = bench.store.snapshot(&run_id()).await.unwrap().unwrap();
    assert!(Seq(100) < snapshot.next && snapshot.next.index() < log.len());
    let process = bench.process("forks", |_| done()).brain(long_shop());
    let client = process.client();
    let last = log.last().unwrap().seq;

    let early = process.fork(&run_id(), Seq(100), Fork::default()).await.unwrap();
    let late = client.fork(&run_id(), last, Fork::default()).await.unwrap();

    assert!(matches!(settled(&early).await, Settled::Completed(_)));
    assert_eq!(bench.log().await, log, "the original is as it was");
    client.signal(&run_id(), SignalKind::Cancel { reason: None }, by("ann")).await.unwrap();
    assert_eq!(bench.store.remove(&[run_id()]).await.unwrap(), 1);
    let fork = client.events(&late, Seq(0)).await.unwrap();
    let same = |a: &Arc<Event>, b: &Arc<Event>| (&a.path, &a.kind) == (&b.path, &b.kind);
    assert!(fork[1..log.len()].iter().zip(&log[1..]).all(|(fork, original)| same(fork, original)));
    // A fork has fork points and continues, although its origin is removed.
    let again = process.fork(&late, Seq(100), Fork::default()).await.unwrap();
    assert!(matches!(settled(&again).await, Settled::Completed(_)));
    assert_eq!(again.document(), early.document());
    client.approve(&late, &path("Work/150.0"), by("ann")).await.unwrap();
    let late = process.resume(&late).await.unwrap();
    assert!(matches!(settled(&late).await, Settled::Completed(_)));
    assert_eq!(late.document()["done"].as_array().unwrap().len(), 151);
}

fn asking(config: ShopLoop) -> ShopLoop {
    tools(config).tool("ask", |t| {
        t.wait(|job: &Job, _: &Shop| {
            [
                webhook::<NoArgs>("go").on(&job.id),
                webhook::<NoArgs>("late").on("x").timeout(Duration::from_secs(60)).person(),
            ]
        })
        .execute(work)
    })
}

async fn promise_19_pending_items_of_all_runs_are_listed_without_a_log<S: Fresh>() {
    let store = Counting::over(S::fresh());
    let (bench, journal) = (Bench::on(store.clone()), Journal::default());
    let shop = workshop(&journal, |config| asking(config).max_tokens(50).ask_for_more());
    let mut runs = Vec::new();
    for (id, first) in [
        ("approval", batch([("gated", "a"), ("gated", "b")])),
        ("wait", batch([("ask", "c")])),
        ("both", batch([("ask", "e"), ("gated", "d")])),
        ("paused", batch([("gated", "f")])),
        ("done", done()),
        (
            "failed",
            Reply::error(positronic_core::record::ModelError::new(
                positronic_core::record::ModelErrorKind::Auth,
                "no key",
            )),
        ),
        ("cancelled", batch([("gated", "g")])),
        ("more", batch([("safe", "h")])),
    ] {
        let process = bench.process(id, move |place| {
            let reply = if place == "Work/0" { first.clone() } else { done() };
            reply.usage(Usage { input: if id == "more" { 99 } else { 5 }, output: 2, ..Usage::default() })
        });
        let user = Some("ann".to_owned()).filter(|_| id != "done");
        let start = Start { id: Some(SignalId::new(id)), user, ..Start::default() };
        let run = process.start_with(&shop, (), start).await.unwrap();
        settled(&run).await;
        tokio::time::advance(Duration::from_secs(1)).await;
        runs.push((run, process));
    }
    runs[3].0.pause().await.unwrap();
    tokio::time::advance(Duration::from_secs(1)).await;
    runs[3].0.message("hurry", "ann").await.unwrap();
    runs[6].0.cancel("no").await.unwrap();
    for (run, _) in &runs {
        settled(run).await;
    }
    store.take();

    let listed = store.pending(&PendingFilter::default()).await.unwrap();
    let rows = store.runs(&RunFilter::default()).await.unwrap();

    assert_eq!(store.take(), 0, "no log is read for a list");
    let calls: Vec<_> = listed.iter().map(|waiter| format!("{} {}", waiter.run, waiter.pending.call)).collect();
    // Oldest first.
    let expected = [
        "approval Work/0.0",
        "approval Work/0.1",
        "wait Work/0.0",
        "both Work/0.1",
        "both Work/0.0",
        "paused Work/0.0",
        "more Work",
    ];
    assert_eq!(calls, expected.map(str::to_owned).to_vec());
    let ids = |rows: Vec<RunSummary>| rows.into_iter().map(|row| row.run.to_string()).collect::<Vec<_>>();
    let all = ["more", "cancelled", "failed", "done", "paused", "both", "wait", "approval"];
    assert_eq!(ids(rows.clone()), all, "the newest first");
    let list = |filter: RunFilter| {
        let store = store.clone();
        async move { ids(store.runs(&filter).await.unwrap()) }
    };
    assert_eq!(
        list(RunFilter::builder().status(vec![Status::Waiting]).build()).await,
        ["more", "both", "wait", "approval"]
    );
    assert_eq!(
        list(RunFilter::builder().status(vec![Status::Failed, Status::Completed]).build()).await,
        ["failed", "done"]
    );
    assert_eq!(list(RunFilter::builder().user("ann").limit(2).build()).await, ["more", "cancelled"]);
    assert_eq!(list(RunFilter::builder().prefix("pa").build()).await, ["paused"]);
    // Timers: a run has work at its due time.
    let wait = rows.iter().find(|row| row.run.as_str() == "wait").unwrap();
    let wake = wait.wake.unwrap();
    assert_eq!(wake.since(wait.at), Duration::from_secs(60));
    assert!(!rows.iter().any(|row| row.has_work(wait.at)));
    assert!(rows.iter().filter(|row| row.has_work(wake)).map(|row| row.run.as_str()).eq(["wait"]));
    // Their worker may have died before it checked the mailbox.
    assert_eq!(list(RunFilter::builder().due(wait.at).build()).await, ["both", "wait"]);
    let people = store.pending(&PendingFilter::builder().person(true).run(RunId::new("both")).build()).await.unwrap();
    assert_eq!(people.len(), 2);
    let hook = PendingFilter::builder().webhook(("go".to_owned(), "e".to_owned())).build();
    assert_eq!(store.pending(&hook).await.unwrap()[0].run.as_str(), "both");
    assert_eq!(store.take(), 0);

    // The list agrees with the log.
    for row in rows {
        let log = store.read(&row.run, Seq(0), usize::MAX).await.unwrap();
        let state = RunState::replay(log.iter().map(|event| &**event)).unwrap();
        let mut waiting: Vec<Pending> =
            listed.iter().filter(|waiter| waiter.run == row.run).map(|waiter| waiter.pending.clone()).collect();
        waiting.sort_by(|a, b| a.call.cmp(&b.call));
        assert_eq!(waiting, pending(&state), "{}", row.run);
        assert_eq!((row.next, row.at, row.status), (state.next, state.at, status(&state)));
        let until = |event: &Event| RunState::replay(log[..=event.seq.index()].iter().map(|event| &**event)).unwrap();
        let other = log.iter().rev().find(|event| status(&until(event)) != row.status).unwrap();
        assert_eq!(row.since, log[other.seq.next().index()].at, "{}: since when it is {:?}", row.run, row.status);
        assert_eq!(row.usage, state.root.as_ref().unwrap().usage);
        let waits = matches!(row.status, Status::Waiting | Status::Paused);
        assert!(!waits || row.why.is_some(), "{row:?}");
        for pending in waiting {
            assert_eq!(matches!(pending.kind, PendingKind::Budget(_)), row.run.as_str() == "more");
            assert!(log[pending.since.index()].path == pending.call);
        }
    }

    // An answer removes an item from the list, in every process.
    bench.client("people").approve(&RunId::new("approval"), &path("Work/0.1"), by("ann")).await.unwrap();
    let left = store.pending(&PendingFilter::builder().run(RunId::new("approval")).build()).await.unwrap();
    assert_eq!(left[0].at, listed[0].at, "it waits as long as before");
    assert_eq!(left.into_iter().map(|waiter| waiter.pending.call.to_string()).collect::<Vec<_>>(), ["Work/0.0"]);
}

async fn promise_13_repeatedly_released_run_has_snapshots<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let says = |place: &str| if place == "Work/40" { done() } else { batch([("gated", "a")]) };
    let shop = || workshop(&Journal::default(), tools);
    let run = bench.start(&bench.lingering("first", Duration::ZERO, says), shop()).await;
    assert_eq!(waits(&run).await, ["Work/0.0"]);
    drop(run);
    for iteration in 0..40 {
        let client = bench.client(&format!("people {iteration}"));
        client.approve(&run_id(), &path(&format!("Work/{iteration}.0")), by("ann")).await.unwrap();
        let process = bench.lingering(&format!("process {iteration}"), Duration::ZERO, says).brain(shop());
        settled(&process.resume(&run_id()).await.unwrap()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    let next = bench.store.run(&run_id()).await.unwrap().next;
    let snapshot = bench.store.snapshot(&run_id()).await.unwrap().expect("there is one");
    assert!(next.0 > 300 && next.0 - snapshot.next.0 < 256, "{next}, {}", snapshot.next);
}
