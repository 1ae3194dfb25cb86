//! Consecutive feeds of a sink.

use super::*;
use crate::sink::Recorder;
use crate::store::MemoryStore;
use crate::testing::store_suite::Sample;

/// Returns a sink, its feeds, and a store with a run of this many events.
async fn with(events: usize) -> (Recorder, Arc<Feeds>, Arc<dyn EventStore>, Sample) {
    let (store, recorder) = (MemoryStore::new(), Recorder::default());
    let run = (0..events)
        .fold(Sample::new("run"), |run, _| run.says("it"))
        .row(|row| row.status = crate::record::Status::Completed);
    let run = run.appended(&store).await;
    (recorder.clone(), Feeds::new(Arc::new(recorder)), Arc::new(store), run)
}

/// Feeds the sink with the events between two numbers, and drops the feed.
async fn fed(feeds: &Arc<Feeds>, store: &Arc<dyn EventStore>, run: &RunId, from: u64, until: u64) {
    let feed = feeds.feed(store, (&LiveDeltas::default(), &LeaseKeeper::default()), run, Seq(from), false);
    assert!(feed.reached(Seq(until)).await);
    drop(feed);
    while matches!(feeds.runs.lock().known.get(run), Some(Known::Fed(_))) {
        tokio::task::yield_now().await;
    }
}

fn shown(recorder: &Recorder) -> Vec<u64> {
    recorder.events().iter().map(|event| event.seq.0).collect()
}

#[tokio::test]
async fn sink_that_read_ahead_gets_each_event_once() {
    let (recorder, feeds, store, run) = with(5).await;
    fed(&feeds, &store, &run.run, 0, 5).await;

    fed(&feeds, &store, &run.run, 3, 5).await;

    assert_eq!(shown(&recorder), [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn a_run_that_was_removed_and_taken_in_anew_is_shown_from_where_it_is() {
    let (recorder, feeds, store, run) = with(5).await;
    fed(&feeds, &store, &run.run, 0, 5).await;
    assert_eq!(store.remove(std::slice::from_ref(&run.run)).await, Ok(1));
    let mut anew = Sample::new("run").says("anew").says("and on").says("and on");
    store.append(&anew.run, anew.append.clone()).await.unwrap();
    anew.append.events.clear();

    fed(&feeds, &store, &run.run, 2, 3).await;

    assert_eq!(shown(&recorder), [0, 1, 2, 3, 4, 2]);
}
