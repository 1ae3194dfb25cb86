//! `/conversations`: lists them, and reads one with its runs.

use std::collections::HashMap;

use axum::response::Response;
use positronic_core::record::{EventKind, RunId, RunSummary, Seq};
use positronic_core::store::{RunCursor, RunFilter, RunSums};
use schemars::JsonSchema;
use serde::Serialize;

use crate::api::run_item::RunItem;
use crate::api::runs::list::page;
use crate::api::sums::CostSum;
use crate::app::App;
use crate::auth::Caller;
use crate::cursor::{self, PageQuery};
use crate::problem::{Problem, ProblemType};
use crate::redact::redacted_then_cut;
use crate::routes::{RequestContext, Route, json};

/// How many runs are read at once, and of one request at most.
const CHUNK: usize = 100;
const MAX_READ: usize = 2000;
/// How many characters of a message a list shows.
const MAX_OPENING: usize = 200;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/conversations", "List conversations, the one whose last run started last first", list)
            .query::<PageQuery>()
            .returns::<ConversationList>(200)
            .problems(&[ProblemType::BadCursor]),
        Route::get("/api/v1/conversations/{conversation}", "Read a conversation, with its runs", read)
            .returns::<ConversationDetail>(200)
            .problems(&[ProblemType::NotFound]),
    ]
}

/// A conversation in a list.
#[derive(Serialize, JsonSchema)]
struct ConversationItem {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// The number of its runs.
    runs: u64,
    /// The message with which its last run began, cut to 200 characters; absent if that began without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// What its runs have cost, by currency, as far as known.
    costs: Vec<CostSum>,
    /// How many of its runs have a cost that is not known in full.
    partly_priced: u64,
    last: RunItem,
}

/// A page of conversations.
#[derive(Serialize, JsonSchema)]
struct ConversationList {
    items: Vec<ConversationItem>,
    /// The cursor of the next page; `null` at the end of the list.
    next: Option<String>,
    /// Whether the request has read as many runs as it may, before the end of the list: `next` continues it.
    capped: bool,
}

/// A conversation.
#[derive(Serialize, JsonSchema)]
struct ConversationDetail {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// Its runs, in order.
    runs: Vec<RunItem>,
}

async fn list(cx: RequestContext) -> Result<Response, Problem> {
    let PageQuery { cursor, limit } = cx.query()?;
    let (app, caller, limit) = (&cx.app, cx.caller()?, page(limit)?);
    let (store, wanted) = (app.client.store(), ("conversations", caller.only_user()));
    let mut filter = RunFilter::builder().conversations(true).limit(CHUNK).build();
    filter.user = caller.only_user().map(str::to_owned);
    filter.after = cursor.map(|text| cursor::decode::<RunCursor>(&text, &wanted)).transpose()?;
    let (mut items, mut next, mut read, mut capped) = (Vec::new(), None, 0, false);
    // The last run of each conversation, and what its runs come to.
    let mut known: HashMap<String, (RunId, RunSums)> = HashMap::new();
    'pages: loop {
        let chunk = store.runs(&filter).await?;
        let is_last = chunk.len() < CHUNK;
        read += chunk.len();
        for row in chunk {
            if items.len() == limit {
                next.clone_from(&filter.after);
                break 'pages;
            }
            filter.after = Some(row.cursor());
            let Some(id) = row.conversation.clone() else { continue };
            if !known.contains_key(&id) {
                let runs = app.client.conversations().runs(&id).await?;
                let Some(last) = runs.first() else { continue };
                let mut sums = RunSums::default();
                runs.iter().for_each(|run| sums.add(run));
                known.insert(id.clone(), (last.run.clone(), sums));
            }
            // A conversation is listed at the place of its last run.
            if let Some((_, sums)) = known.get(&id).filter(|(last, _)| *last == row.run) {
                let (last, message) = (app.run_items(std::slice::from_ref(&row)).await?, opening(app, &row.run).await?);
                let item = |last| ConversationItem {
                    id: id.clone(),
                    user: row.user.clone(),
                    runs: sums.runs,
                    message,
                    costs: CostSum::all(sums),
                    partly_priced: sums.partial,
                    last,
                };
                items.extend(last.into_iter().next().map(item));
            }
        }
        if is_last {
            break;
        }
        if read >= MAX_READ {
            (next, capped) = (filter.after, true);
            break;
        }
    }
    json(&ConversationList { items, next: next.map(|place| cursor::encode(&place, &wanted)), capped })
}

/// Returns the message with which a run began, cut.
async fn opening(app: &App, run: &RunId) -> Result<Option<String>, Problem> {
    let first = app.client.store().read(run, Seq(0), 1).await?;
    let Some(EventKind::BrainStart(begin)) = first.first().map(|event| &event.kind) else { return Ok(None) };
    let message = begin.start.as_ref().and_then(|start| start.message.as_ref());
    Ok(message.map(|message| redacted_then_cut(app.settings.redact.as_ref(), message.text.clone(), MAX_OPENING)))
}

async fn read(cx: RequestContext) -> Result<Response, Problem> {
    let (app, id) = (&cx.app, cx.param("conversation")?);
    let mut rows = seen_runs(app, cx.caller()?, id).await?;
    let Some(user) = rows.first().map(|row| row.user.clone()) else {
        return Err(Problem::new(ProblemType::NotFound).detail(format!("there is no conversation `{id}`")));
    };
    rows.reverse();
    json(&ConversationDetail { id: id.to_owned(), user, runs: app.run_items(&rows).await? })
}

/// Returns the runs of a conversation, the last one first; none if it belongs to another user.
async fn seen_runs(app: &App, caller: &Caller, id: &str) -> Result<Vec<RunSummary>, Problem> {
    let rows = app.client.conversations().runs(id).await?;
    Ok(if rows.first().is_some_and(|last| caller.sees(last)) { rows } else { Vec::new() })
}
