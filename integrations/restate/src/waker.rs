//! Wakes the workflows of runs whose logs have grown without them.
//!
//! A decision that another program appends to the store reaches no promise. So each endpoint lists the runs that have work
//! and no worker, once a second and after each append of its own process, and wakes their workflows.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use positronic_core::record::{RunId, RunSummary, Seq};
use positronic_core::runner::{Client, Clock as _, SystemClock};
use positronic_core::store::{RunFilter, StoreError, Watcher};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::ingress::Ingress;
use crate::names;
use crate::protocol::WakeRequest;

/// How often the runs with work are listed.
const LOOK: Duration = Duration::from_secs(1);

/// The longest pause until a run at the same event is woken again.
const PAUSE: Duration = Duration::from_secs(60);

/// The largest number of runs per brain that are listed at once.
const LIMIT: usize = 1000;

/// Notifies the waker of appends in this process.
#[derive(Default)]
struct Bell(Notify);

impl Watcher for Bell {
    fn appended(&self, _: &RunId, _: Seq) {
        self.0.notify_one();
    }
}

/// A run that was woken: at which event, when again, and after which pause.
struct Woken {
    next: Seq,
    again: Instant,
    pause: Duration,
}

/// Wakes workflows until it is dropped.
pub(crate) async fn wake_workflows(client: Client, ingress: Ingress, titles: Vec<String>) {
    let bell = Arc::new(Bell::default());
    let watcher: Arc<dyn Watcher> = Arc::clone(&bell) as Arc<dyn Watcher>;
    client.store().watch(None, Arc::downgrade(&watcher) as Weak<dyn Watcher>);
    let mut woken = HashMap::new();
    loop {
        let mut due = Vec::new();
        for title in &titles {
            match unattended(&client, title).await {
                Ok(rows) => due.extend(rows),
                Err(error) => tracing::warn!(%error, brain = title, "cannot list the runs with work"),
            }
        }
        woken.retain(|run, _| due.iter().any(|row| row.run == *run));
        for row in due.into_iter().filter(|row| is_due(&mut woken, row)) {
            let (service, run) = (names::workflow(&row.brain), row.run.as_str());
            let sent = ingress.call(&[&service, run, "wake", "send"], &WakeRequest { next: row.next }, None).await;
            if let Err(error) = sent.map(|_: serde_json::Value| ()) {
                tracing::warn!(run, %error, "cannot wake the workflow");
            }
        }
        let listed = Instant::now();
        // A worker appends many events, and a list reads the store.
        tokio::select! {
            () = bell.0.notified() => tokio::time::sleep_until(listed + LOOK / 10).await,
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Lists the runs of a brain that have work and no worker.
async fn unattended(client: &Client, title: &str) -> Result<Vec<RunSummary>, StoreError> {
    let filter = RunFilter::builder().brain(title).due(SystemClock.now()).limit(LIMIT).build();
    let mut rows = Vec::new();
    for row in client.store().runs(&filter).await? {
        if client.worker(&row).await?.is_none() {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Returns whether a run is woken now: at once after an append, then after growing pauses.
fn is_due(woken: &mut HashMap<RunId, Woken>, row: &RunSummary) -> bool {
    let now = Instant::now();
    let pause = match woken.get(&row.run).filter(|known| known.next == row.next) {
        Some(known) if now < known.again => return false,
        Some(known) => (known.pause * 2).min(PAUSE),
        None => LOOK,
    };
    woken.insert(row.run.clone(), Woken { next: row.next, again: now + pause, pause });
    true
}
