//! `/overview`: how the runs of a range of time have ended, what they cost, and how the open ones stand.

mod counted;
mod figures;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use positronic_core::record::{Status, Timestamp};
use positronic_core::store::{FigureFilter, RunFilter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::runs::list::user_of;
use crate::problem::Problem;
use crate::routes::{RequestContext, Route, json};
use figures::OverviewItem;

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

/// A range of time up to now.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
enum Range {
    #[serde(rename = "1h")]
    Hour,
    #[default]
    #[serde(rename = "24h")]
    Day,
    #[serde(rename = "7d")]
    Week,
    #[serde(rename = "30d")]
    Month,
}

impl Range {
    /// Returns the length of a bucket in minutes, and the number of buckets.
    const fn buckets(self) -> (u64, u32) {
        match self {
            Self::Hour => (1, 60),
            Self::Day => (30, 48),
            Self::Week => (3 * 60, 56),
            Self::Month => (12 * 60, 60),
        }
    }

    /// Returns the filter of the range up to a time. Buckets begin at whole multiples of their length, in UTC, so that they stay
    /// the same from one request to the next; the last one is not over yet.
    fn filter(self, now: Timestamp) -> FigureFilter {
        let (minutes, buckets) = self.buckets();
        let bucket = Duration::from_mins(minutes);
        let micros = i64::try_from(bucket.as_micros()).unwrap_or(i64::MAX);
        let last = now.0 - now.0.rem_euclid(micros);
        let from = Timestamp(last - micros * (i64::from(buckets) - 1));
        FigureFilter::builder().from(from).bucket(bucket).buckets(buckets).now(now).build()
    }
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
