//! `/runs/{run}/calls/{id}`: one pending item, with what takes the log of its run.

use axum::response::Response;
use positronic_core::projection::result_text;
use positronic_core::projection::timeline::{AnswerOutcome, Node, NodeKind, Timeline};
use positronic_core::record::Pending;
use positronic_core::store::{PendingFilter, PendingItem as StoredItem};
use schemars::JsonSchema;
use serde::Deserialize;

use super::pending_item::{ContextEntry, PendingItem, question_id};
use crate::api::run_item::value;
use crate::api::runs::can_continue::checked_code;
use crate::api::runs::model_answer::text_of;
use crate::app::App;
use crate::problem::{Problem, ProblemType};
use crate::redact::{REDACTED, Redact, redacted, redacted_then_cut};
use crate::routes::{RequestContext, Route, json};

/// The most entries of the transcript.
const MAX_CONTEXT: usize = 10;
/// The maximum characters of the text of one.
const MAX_TEXT: usize = 2000;

pub(crate) fn routes() -> Vec<Route> {
    let about = "Read a pending item, with the schema of its arguments and what happened before it";
    vec![
        Route::get("/api/v1/runs/{run}/calls/{id}", about, read)
            .query::<ItemQuery>()
            .returns::<PendingItem>(200)
            .problems(&[
                ProblemType::UnknownCall,
                ProblemType::AlreadyDecided,
                ProblemType::Expired,
                ProblemType::RunClosed,
                ProblemType::NotWaiting,
            ]),
    ]
}

/// What to add to a pending item.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ItemQuery {
    /// How many entries of the transcript before the item to add: 0 to 10, none by default.
    context: usize,
}

async fn read(cx: RequestContext) -> Result<Response, Problem> {
    let ItemQuery { context } = cx.query()?;
    let (app, row, id) = (&cx.app, cx.run()?, cx.param("id")?);
    if context > MAX_CONTEXT {
        let detail = format!("`context={context}`: expected 0 to {MAX_CONTEXT}");
        return Err(Problem::new(ProblemType::InvalidQuery).detail(detail));
    }
    let items = app.client.store().pending(&PendingFilter::builder().run(row.run.clone()).build()).await?;
    let asked = |item: &&_| is_asked(item, id);
    let Some(item) = items.iter().find(asked) else { return Err(app.why_not_pending(&row.run, id).await) };
    let (state, check) = (app.client.state(&row.run).await?, checked_code(app, row).await?);
    let mut shown = app.pending_item(cx.caller()?, item, (&state, check.calls.as_deref()));
    // In one line, the fields that it comes from cannot be redacted.
    shown.input = row.input.as_deref().filter(|_| app.settings.redact.is_none()).map(str::to_owned);
    if context > 0 {
        shown.context = Some(context_of(app, item, context).await?);
    }
    json(&shown)
}

/// Returns whether an item is the question with an id.
fn is_asked(item: &StoredItem, id: &str) -> bool {
    question_id(&item.run, &item.pending.call, item.pending.since) == id
}

/// Returns the last entries of the transcript before a pending item, at most so many.
async fn context_of(app: &App, item: &StoredItem, most: usize) -> Result<Vec<ContextEntry>, Problem> {
    let shared = app.folds.of(&item.run).await?;
    let fold = shared.lock().await;
    Ok(entries(&fold.timeline, app.settings.redact.as_ref(), &item.pending, most))
}

/// Returns the last messages, answers and results before an event, in the loop of a call.
fn entries(timeline: &Timeline, redact: Option<&Redact>, item: &Pending, most: usize) -> Vec<ContextEntry> {
    let owner = item.call.parent().unwrap_or_default();
    let before = timeline.nodes().rev().filter(|node| node.seq < item.since && node.path.is_within(&owner));
    let entries = before.filter(|node| node.path != item.call).filter_map(|node| entry(node, redact));
    let mut entries: Vec<_> = entries.take(most).collect();
    entries.reverse();
    entries
}

fn entry(node: &Node, redact: Option<&Redact>) -> Option<ContextEntry> {
    let (kind, text) = match &node.kind {
        // What the engine says is not what has happened.
        NodeKind::Message { from, .. } if value(from) == "engine" => return None,
        NodeKind::Message { text, .. } => ("user", text.clone()),
        NodeKind::Answer(answer) => match &answer.outcome {
            Some(AnswerOutcome::Answered(answer)) => ("assistant", text_of(&answer.parts)),
            _ => return None,
        },
        NodeKind::Call(call) => match &call.result {
            Some(result) => {
                let text = redacted(redact, result).map_or_else(|| REDACTED.to_owned(), |result| result_text(&result));
                ("result", format!("{}: {text}", call.tool))
            }
            None => ("call", format!("{}({})", call.tool, redacted(redact, &*call.arguments).unwrap_or_default())),
        },
        _ => return None,
    };
    if text.trim().is_empty() {
        return None;
    }
    Some(ContextEntry { kind: kind.to_owned(), text: redacted_then_cut(redact, text, MAX_TEXT) })
}
