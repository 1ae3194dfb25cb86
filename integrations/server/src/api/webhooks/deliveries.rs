//! `/webhooks/{webhook}/deliveries`: what was and is to be sent to an outgoing webhook.

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::endpoints::records;
use crate::api::runs::list::page;
use crate::auth::Scope;
use crate::cursor::{self, List, PageQuery};
use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route, json};
use crate::time::Time;
use crate::webhooks::{Delivery, DeliveryStatus, WebhookEvent};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/webhooks/{webhook}/deliveries", "List deliveries, the latest event first", list)
            .scopes(&[Scope::Operate])
            .query::<PageQuery>()
            .returns::<List<DeliveryItem>>(200)
            .problems(&[ProblemType::UnknownWebhook, ProblemType::BadCursor]),
        Route::post("/api/v1/webhooks/{webhook}/deliveries/{delivery}/send", "Send a delivery again", send)
            .scopes(&[Scope::Operate])
            .returns::<DeliveryItem>(202)
            .problems(&[ProblemType::UnknownWebhook]),
    ]
}

/// A notice for an outgoing webhook.
#[derive(Serialize, JsonSchema)]
struct DeliveryItem {
    /// The id, which is also `webhook-id`.
    id: String,
    event: WebhookEvent,
    run: String,
    /// The event of the run.
    seq: u64,
    /// When the event was appended.
    at: Time,
    status: Status,
    /// When the next attempt is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<Time>,
    /// When it was delivered or given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<Time>,
    /// The body of the request.
    body: Value,
    /// The last attempts, the first one at the beginning.
    attempts: Vec<AttemptItem>,
}

/// The status of a delivery.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DeliveryStatus")]
enum Status {
    /// An attempt is due now or later, or when the webhook is enabled.
    Pending,
    /// The receiver has accepted it.
    Delivered,
    /// It was given up.
    Failed,
}

/// An attempt to deliver.
#[derive(Serialize, JsonSchema)]
struct AttemptItem {
    at: Time,
    duration_ms: u64,
    /// The HTTP status of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

async fn list(cx: RequestContext) -> Result<Response, Problem> {
    let PageQuery { cursor, limit } = cx.query()?;
    let (webhook, limit) = (cx.param("webhook")?, page(limit)?);
    let records = records(&cx);
    records.endpoint(webhook).await?.ok_or(ProblemType::UnknownWebhook)?;
    let after: Option<String> = cursor.map(|cursor| cursor::decode(&cursor, &webhook)).transpose()?;
    let mut found = records.deliveries(webhook, after.as_deref(), limit + 1).await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|(id, _)| cursor::encode(id, &webhook));
    let items = found.into_iter().map(|(id, delivery)| DeliveryItem::of(id, delivery)).collect();
    json(&List { items, next })
}

async fn send(cx: RequestContext) -> Result<Response, Problem> {
    let (webhook, id) = (cx.param("webhook")?, cx.param("delivery")?);
    let sent = records(&cx).send_again(webhook, id, cx.app.now()).await?.ok_or(ProblemType::UnknownWebhook)?;
    let mut response = json(&DeliveryItem::of(id.to_owned(), sent))?;
    *response.status_mut() = StatusCode::ACCEPTED;
    Ok(response)
}

impl DeliveryItem {
    fn of(id: String, delivery: Delivery) -> Self {
        let Delivery { event, run, seq, at, body, status, failures: _, attempts } = delivery;
        let (status, due, ended) = match status {
            DeliveryStatus::Pending { due } => (Status::Pending, Some(due.into()), None),
            DeliveryStatus::Delivered { at } => (Status::Delivered, None, Some(at.into())),
            DeliveryStatus::Failed { at } => (Status::Failed, None, Some(at.into())),
        };
        let attempts = attempts.into_iter().map(|attempt| AttemptItem {
            at: attempt.at.into(),
            duration_ms: attempt.duration_ms,
            status: attempt.status,
            error: attempt.error,
        });
        let (run, attempts) = (run.to_string(), attempts.collect());
        Self { id, event, run, seq: seq.0, at: at.into(), status, due, ended, body, attempts }
    }
}
