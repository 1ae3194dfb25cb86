//! Consecutive feeds of a sink.

use super::*;
use crate::dsl::brain;
use crate::model::scripted::ScriptedModel;
use crate::record::Start;
use crate::runner::Runner;
use crate::sink::Recorder;
use crate::store::MemoryStore;

struct Bench {
    recorder: Recorder,
    feeds: Arc<Feeds>,
    memory: MemoryStore,
    store: Arc<dyn EventStore>,
    run: RunId,
}

fn bench() -> Bench {
    let (memory, recorder) = (MemoryStore::new(), Recorder::default());
    let feeds = Feeds::new(Arc::new(recorder.clone()));
    Bench { recorder, feeds, store: Arc::new(memory.clone()), memory, run: RunId::from("run") }
}

/// Runs a brain to its end and returns the number of its events.
async fn ran(bench: &Bench, steps: usize) -> u64 {
    let first = brain("It").step("Step 0", async |_| Ok(()));
    let brain = (1..steps).fold(first, |brain, step| brain.step(&format!("Step {step}"), async |_| Ok(())));
    let runner = Runner::new(ScriptedModel::new([])).store(bench.memory.clone());
    let run = runner.start_with(&brain, (), Start { id: Some("run".into()), ..Start::default() }).await.unwrap();
    run.result().await.unwrap();
    run.settled().await;
    bench.store.run(&bench.run).await.unwrap().next.0
}

/// Feeds the sink with the events between two numbers, and drops the feed.
async fn fed(bench: &Bench, from: u64, until: u64) {
    let Bench { feeds, store, run, .. } = bench;
    let feed = feeds.feed(store, (&LiveDeltas::default(), &LeaseKeeper::default()), run, Seq(from), false);
    assert!(feed.reached(Seq(until)).await);
    drop(feed);
    while matches!(feeds.runs.lock().known.get(run), Some(FeedState::Fed(_))) {
        tokio::task::yield_now().await;
    }
}

fn shown(bench: &Bench) -> Vec<u64> {
    bench.recorder.events().iter().map(|event| event.seq.0).collect()
}

#[tokio::test]
async fn sink_that_read_ahead_gets_each_event_once() {
    let bench = bench();
    let events = ran(&bench, 1).await;
    fed(&bench, 0, events).await;

    fed(&bench, 3, events).await;

    assert_eq!(shown(&bench), Vec::from_iter(0..events));
}

#[tokio::test]
async fn run_recreated_under_the_same_id_is_shown_from_its_new_position() {
    let bench = bench();
    let events = ran(&bench, 2).await;
    fed(&bench, 0, events).await;
    assert_eq!(bench.store.remove(std::slice::from_ref(&bench.run)).await, Ok(1));
    let anew = ran(&bench, 1).await;

    fed(&bench, anew - 1, anew).await;

    assert_eq!(shown(&bench), Vec::from_iter((0..events).chain([anew - 1])));
}
