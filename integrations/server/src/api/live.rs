//! `/stream`: the rows of all runs, as they change.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use futures::stream::{StreamExt as _, unfold};
use positronic_core::record::{RunId, Seq};
use positronic_core::store::{GrownRuns, StoreError};

use super::run_item::RunItem;
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

/// A reader of the rows.
struct Rows {
    app: Arc<App>,
    caller: Caller,
    reporter: Reporter,
    changes: Arc<GrownRuns>,
    /// The number of the next event of each run that was sent.
    sent: HashMap<RunId, Seq>,
}

async fn stream(cx: RequestContext) -> Result<Response, Problem> {
    let rows = Rows {
        app: Arc::clone(&cx.app),
        caller: cx.caller()?.clone(),
        reporter: cx.reporter.clone(),
        changes: GrownRuns::of(cx.app.client.store()),
        sent: HashMap::new(),
    };
    let events = unfold(rows, |mut rows| async move {
        rows.changes.wait().await;
        tokio::time::sleep(COLLECT).await;
        let events = rows.events().await;
        Some((futures::stream::iter(events), rows))
    });
    sse::stream(&cx, events.flatten())
}

impl Rows {
    async fn events(&mut self) -> Vec<sse::Event> {
        let changed = self.changes.take();
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
