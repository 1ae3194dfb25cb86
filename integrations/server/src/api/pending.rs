//! `/pending`: what waits, in all runs.

use std::collections::{HashMap, HashSet};

use axum::response::Response;
use positronic_core::record::{RunId, Status};
use positronic_core::store::{
    PendingCursor, PendingFilter, PendingItem as StoredItem, RunFilter, RunPages, StoreError,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::items::List;
use super::pending_items::{Kind, PendingItem};
use super::runs::page;
use crate::app::App;
use crate::cursor;
use crate::problem::{Problem, ProblemType};
use crate::routes::{Call, Route, json};

/// How many items are read at once while the caller does not see some of them.
const CHUNK: usize = 500;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/pending", "List what waits for a person or a program, the oldest first", list)
            .query::<PendingQuery>()
            .returns::<List<PendingItem>>(200)
            .problems(&[ProblemType::BadCursor, ProblemType::UnknownRun]),
    ]
}

/// Which pending items to list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct PendingQuery {
    /// Only items of these kinds, separated by commas: `approval`, `budget`, `answer`.
    kind: Option<String>,
    /// Only items of this run.
    run: Option<String>,
    /// How many entries of the transcript before each item to add: 0 to 10, none by default.
    context: Option<usize>,
    /// Continues a list.
    cursor: Option<String>,
    /// The number of items: 1 to 500, 50 by default.
    limit: Option<usize>,
}

async fn list(call: Call) -> Result<Response, Problem> {
    let query: PendingQuery = call.query()?;
    let (app, caller) = (&call.app, call.caller()?);
    let (kinds, limit) = (kinds(query.kind.as_deref())?, page(query.limit)?);
    let context = query.context.unwrap_or_default();
    if context > 10 {
        return Err(Problem::new(ProblemType::InvalidQuery).detail(format!("`context={context}`: expected 0 to 10")));
    }
    let mut filter = PendingFilter::builder().limit(CHUNK).build();
    if let Some(run) = &query.run {
        let run = RunId::new(run);
        app.row(caller, &run).await?;
        filter.run = Some(run);
    }
    let wanted = (&query.kind, &query.run);
    filter.after = query.cursor.as_ref().map(|text| cursor::decode::<PendingCursor>(text, &wanted)).transpose()?;
    let (mut items, mut more) = (Vec::<StoredItem>::new(), false);
    let own = match caller.only_user() {
        Some(user) if filter.run.is_none() => Some(open_runs(app, user).await?),
        _ => None,
    };
    'pages: loop {
        let chunk = app.client.store().pending(&filter).await?;
        let is_last = chunk.len() < CHUNK;
        filter.after = chunk.last().map(StoredItem::cursor);
        for item in chunk.into_iter().filter(|item| kinds.is_empty() || kinds.contains(&Kind::of(&item.pending.kind))) {
            if own.as_ref().is_some_and(|own| !own.contains(&item.run)) {
                continue;
            }
            if items.len() == limit {
                more = true;
                break 'pages;
            }
            items.push(item);
        }
        if is_last {
            break;
        }
    }
    let next = items.last().filter(|_| more).map(|last| cursor::encode(&last.cursor(), &wanted));
    let mut shown = Vec::with_capacity(items.len());
    let mut states = HashMap::new();
    for item in &items {
        let state = match states.get(&item.run) {
            Some(known) => known,
            None => {
                let state = app.client.state(&item.run).await?;
                states.entry(item.run.clone()).or_insert(state)
            }
        };
        shown.push(app.pending_item(caller, item, state, context).await?);
    }
    json(&List { items: shown, next })
}

/// Returns the runs of a user that are not over.
async fn open_runs(app: &App, user: &str) -> Result<HashSet<RunId>, StoreError> {
    let open = vec![Status::Running, Status::Waiting, Status::Paused];
    let rows = RunPages::new(app.client.store(), RunFilter::builder().user(user).status(open).build()).all().await?;
    Ok(rows.into_iter().map(|row| row.run).collect())
}

fn kinds(listed: Option<&str>) -> Result<Vec<Kind>, Problem> {
    let words = listed.into_iter().flat_map(|listed| listed.split(','));
    let read =
        |word: &str| match word {
            "approval" => Ok(Kind::Approval),
            "budget" => Ok(Kind::Budget),
            "answer" => Ok(Kind::Answer),
            _ => Err(Problem::new(ProblemType::InvalidQuery)
                .detail(format!("`kind={word}`: expected approval, budget, answer"))),
        };
    words.map(read).collect()
}
