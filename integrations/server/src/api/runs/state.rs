//! `/runs/{run}/state`: the state of a run as of any event, and what changed it.

use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, VARY};
use axum::response::Response;
use positronic_core::machine::RunState;
use positronic_core::record::{RunId, Seq};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::run_item::{head, value};
use crate::app::App;
use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route, json};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/runs/{run}/state", "Read the state of a run as of an event", state)
            .large_answers()
            .query::<StateQuery>()
            .returns::<StateItem>(200)
            .problems(&[ProblemType::BeyondHead]),
    ]
}

/// Which state to read.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct StateQuery {
    /// As of this event; the last one by default.
    at: Option<u64>,
    /// The event from which on the changes are listed; the one before `at` by default.
    since: Option<u64>,
}

/// A state.
#[derive(Serialize, JsonSchema)]
struct StateItem {
    at: u64,
    /// The state of the run's own brain, as canonical JSON.
    state: Value,
    /// The changes since the event before, or since `since`, as a JSON Patch (RFC 6902).
    changes: Value,
    /// Why the run waited then.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Value>,
}

async fn state(cx: RequestContext) -> Result<Response, Problem> {
    let StateQuery { at, since } = cx.query()?;
    let (app, row) = (&cx.app, cx.run()?);
    let at = within(row.next, at.map_or(head(row), Seq))?;
    let before = match since {
        Some(since) => Some(within(row.next, Seq(since))?),
        None => at.0.checked_sub(1).map(Seq),
    };
    let now = state_at(app, &row.run, at).await?;
    let then = match before {
        Some(before) => document(&state_at(app, &row.run, before).await?),
        None => Value::Null,
    };
    let state = document(&now);
    let changes = value(&json_patch::diff(&then, &state));
    let why = positronic_core::machine::why(&now).map(|why| value(&why));
    let mut response = json(&StateItem { at: at.0, state, changes, why })?;
    if at < head(row) {
        immutable(&mut response);
    }
    Ok(response)
}

/// Lets the client keep an answer about events that cannot change.
pub(crate) fn immutable(response: &mut Response) {
    let value = HeaderValue::from_static("private, max-age=31536000, immutable");
    response.headers_mut().insert(CACHE_CONTROL, value);
    // Another person who logs in with the same browser gets nothing from its cache.
    response.headers_mut().insert(VARY, HeaderValue::from_static("cookie, authorization"));
}

/// Checks that a log with this next number has an event.
pub(crate) fn within(next: Seq, at: Seq) -> Result<Seq, Problem> {
    if at < next {
        return Ok(at);
    }
    let last = next.0.saturating_sub(1);
    Err(Problem::new(ProblemType::BeyondHead).detail(format!("the log has no event {at}; its last one is {last}")))
}

async fn state_at(app: &App, run: &RunId, at: Seq) -> Result<RunState, Problem> {
    Ok(app.states.at(run, at).await?)
}

fn document(state: &RunState) -> Value {
    state.root.as_ref().map(|root| Value::clone(&root.state)).unwrap_or_default()
}
