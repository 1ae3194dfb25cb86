//! `/overview`: how the runs of a range of time have ended, what they cost, and how the open ones stand.

mod ended_runs;
mod figures;
mod range;

use std::collections::HashMap;
use std::sync::Arc;

use axum::response::Response;
use positronic_core::record::Status;
use positronic_core::store::{FigureFilter, RunFilter};
use schemars::JsonSchema;
use serde::Deserialize;

use super::runs::list::user_of;
use crate::problem::Problem;
use crate::routes::{RequestContext, Route, json};
use figures::OverviewItem;
use range::Range;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/overview", "Read the figures of all runs", overview)
            .large_answers()
            .query::<OverviewQuery>()
            .returns::<OverviewItem>(200),
    ]
}

/// Of which runs to read figures.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct OverviewQuery {
    /// The range of time up to now, `24h` by default.
    range: Range,
    /// Only runs of the brain with this title.
    brain: Option<String>,
    /// Only runs of this user.
    user: Option<String>,
    /// Only runs in which this model has answered, as `provider/model`; tokens and costs are then those of its answers.
    model: Option<String>,
}

async fn overview(cx: RequestContext) -> Result<Response, Problem> {
    let query: OverviewQuery = cx.query()?;
    let user = user_of(cx.caller()?, query.user.as_deref())?.map(str::to_owned);
    let app = &cx.app;
    let mut filter = query.range.filter(app.now());
    (filter.brain, filter.user, filter.model) = (query.brain, user, query.model);
    let store = app.client.store();
    let figures = store.figures(&filter).await?;
    // What one model has used of an open run is in no sum.
    let open = match filter.model {
        Some(_) => None,
        None => Some(store.sums(&open_runs(&filter)).await?),
    };
    // A worker is asked about once.
    let mut live: HashMap<Arc<str>, bool> = HashMap::new();
    for owner in figures.open.iter().filter_map(|group| group.owner.as_ref()) {
        if !live.contains_key(owner) {
            live.insert(Arc::clone(owner), store.is_lease_live(owner).await?);
        }
    }
    let is_live = |owner: &str| live.get(owner).copied().unwrap_or_default();
    json(&OverviewItem::new(query.range, &filter, figures, open, is_live))
}

/// Returns the filter of the open runs that count.
fn open_runs(filter: &FigureFilter) -> RunFilter {
    let mut open = RunFilter::default();
    open.status = Status::ALL.into_iter().filter(|status| !status.is_over()).collect();
    (open.brain, open.user) = (filter.brain.clone(), filter.user.clone());
    open
}
