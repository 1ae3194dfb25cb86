//! Push notifications: an address that a client names gets the states of a task that need it: a question, or the end. The outgoing
//! webhooks of the server deliver them. They carry no content; `GetTask` returns it.

use std::fmt;

use positronic_core::record::RunSummary;
use positronic_server::extension::{RequestContext, RunSubscription};
use positronic_server::webhooks::WebhookEvent;
use serde::Deserialize;
use serde_json::{Value, json};

use super::encoder::context_of;
use super::error::Refusal;
use super::task_status::{TaskState, TaskStatus};
use super::tasks::row;
use crate::shared::Shared;

/// The longest id that a client gives a configuration, in bytes.
const MAX_ID: usize = 64;
/// The longest token or credentials, in bytes.
const MAX_SECRET: usize = 4096;

/// Where and how a client wants to hear of a task.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PushConfig {
    id: String,
    task_id: String,
    url: String,
    token: String,
    authentication: Option<Authentication>,
}

/// How the server authenticates itself at the address.
#[derive(Deserialize)]
struct Authentication {
    scheme: String,
    #[serde(default)]
    credentials: String,
}

/// The parameters of the methods that name a configuration of a task.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PushParams {
    pub(super) id: String,
    pub(super) task_id: String,
}

impl fmt::Debug for PushConfig {
    /// Leaves out the token and the credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushConfig")
            .field("id", &self.id)
            .field("task_id", &self.task_id)
            .field("url", &self.url)
            .field("scheme", &self.scheme())
            .finish_non_exhaustive()
    }
}

impl PushConfig {
    /// Returns the configuration for the task that the path of a request names.
    ///
    /// # Errors
    ///
    /// `INVALID_PARAMS` if the configuration names another one.
    pub(super) fn of_task(self, task: &str) -> Result<Self, Refusal> {
        if !self.task_id.is_empty() && self.task_id != task {
            return Err(Refusal::invalid_params("`taskId` is not the task of the path"));
        }
        Ok(Self { task_id: task.to_owned(), ..self })
    }

    fn scheme(&self) -> Option<&str> {
        self.authentication.as_ref().map(|authentication| authentication.scheme.as_str())
    }

    /// Checks what is sent with a message to a task, or to a new one, before it begins.
    ///
    /// # Errors
    ///
    /// The server sends no notifications, or not to this address, the id is too long, or there are too many.
    pub(super) async fn check(&self, cx: &RequestContext, shared: &Shared, task: &str) -> Result<(), Refusal> {
        enabled(shared)?;
        if self.id.len() > MAX_ID {
            return Err(Refusal::invalid_params(format!("the id of a push notification has at most {MAX_ID} bytes")));
        }
        self.headers()?;
        let row = if task.is_empty() { None } else { Some(row(cx, task).await?) };
        Ok(cx.allows_subscription(row.as_ref(), &self.url, self.id_for(task)).await?)
    }

    /// Returns the id: that of the task, if the client gave none.
    fn id_for<'a>(&'a self, task: &'a str) -> &'a str {
        if self.id.is_empty() { task } else { &self.id }
    }

    /// Returns the headers with which the receiver knows its notifications.
    fn headers(&self) -> Result<Vec<(String, String)>, Refusal> {
        let mut headers = Vec::new();
        if !self.token.is_empty() {
            headers.push(("x-a2a-notification-token".to_owned(), self.token.clone()));
        }
        if let Some(Authentication { scheme, credentials }) = &self.authentication {
            headers.push(("authorization".to_owned(), format!("{scheme} {credentials}").trim_end().to_owned()));
        }
        let is_text =
            |value: &str| value.len() <= MAX_SECRET && value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        match headers.iter().find(|(_, value)| !is_text(value)) {
            None => Ok(headers),
            Some((name, _)) => {
                let text = format!("`{name}` has to be at most {MAX_SECRET} visible characters of ASCII");
                Err(Refusal::invalid_params(text))
            }
        }
    }

    /// Stores the configuration for a task, and returns it.
    pub(super) async fn store(&self, cx: &RequestContext, row: &RunSummary) -> Result<Value, Refusal> {
        let (context, task) = (context_of(row), row.run.as_str());
        let body = |state: TaskState| {
            let status = TaskStatus::new(state).value(task, &context, "");
            json!({ "statusUpdate": { "taskId": task, "contextId": context, "status": status } })
        };
        let bodies = [
            (WebhookEvent::DecisionPending, TaskState::InputRequired),
            (WebhookEvent::RunCompleted, TaskState::Completed),
            (WebhookEvent::RunFailed, TaskState::Failed),
            (WebhookEvent::RunCancelled, TaskState::Canceled),
        ];
        let new = RunSubscription::builder()
            .id(self.id_for(task))
            .bodies(bodies.map(|(event, state)| (event, body(state))).into())
            .headers(self.headers()?)
            .details(json!({ "scheme": self.scheme() }))
            .build();
        let value = public_config(row, &self.url, &new);
        cx.subscribe(row, &self.url, new).await?;
        Ok(value)
    }
}

/// Returns a configuration without its token and its credentials.
fn public_config(row: &RunSummary, url: &str, subscription: &RunSubscription) -> Value {
    let mut config = json!({ "id": subscription.id, "taskId": row.run.as_str(), "url": url });
    if let (Some(scheme), Some(fields)) =
        (subscription.details.get("scheme").and_then(Value::as_str), config.as_object_mut())
    {
        fields.insert("authentication".to_owned(), json!({ "scheme": scheme }));
    }
    config
}

pub(super) async fn create(cx: &RequestContext, shared: &Shared, config: &PushConfig) -> Result<Value, Refusal> {
    config.check(cx, shared, &config.task_id).await?;
    config.store(cx, &row(cx, &config.task_id).await?).await
}

/// Refuses the methods of push notifications if the server sends none.
fn enabled(shared: &Shared) -> Result<(), Refusal> {
    if shared.push_notifications { Ok(()) } else { Err(Refusal::no_push_notifications()) }
}

pub(super) async fn get(cx: &RequestContext, shared: &Shared, params: &PushParams) -> Result<Value, Refusal> {
    enabled(shared)?;
    let row = row(cx, &params.task_id).await?;
    let known = cx.subscriptions(&row).await?;
    let found = known.iter().find(|(_, known)| known.id == params.id);
    let (url, found) = found.ok_or_else(|| Refusal::unknown_push_notification(&params.task_id, &params.id))?;
    Ok(public_config(&row, url, found))
}

pub(super) async fn list(cx: &RequestContext, shared: &Shared, params: &PushParams) -> Result<Value, Refusal> {
    enabled(shared)?;
    let row = row(cx, &params.task_id).await?;
    let known = cx.subscriptions(&row).await?;
    let configs: Vec<_> = known.iter().map(|(url, known)| public_config(&row, url, known)).collect();
    Ok(json!({ "configs": configs, "nextPageToken": "" }))
}

pub(super) async fn delete(cx: &RequestContext, shared: &Shared, params: &PushParams) -> Result<Value, Refusal> {
    enabled(shared)?;
    let row = row(cx, &params.task_id).await?;
    cx.unsubscribe(&row, &params.id).await?;
    Ok(json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_has_neither_the_token_nor_the_credentials() {
        let authentication = json!({ "scheme": "Bearer", "credentials": "secret-1" });
        let config = json!({ "id": "first", "token": "secret-2", "authentication": authentication });
        let config: PushConfig = serde_json::from_value(config).unwrap();

        let text = format!("{config:?}");

        assert!(text.contains("Bearer") && !text.contains("secret-"), "{text}");
    }
}
