//! Following a run: promise 17 for those who read it as a stream.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::record::{Delta, DeltaKind, Event, EventKind, Path, RunId, Seq};
use positronic_core::runner::{Client, RunUpdate, Runner, Settled};
use positronic_core::store::{MemoryStore, StoreError};
use positronic_sqlite::SqliteStore;
use positronic_store_suite::Sample;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use crate::bench::{Bench, by, run_id};
use crate::stores::{Fresh, on_both_stores};
use crate::support::{Journal, batch, path, paths, settled, tools, waits, workshop};

on_both_stores! {
    promise_17_reader_gets_every_event_once_from_any_number
    promise_17_readers_at_any_pace_get_every_event_once_while_the_run_works
    promise_17_reader_gets_each_settled_state
}

type Updates = BoxStream<'static, Result<RunUpdate, StoreError>>;

/// How long an answer takes: a reader that begins when its run does is there before the first delta.
const ANSWERS: Duration = Duration::from_millis(1);

fn says(place: &str) -> Reply {
    let reply = match place {
        "Work/0" => batch([("safe", "a"), ("gated", "b")]).and_text("Let me see what there is to do."),
        "Work/1" => batch([("safe", "c")]),
        _ => Reply::text("All of it is done."),
    };
    reply.after(ANSWERS)
}

fn events(updates: &[RunUpdate]) -> Vec<Arc<Event>> {
    let event = |update: &RunUpdate| match update {
        RunUpdate::Event(event) => Some(Arc::clone(event)),
        _ => None,
    };
    updates.iter().filter_map(event).collect()
}

fn deltas(updates: &[RunUpdate]) -> Vec<Delta> {
    let delta = |update: &RunUpdate| match update {
        RunUpdate::Delta(delta) => Some(delta.clone()),
        _ => None,
    };
    updates.iter().filter_map(delta).collect()
}

/// Reads to the end of a run, and passes a number of turns after each update.
async fn read(updates: Updates, pace: usize) -> Vec<RunUpdate> {
    let mut read = Vec::new();
    let mut updates = updates;
    while let Some(update) = updates.next().await {
        read.push(update.unwrap());
        for _ in 0..pace {
            tokio::task::yield_now().await;
        }
    }
    read
}

/// Reads until the run settles, and returns how.
async fn until_settled(updates: &mut Updates) -> Settled {
    loop {
        if let RunUpdate::Settled(settled) = updates.next().await.unwrap().unwrap() {
            return settled;
        }
    }
}

/// Reads the available updates. The paused clock advances once the store has answered.
async fn now(updates: &mut Updates) -> Vec<RunUpdate> {
    let mut read = Vec::new();
    while let Ok(Some(update)) = tokio::time::timeout(ANSWERS, updates.next()).await {
        read.push(update.unwrap());
    }
    read
}

async fn promise_17_reader_gets_every_event_once_from_any_number<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let process = bench.process("work", says);
    let run = bench.start(&process, &workshop(&Journal::default(), tools)).await;
    waits(&run).await;
    run.approve(&path("Work/0.1"), "ann").await.unwrap();
    let end = settled(&run).await;
    let log = bench.checked().await;
    let opened = bench.process("reader", says).open(&run_id()).await.unwrap();
    for from in (0..=log.len()).chain([log.len() + 9]) {
        let rest = log.get(from..).unwrap_or_default().iter().map(|event| RunUpdate::Event(Arc::clone(event)));
        let expected: Vec<_> = rest.chain([RunUpdate::Settled(end.clone())]).collect();
        let from = Seq(from as u64);
        assert_eq!(read(run.follow(from), 0).await, expected, "the handle, from {from}");
        assert_eq!(read(opened.follow(from), 0).await, expected, "a handle of another process, from {from}");
        assert_eq!(read(bench.client("look").follow(&run_id(), from), 0).await, expected, "a client, from {from}");
    }
}

async fn promise_17_readers_at_any_pace_get_every_event_once_while_the_run_works<S: Fresh>() {
    let bench = Bench::<S>::fresh().free();
    let process = bench.process("work", says);
    let run = bench.start(&process, &workshop(&Journal::default(), tools)).await;
    let client = bench.client("reader");
    let readers: Vec<_> = (0..24_usize)
        .map(|from| {
            let (seq, pace) = (Seq(from as u64), from * 7 % 5);
            let (here, there) = (run.follow(seq), client.follow(&run_id(), seq));
            (from, tokio::spawn(read(here, pace)), tokio::spawn(read(there, pace)))
        })
        .collect();
    waits(&run).await;
    run.approve(&path("Work/0.1"), "ann").await.unwrap();
    let end = settled(&run).await;
    let log = bench.checked().await;
    for (from, here, there) in readers {
        let (here, there) = (here.await.unwrap(), there.await.unwrap());
        for read in [&here, &there] {
            assert_eq!(events(read), log.get(from..).unwrap_or_default(), "from {from}");
            assert_eq!(read.last(), Some(&RunUpdate::Settled(end.clone())), "from {from}");
        }
        assert_eq!(deltas(&there), [], "another process has no deltas");
        check_deltas(&here, from == 0);
    }
}

/// Checks that each delta comes before the answer that it belongs to; `whole` says that no delta is missing.
fn check_deltas(updates: &[RunUpdate], whole: bool) {
    let (mut answered, mut counts) = (Vec::new(), BTreeMap::<Path, u32>::new());
    for update in updates {
        match update {
            RunUpdate::Event(event) if matches!(event.kind, EventKind::LoopModelResult { .. }) => {
                answered.push(event.path.clone());
                assert!(!whole || counts.contains_key(&event.path), "{} has deltas", event.path);
            }
            RunUpdate::Delta(delta) => {
                assert!(!answered.contains(&delta.path), "{delta:?} comes after its answer");
                let count = counts.entry(delta.path.clone()).or_insert(delta.n);
                assert_eq!(delta.n, *count, "{delta:?} comes out of order");
                *count += 1;
            }
            _ => {}
        }
    }
}

async fn promise_17_reader_gets_each_settled_state<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let process = bench.lingering("work", Duration::from_secs(1), says).brain(workshop(&Journal::default(), tools));
    let run = bench.start(&process, &workshop(&Journal::default(), tools)).await;
    let opened = bench.process("reader", says).open(&run_id()).await.unwrap();
    let client = bench.client("reader");
    let mut readers = [run.follow(Seq(0)), opened.follow(Seq(0)), client.follow(&run_id(), Seq(0))];
    for updates in &mut readers {
        let Settled::Waiting(pending) = until_settled(updates).await else { panic!("the run waits") };
        assert_eq!(paths(&pending), ["Work/0.1"]);
    }
    // The worker releases the run, which changes nothing of how it has settled.
    while bench.store.run(&run_id()).await.unwrap().claim.is_some_and(|claim| !claim.released) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for updates in &mut readers {
        let released = now(updates).await;
        assert_eq!(released.len(), events(&released).len(), "{released:?}");
    }
    client.approve(&run_id(), &path("Work/0.1"), by("ann")).await.unwrap();
    for updates in &mut readers {
        assert!(matches!(until_settled(updates).await, Settled::Completed(_)));
        assert_eq!(updates.next().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn promise_17_reader_that_begins_at_the_end_of_the_log_gets_the_end() {
    let mut end = None;
    for _ in 0..2 {
        let bench = Bench::new();
        let process = bench.process("work", says);
        let run = bench.start(&process, &workshop(&Journal::default(), tools)).await;
        let from = Seq(end.unwrap_or_default());
        let readers = [run.follow(from), bench.client("reader").follow(&run_id(), from)];
        let readers = readers.map(|updates| tokio::spawn(read(updates, 0)));
        waits(&run).await;
        run.approve(&path("Work/0.1"), "ann").await.unwrap();
        let settled = settled(&run).await;
        for reader in readers {
            let read = reader.await.unwrap();
            assert_eq!(read.last(), Some(&RunUpdate::Settled(settled.clone())));
            assert!(end.is_none() || events(&read).is_empty());
        }
        end = Some(bench.log().await.len() as u64);
    }
}

#[tokio::test(start_paused = true)]
async fn promise_17_slow_reader_delays_no_run_or_reader_and_sees_its_lost_deltas() {
    let words: Vec<_> = (0..3000).map(|word| format!("word-{word}")).collect();
    let text = words.join(" ");
    let (bench, said) = (Bench::new(), text.clone());
    let process = bench.process("work", move |_| Reply::text(said.clone()).after(ANSWERS));
    let began = tokio::time::Instant::now();
    let run = bench.start(&process, &workshop(&Journal::default(), tools)).await;
    let mut updates = run.follow(Seq(0));
    let first = updates.next().await.unwrap().unwrap();
    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(began.elapsed(), ANSWERS, "the run does not wait for its reader");

    let rest = read(updates, 0).await;

    let log = bench.checked().await;
    assert_eq!([events(&[first]), events(&rest)].concat(), log);
    let counts: Vec<_> = deltas(&rest).iter().map(|delta| delta.n).collect();
    assert_eq!(counts, (0..1024).collect::<Vec<_>>(), "the rest did not fit");
    let whole = log.iter().find_map(|event| match &event.kind {
        EventKind::LoopModelResult { .. } => Some(event.to_json().unwrap()),
        _ => None,
    });
    assert!(whole.unwrap().contains(&text), "the event has all of it");
}

#[tokio::test(start_paused = true)]
async fn promise_17_dropped_reader_affects_neither_the_run_nor_other_readers() {
    let bench = Bench::new();
    let process = bench.process("work", says);
    let run = bench.start(&process, &workshop(&Journal::default(), tools)).await;
    let (mut gone, kept) = (run.follow(Seq(0)), tokio::spawn(read(run.follow(Seq(0)), 0)));
    gone.next().await.unwrap().unwrap();
    drop(gone);
    waits(&run).await;
    run.approve(&path("Work/0.1"), "ann").await.unwrap();
    settled(&run).await;

    let kept = kept.await.unwrap();

    assert_eq!(events(&kept), bench.checked().await);
    check_deltas(&kept, true);
    let said: String = deltas(&kept)
        .into_iter()
        .filter(|delta| delta.path == path("Work/2") && delta.kind == DeltaKind::Text)
        .map(|delta| delta.text)
        .collect();
    assert_eq!(said, "All of it is done.");
}

#[tokio::test(start_paused = true)]
async fn promise_17_unknown_run_yields_an_error_and_the_end() {
    let client = Bench::new().client("reader");

    let read: Vec<_> = client.follow(&run_id(), Seq(0)).collect().await;

    assert_eq!(read, [Err(StoreError::NoSuchRun { run: run_id() })]);
}

/// Two processes have a connection of their own to one file.
#[tokio::test]
async fn promise_17_reader_follows_a_run_of_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let open = || SqliteStore::open(folder.path().join("runs.db")).unwrap();
    let model = ScriptedModel::from_fn(|request| says(request.path.as_str()));
    let process = Runner::new(model).store(open());
    let run = process.start(&workshop(&Journal::default(), tools), ()).await.unwrap();
    let client = Client::new(open());
    let mut updates = client.follow(run.id(), Seq(0));
    assert!(matches!(until_settled(&mut updates).await, Settled::Waiting(_)));

    client.approve(run.id(), &path("Work/0.1"), by("ann")).await.unwrap();
    let Settled::Completed(result) = until_settled(&mut updates).await else { panic!("the run completes") };

    assert_eq!(result, json!({"done": ["a", "b", "c"]}));
    assert_eq!(updates.next().await, None);
}

/// What happens to a log and its readers.
#[derive(Debug, Clone)]
enum Deed {
    Append(usize),
    Open { from: u64 },
    Read { reader: usize, most: usize },
    Drop { reader: usize },
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        (1..300_usize).prop_map(Deed::Append),
        (0..600_u64).prop_map(|from| Deed::Open { from }),
        (0..8_usize, 0..400_usize).prop_map(|(reader, most)| Deed::Read { reader, most }),
        (0..8_usize).prop_map(|reader| Deed::Drop { reader }),
    ]
}

/// A reader, where it began, and what it has read.
struct Reader {
    from: u64,
    updates: Updates,
    read: Vec<u64>,
}

impl Reader {
    fn read(&mut self, most: usize) {
        for _ in 0..most {
            let Some(Some(update)) = self.updates.next().now_or_never() else { return };
            match update.unwrap() {
                RunUpdate::Event(event) => self.read.push(event.seq.0),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn promise_17_interleaved_appends_and_reads_cause_no_gap_or_duplicate() {
    let mut runner = TestRunner::new(Config { failure_persistence: None, cases: 64, ..Config::default() });
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let checked = runner.run(&prop::collection::vec(deed(), 1..60), |deeds| {
        tokio.block_on(async {
            let store = MemoryStore::new();
            let client = Client::new(store.clone());
            let mut sample = Sample::new("run").says("first").appended(&store).await;
            let (mut readers, mut gone, mut next) = (Vec::<Reader>::new(), Vec::new(), 1);
            for deed in deeds {
                match deed {
                    Deed::Append(many) => {
                        next += many as u64;
                        sample = (0..many).fold(sample, |run, _| run.says("more")).appended(&store).await;
                    }
                    Deed::Open { from } => {
                        let updates = client.follow(&RunId::new("run"), Seq(from));
                        readers.push(Reader { from, updates, read: Vec::new() });
                    }
                    Deed::Read { reader, most } => {
                        if let Some(reader) = readers.get_mut(reader) {
                            reader.read(most);
                        }
                    }
                    Deed::Drop { reader } => {
                        if reader < readers.len() {
                            gone.push(readers.remove(reader));
                        }
                    }
                }
            }
            for reader in &mut readers {
                reader.read(usize::MAX);
                assert_eq!(reader.read, (reader.from..next).collect::<Vec<_>>());
            }
            for Reader { from, read, .. } in gone {
                assert_eq!(read, (from..).take(read.len()).collect::<Vec<_>>());
            }
        });
        Ok(())
    });
    checked.unwrap();
}
