//! `/runs/{run}/calls/{id}`: one pending item, with what takes the log of its run.

use axum::response::Response;
use positronic_core::store::PendingFilter;
use schemars::JsonSchema;
use serde::Deserialize;

use super::pending_item::{PendingItem, question_id};
use crate::api::runs::can_continue::checked_code;
use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route, json};

/// The most entries of the transcript.
const MAX_CONTEXT: usize = 10;

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
        shown.context = Some(app.context_of(item, context).await?);
    }
    json(&shown)
}

/// Returns whether an item is the question with an id.
fn is_asked(item: &positronic_core::store::PendingItem, id: &str) -> bool {
    question_id(&item.run, &item.pending.call, item.pending.since) == id
}
