//! `/stream`: the rows of all runs, as they change.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::response::Response;
use futures::stream::{StreamExt as _, unfold};
use parking_lot::Mutex;
use positronic_core::record::{RunId, Seq};
use positronic_core::store::{StoreError, Watcher};
use tokio::sync::Notify;

use super::items::RunItem;
use crate::app::App;
use crate::auth::Caller;
use crate::problem::{Problem, ProblemType, Reporter};
use crate::routes::{RequestContext, Route};
use crate::sse;

/// How long changes are collected, so that a busy run is sent a few times per second and not with every event.
const COLLECT: Duration = Duration::from_millis(200);

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/stream", "Follow the rows of all runs", stream)
            .streams()
            .returns::<RunItem>(200)
            .problems(&[ProblemType::TooManyStreams]),
    ]
}

/// Collects the runs that have changed.
#[derive(Default)]
struct Changes {
    runs: Mutex<HashSet<RunId>>,
    bell: Notify,
}

impl Watcher for Changes {
    fn appended(&self, run: &RunId, _: Seq) {
        self.runs.lock().insert(run.clone());
        self.bell.notify_one();
    }
}

/// A reader of the rows.
struct Rows {
    app: Arc<App>,
    caller: Caller,
    reporter: Reporter,
    changes: Arc<Changes>,
    /// The number of the next event of each run that was sent.
    sent: HashMap<RunId, Seq>,
}

async fn stream(cx: RequestContext) -> Result<Response, Problem> {
    let changes = Arc::<Changes>::default();
    let watcher: Arc<dyn Watcher> = Arc::clone(&changes) as Arc<dyn Watcher>;
    cx.app.client.store().watch(None, Arc::downgrade(&watcher) as Weak<dyn Watcher>);
    let rows = Rows {
        app: Arc::clone(&cx.app),
        caller: cx.caller()?.clone(),
        reporter: cx.reporter.clone(),
        changes,
        sent: HashMap::new(),
    };
    let events = unfold(rows, |mut rows| async move {
        rows.changes.bell.notified().await;
        tokio::time::sleep(COLLECT).await;
        let events = rows.events().await;
        Some((futures::stream::iter(events), rows))
    });
    sse::stream(&cx, events.flatten())
}

impl Rows {
    async fn events(&mut self) -> Vec<sse::Event> {
        let changed = std::mem::take(&mut *self.changes.runs.lock());
        let mut events = Vec::new();
        for run in changed {
            match self.item(&run).await {
                Ok(Some(item)) => events.push(sse::event("run", &item)),
                Ok(None) => {}
                Err(error) => events.push(sse::failed(&self.reporter, &error.into())),
            }
        }
        events
    }

    /// Returns the row of a run, unless it was sent or the caller does not see it.
    async fn item(&mut self, run: &RunId) -> Result<Option<RunItem>, StoreError> {
        let row = match self.app.client.store().run(run).await {
            Ok(row) if self.caller.sees(&row) => row,
            Ok(_) | Err(StoreError::NoSuchRun { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if row.status.is_over() {
            self.sent.remove(run);
        } else if self.sent.insert(run.clone(), row.next) == Some(row.next) {
            return Ok(None);
        }
        Ok(self.app.run_items(&[row]).await?.into_iter().next())
    }
}
