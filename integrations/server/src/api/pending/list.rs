//! `/pending`: what waits, in all runs, as the store keeps it. [One item](super::item_context) has what takes the log of its run.

use axum::response::Response;
use positronic_core::record::RunId;
use positronic_core::store::{PendingCursor, PendingFilter, PendingItem as StoredItem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pending_item::{PendingItem, PendingItemKind};
use crate::api::runs::list::page;
use crate::cursor;
use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route, json};

/// How many items are read at once, and of one request at most, if `kind` drops some of them.
const CHUNK: usize = 500;
const MAX_READ: usize = 10_000;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/pending", "List what waits for a person or a program, the oldest first", list)
            .large_answers()
            .query::<PendingQuery>()
            .returns::<PendingList>(200)
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
    /// Whether to list only items that wait for a person: approvals, budgets and questions, but no webhooks.
    person: bool,
    /// Continues a list.
    cursor: Option<String>,
    /// The number of items: 1 to 500, 50 by default.
    limit: Option<usize>,
}

/// A page of pending items.
#[derive(Serialize, JsonSchema)]
struct PendingList {
    items: Vec<PendingItem>,
    /// The cursor of the next page; `null` at the end of the list.
    next: Option<String>,
    /// Whether the request has read as many items as it may, before the end of the list: `next` continues it.
    capped: bool,
}

async fn list(cx: RequestContext) -> Result<Response, Problem> {
    let query: PendingQuery = cx.query()?;
    let (app, caller) = (&cx.app, cx.caller()?);
    let (kinds, limit) = (kinds(query.kind.as_deref())?, page(query.limit)?);
    let chunk = if kinds.is_empty() { limit + 1 } else { CHUNK };
    let mut filter = PendingFilter::builder().limit(chunk).build();
    if let Some(run) = &query.run {
        let run = RunId::new(run);
        app.row(caller, &run).await?;
        filter.run = Some(run);
    }
    filter.person = query.person;
    let wanted = (&query.kind, &query.run, query.person);
    filter.after = query.cursor.as_ref().map(|text| cursor::decode::<PendingCursor>(text, &wanted)).transpose()?;
    filter.user = caller.only_user().map(str::to_owned);
    let (mut items, mut more, mut read) = (Vec::<StoredItem>::new(), false, 0);
    let mut capped = None;
    'pages: loop {
        let found = app.client.store().pending(&filter).await?;
        let is_last = found.len() < chunk;
        read += found.len();
        filter.after = found.last().map(StoredItem::cursor);
        for item in found
            .into_iter()
            .filter(|item| kinds.is_empty() || kinds.contains(&PendingItemKind::of(&item.pending.kind)))
        {
            if items.len() == limit {
                more = true;
                break 'pages;
            }
            items.push(item);
        }
        if is_last {
            break;
        }
        if read >= MAX_READ {
            capped = filter.after;
            break;
        }
    }
    let is_capped = capped.is_some();
    let last = if more { items.last().map(StoredItem::cursor) } else { capped };
    let next = last.map(|last| cursor::encode(&last, &wanted));
    let items = items.iter().map(|item| app.listed_item(caller, item)).collect();
    json(&PendingList { items, next, capped: is_capped })
}

fn kinds(listed: Option<&str>) -> Result<Vec<PendingItemKind>, Problem> {
    let words = listed.into_iter().flat_map(|listed| listed.split(','));
    let read =
        |word: &str| match word {
            "approval" => Ok(PendingItemKind::Approval),
            "budget" => Ok(PendingItemKind::Budget),
            "answer" => Ok(PendingItemKind::Answer),
            _ => Err(Problem::new(ProblemType::InvalidQuery)
                .detail(format!("`kind={word}`: expected approval, budget, answer"))),
        };
    words.map(read).collect()
}
