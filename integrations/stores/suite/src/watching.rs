//! Watchers.

use std::sync::{Arc, Weak};
use std::time::Duration;

use positronic_core::record::{RunId, Seq};
use positronic_core::store::{EventStore, Watcher};
use tokio::sync::mpsc;

use super::Sample;

/// How long a test waits for a watcher; a store notifies within a second of appends by others.
const PATIENCE: Duration = Duration::from_secs(10);

struct Bell(mpsc::UnboundedSender<(RunId, Seq)>);

impl Watcher for Bell {
    fn appended(&self, run: &RunId, next: Seq) {
        _ = self.0.send((run.clone(), next));
    }
}

struct Ear {
    told: mpsc::UnboundedReceiver<(RunId, Seq)>,
    /// The watched run; `None` for all.
    only: Option<RunId>,
    bell: Option<Arc<dyn Watcher>>,
}

impl Ear {
    fn on(store: &impl EventStore, run: Option<&str>) -> Self {
        let (sender, told) = mpsc::unbounded_channel();
        let bell: Arc<dyn Watcher> = Arc::new(Bell(sender));
        store.watch(run.map(RunId::from).as_ref(), Arc::downgrade(&bell) as Weak<dyn Watcher>);
        Self { told, only: run.map(RunId::from), bell: Some(bell) }
    }

    /// Waits until a notification says that a run has grown to this number.
    async fn hears(&mut self, run: &str, next: u64) {
        let only = self.only.clone();
        let wanted = async {
            while let Some((told, seq)) = self.told.recv().await {
                assert!(only.as_ref().is_none_or(|only| told == *only), "{told} instead of {run}");
                if told.as_str() == run && seq >= Seq(next) {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, wanted).await.unwrap_or_else(|_| assert_eq!("silence", run, "up to {next}"));
    }
}

/// A watcher of a run is notified of its appends only, a watcher of all runs of all. A store may notify repeatedly of
/// one append, and once of several.
pub async fn watcher_sees_appends<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let one = Sample::new("run-1").says("one").appended(&store).await;
    let (mut of_one, mut of_all) = (Ear::on(&store, Some("run-1")), Ear::on(&store, None));

    _ = Sample::new("run-2").says("one").says("two").appended(&store).await;
    let mut refused = Sample::new("run-1").says("refused");
    assert!(refused.append(&store).await.is_err());
    let one = one.says("two").appended(&store).await;

    of_all.hears("run-2", 2).await;
    of_all.hears("run-1", 2).await;
    of_one.hears("run-1", 2).await;
    _ = one.says("three").appended(&store).await;
    of_one.hears("run-1", 3).await;
    while let Ok((run, next)) = of_one.told.try_recv() {
        assert_eq!(run, RunId::from("run-1"));
        assert!(next <= Seq(3), "{next}");
    }
}

/// A run can be watched before its first event.
pub async fn watcher_sees_a_future_run<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let mut ear = Ear::on(&store, Some("run-1"));

    _ = Sample::new("run-1").says("one").appended(&store).await;

    ear.hears("run-1", 1).await;
}

/// A watcher is notified of appends through another handle, as by another process, also if the run that was appended
/// to last was removed in between.
pub async fn watcher_sees_appends_of_others<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let mut one = Sample::new("run-1").says("one").appended(&store).await;
    let (mut of_one, mut of_all) = (Ear::on(&store, Some("run-1")), Ear::on(&store, None));

    one = one.says("two").appended(&other).await;
    of_one.hears("run-1", 2).await;
    of_all.hears("run-1", 2).await;

    let over = Sample::new("run-2").says("one").row(|row| row.status = positronic_core::record::Status::Completed);
    let over = over.appended(&other).await;
    of_all.hears("run-2", 1).await;
    assert_eq!(other.remove(&[over.run]).await, Ok(1));
    one = one.says("three").appended(&other).await;
    of_one.hears("run-1", 3).await;
    of_all.hears("run-1", 3).await;

    // An append of its own does not make a handle miss earlier appends by others.
    one = one.says("four").appended(&other).await;
    _ = Sample::new("run-3").says("one").appended(&store).await;
    of_one.hears("run-1", one.append.expected.0).await;
}

/// A dropped watcher is not called any more, and the others still are.
pub async fn dropped_watcher_sees_nothing<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let run = Sample::new("run-1").says("one").appended(&store).await;
    let (mut gone, mut stays) = (Ear::on(&store, Some("run-1")), Ear::on(&store, Some("run-1")));

    drop(gone.bell.take());
    _ = run.says("two").appended(&store).await;

    stays.hears("run-1", 2).await;
    assert_eq!(gone.told.recv().await, None);
}
