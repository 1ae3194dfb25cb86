//! `GET /decisions`: what people have decided lately, in all runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use positronic_core::record::{Event, EventKind, RunId, Seq, Timestamp};
use positronic_core::store::{EventSearch, RunFilter, StoreError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::closed_question::DecisionItem;
use crate::api::runs::list::{MAX_FOUND, MAX_SCANNED, page};
use crate::problem::Problem;
use crate::routes::{RequestContext, Route, json};
use crate::time::Time;

/// What the events of all decisions contain.
const OF_A_SIGNAL: &str = "\"signal\":\"";
/// How far back the list goes without `since`.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/decisions", "List what people have decided lately, the last decision first", list)
            .large_answers()
            .query::<DecisionsQuery>()
            .returns::<MadeDecisions>(200),
    ]
}

/// Which decisions to list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct DecisionsQuery {
    /// Only decisions at or after this time: the last 24 hours by default.
    since: Option<Time>,
    /// The number of items: 1 to 500, 50 by default.
    limit: Option<usize>,
}

/// The decisions of a time.
#[derive(Serialize, JsonSchema)]
struct MadeDecisions {
    items: Vec<MadeDecision>,
    /// Whether older decisions of this time may be missing: there are more than `limit`, or the search has read as many events as one
    /// request may.
    capped: bool,
}

/// A decision, with what it was about.
#[derive(Serialize, JsonSchema)]
struct MadeDecision {
    run: String,
    /// The title of the run's brain.
    brain: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// The path of the call, or of the loop or brain that asked for more.
    call: String,
    /// The tool; empty if there is none.
    tool: String,
    /// The arguments as the model wrote them.
    arguments: Value,
    decision: DecisionItem,
}

async fn list(cx: RequestContext) -> Result<Response, Problem> {
    let DecisionsQuery { since, limit } = cx.query()?;
    let (app, caller, limit) = (&cx.app, cx.caller()?, page(limit)?);
    let day = i64::try_from(DAY.as_micros()).unwrap_or(i64::MAX);
    let since = since.map_or(Timestamp(app.now().0.saturating_sub(day)), |time| time.0);
    let mut runs = RunFilter::builder().since(since).build();
    runs.user = caller.only_user().map(str::to_owned);
    let search = EventSearch::new(OF_A_SIGNAL, MAX_FOUND).within(runs).scan(MAX_SCANNED);
    let found = app.client.store().search(&search).await?;
    let mut capped = found.capped.is_some() || found.found.len() == MAX_FOUND;
    let decided = found.found.iter().filter_map(|hit| {
        let event = Event::from_json(&hit.line).ok().filter(|event| event.at >= since)?;
        let decision = DecisionItem::of(&event).filter(DecisionItem::has_author)?;
        Some((hit.run.clone(), event, decision))
    });
    let mut decided: Vec<_> = decided.collect();
    decided.sort_by_key(|(_, event, _)| std::cmp::Reverse(event.at));
    capped |= decided.len() > limit;
    decided.truncate(limit);
    let mut logs: HashMap<RunId, Vec<Arc<Event>>> = HashMap::new();
    let mut items = Vec::with_capacity(decided.len());
    for (run, event, decision) in decided {
        let row = match app.client.store().run(&run).await {
            Ok(row) => row,
            // It was pruned meanwhile.
            Err(StoreError::NoSuchRun { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        if !logs.contains_key(&run) {
            logs.insert(run.clone(), app.client.events(&run, Seq(0)).await?);
        }
        let call = logs.get(&run).and_then(|log| {
            log.iter().find_map(|asked| match &asked.kind {
                EventKind::LoopToolCall(call) if asked.path == event.path => Some(call),
                _ => None,
            })
        });
        items.push(MadeDecision {
            run: run.to_string(),
            brain: row.brain.to_string(),
            user: row.user.clone(),
            call: event.path.to_string(),
            tool: call.map(|call| call.tool.clone()).unwrap_or_default(),
            arguments: call.map(|call| Value::clone(&call.arguments)).unwrap_or_default(),
            decision,
        });
    }
    json(&MadeDecisions { items, capped })
}
