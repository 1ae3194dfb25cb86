//! `/runs/{run}/timeline`: the run as people see it, once or live. The server folds; a client replaces nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::response::Response;
use futures::future::ready;
use futures::stream::{StreamExt as _, unfold};
use positronic_core::record::{Event, RunId, Seq};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json as json_of};

use super::event_stream::{Update, updates};
use super::events::EVENTS;
use crate::api::run_item::value;
use crate::app::App;
use crate::problem::{Problem, ProblemType, Reporter};
use crate::routes::{RequestContext, Route, json};
use crate::sse;
use crate::timeline_cache::Fold;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/runs/{run}/timeline", "Read or follow the timeline of a run", timeline)
            .large_answers()
            .query::<TimelineQuery>()
            .returns::<TimelineItem>(200)
            .streams()
            .returns_nothing(204)
            .problems(&[ProblemType::TooManyStreams]),
    ]
}

/// Where a stream begins.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct TimelineQuery {
    /// A stream begins with the nodes that changed after this event; without it, with all nodes.
    after: Option<u64>,
}

/// A timeline.
#[derive(Serialize, JsonSchema)]
struct TimelineItem {
    /// The number of the last event that is in the timeline.
    head: u64,
    /// The number of answers, their tokens and their cost, if the server has prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    spent: Option<Value>,
    /// The core's timeline: its nodes in one list, each with its parent. Times are microseconds since 1970.
    timeline: Value,
}

async fn timeline(cx: RequestContext) -> Result<Response, Problem> {
    let TimelineQuery { after } = cx.query()?;
    let (app, row) = (&cx.app, cx.run()?);
    let seen = sse::last_seen(&cx, after, row.next)?;
    let is_stream = cx.accepts(EVENTS);
    if is_stream && row.status.is_over() && seen.is_some_and(|seen| seen.next() >= row.next) {
        return Ok(sse::no_content());
    }
    let shared = app.folds.of(&row.run).await?;
    let fold = shared.lock().await;
    let head = fold.timeline.seq.unwrap_or_default();
    if !is_stream {
        let spent = fold.timeline.costs.is_some().then(|| value(fold.timeline.spent()));
        return json(&TimelineItem { head: head.0, spent, timeline: value(&fold.timeline) });
    }
    let first = nodes(&fold, seen);
    drop(fold);
    let (state, run, sent) = (Arc::clone(app), row.run.clone(), Arc::new(AtomicU64::new(head.0)));
    let reporter = cx.reporter.clone();
    let later = updates(&cx, &run, head.next()).filter_map(move |update| {
        let (app, run, sent, reporter) = (Arc::clone(&state), run.clone(), Arc::clone(&sent), reporter.clone());
        async move {
            match update {
                Update::Event(event) => changed(&app, &reporter, &run, &event, &sent).await,
                Update::Other(event) => Some(event),
            }
        }
    });
    // A client that has seen everything gets only what comes.
    let is_behind = seen.is_none_or(|seen| seen < head);
    let first = (is_behind.then_some(first), cx.place.clone());
    let first = unfold(first, |(first, place)| ready(first.map(|first| (first, (None, place)))));
    sse::stream(&cx, first.chain(later))
}

/// Folds an event and returns the nodes that changed since the last sent one. Other readers may have taken the fold further:
/// then the nodes of those later events come with it, once.
async fn changed(app: &App, reporter: &Reporter, run: &RunId, event: &Event, sent: &AtomicU64) -> Option<sse::Event> {
    let before = Seq(sent.load(Ordering::Acquire));
    if event.seq <= before {
        return None;
    }
    let folded = async {
        let shared = app.folds.of(run).await?;
        let fold = shared.lock().await;
        sent.store(fold.timeline.seq.unwrap_or_default().0, Ordering::Release);
        Ok::<_, Problem>(nodes(&fold, Some(before)))
    };
    Some(folded.await.unwrap_or_else(|problem| sse::failed(reporter, &problem)))
}

/// Returns the nodes that changed after an event, or all of them, with the other fields of the timeline.
fn nodes(fold: &Fold, seen: Option<Seq>) -> sse::Event {
    let timeline = &fold.timeline;
    let seq = timeline.seq.unwrap_or_default();
    let mut data = json_of!({
        "seq": seq,
        "nodes": fold.changed_after(seen),
        "last": timeline.last,
        "worker": timeline.worker,
        "usage": timeline.usage,
        "answers": timeline.answers,
    });
    if let Some(fields) = data.as_object_mut() {
        let mut add = |name: &str, value: Option<Value>| {
            fields.extend(value.map(|value| (name.to_owned(), value)));
        };
        add("currency", timeline.currency.as_ref().map(value));
        // Costs list every call, so a stream has only their sum; the timeline as JSON has them all.
        add("spent", timeline.costs.is_some().then(|| value(timeline.spent())));
        add("start", timeline.start.as_ref().filter(|_| seen.is_none()).map(value));
    }
    sse::event("nodes", &data).id(seq)
}
