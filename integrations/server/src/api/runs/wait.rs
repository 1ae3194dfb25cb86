//! Requests that wait for a run (`?wait=`): until it has ended, is paused or waits for an answer. Results of runs.

use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use positronic_core::record::{RunId, Status};
use positronic_core::runner::{RunUpdate, Settled};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::app::App;
use crate::long_answer;
use crate::problem::{Problem, ProblemType};
use crate::routes::RequestContext;

/// The maximum wait in seconds. Some proxies end a request without an answer after 30 seconds, and so does this server.
const MAX_WAIT: u64 = 25;

/// Whether to wait for a run.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WaitQuery {
    /// Answers once the run has ended, is paused or waits for an answer, but after this many seconds at the latest: 0 to 25.
    #[schemars(range(min = 0, max = 25))]
    wait: Option<u64>,
}

/// A wait for a run, which counts as a long answer of its caller from the beginning of the request on.
pub(crate) struct Wait(Option<(Duration, BoxFuture<'static, ()>)>);

impl Wait {
    /// Reads the query of a request.
    pub(crate) fn of(cx: &RequestContext) -> Result<Self, Problem> {
        let seconds = cx.query::<WaitQuery>()?.wait.unwrap_or_default();
        if seconds > MAX_WAIT {
            let detail = format!("`wait={seconds}`: expected 0 to {MAX_WAIT} seconds; to wait longer, ask again");
            return Err(Problem::new(ProblemType::InvalidQuery).detail(detail));
        }
        if seconds == 0 {
            return Ok(Self(None));
        }
        Ok(Self(Some((Duration::from_secs(seconds), Box::pin(long_answer::over(cx)?)))))
    }

    /// Waits for a run. The wait ends early on shutdown, and fails when the right of the caller ends.
    pub(crate) async fn wait(self, app: &App, run: &RunId) -> Result<(), Problem> {
        let Some((longest, over)) = self.0 else { return Ok(()) };
        tokio::select! {
            settled = tokio::time::timeout(longest, settled(app, run)) => settled.unwrap_or(Ok(())),
            () = over => match app.settings.shutdown.has_begun() {
                true => Ok(()),
                false => Err(ProblemType::Unauthenticated.into()),
            },
        }
    }
}

/// Waits until a run has ended, is paused or waits for an answer. A run that waits only for its next try continues by itself.
async fn settled(app: &App, run: &RunId) -> Result<(), Problem> {
    let next = app.client.store().run(run).await?.next;
    let mut updates = app.client.follow(run, next);
    while let Some(update) = updates.next().await {
        match update? {
            RunUpdate::Settled(Settled::Waiting(pending)) if pending.is_empty() => {}
            RunUpdate::Settled(_) => return Ok(()),
            _ => {}
        }
    }
    Ok(())
}

impl App {
    /// Reads the result of a run that has completed.
    pub(crate) async fn result(&self, run: &RunId, status: Status) -> Result<Option<Value>, Problem> {
        if status != Status::Completed {
            return Ok(None);
        }
        Ok(self.client.state(run).await?.result().cloned())
    }
}
