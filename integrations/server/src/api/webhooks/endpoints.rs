//! `/webhooks`: the endpoints of outgoing webhooks.

use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use positronic_core::record::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::auth::Scope;
use crate::cursor::List;
use crate::problem::{FieldError, Problem, ProblemType};
use crate::routes::{RequestContext, Route, json};
use crate::time::Time;
use crate::webhooks::{Disabled, Endpoint, Records, WebhookEvent, WebhookSecret, parse_url};

/// The most keys that sign a delivery.
const MAX_SECRETS: usize = 4;
/// The longest id of an endpoint.
const MAX_ID: usize = 64;

pub(crate) fn routes() -> Vec<Route> {
    const PATH: &str = "/api/v1/webhooks/{webhook}";
    vec![
        Route::get("/api/v1/webhooks", "List the outgoing webhooks", list)
            .scopes(&[Scope::Operate])
            .returns::<List<WebhookItem>>(200),
        Route::get(PATH, "Read an outgoing webhook", read)
            .scopes(&[Scope::Operate])
            .returns::<WebhookItem>(200)
            .problems(&[ProblemType::UnknownWebhook]),
        Route::new(Method::PUT, PATH, "Create or change an outgoing webhook", put)
            .scopes(&[Scope::Admin])
            .takes::<NewWebhook>()
            .returns::<WebhookWithSecrets>(200)
            .problems(&[ProblemType::Conflict]),
        Route::new(Method::DELETE, PATH, "Remove an outgoing webhook with its deliveries", remove)
            .scopes(&[Scope::Admin])
            .returns_nothing(204)
            .problems(&[ProblemType::UnknownWebhook, ProblemType::Conflict]),
    ]
}

/// An outgoing webhook. Its secrets are not shown.
#[derive(Serialize, JsonSchema)]
struct WebhookItem {
    id: String,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The notices that it gets; empty for all.
    events: Vec<WebhookEvent>,
    /// The title of the brain whose runs it gets notices about; all brains without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    brain: Option<String>,
    enabled: bool,
    /// Why it is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_reason: Option<String>,
    created: Time,
    /// It gets notices of events from this time on.
    since: Time,
}

/// An outgoing webhook after a change.
#[derive(Serialize, JsonSchema)]
struct WebhookWithSecrets {
    #[serde(flatten)]
    webhook: WebhookItem,
    /// The secrets that the receiver needs, if they are new. They are not shown again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<String>,
}

/// An outgoing webhook to create or to replace.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewWebhook {
    /// Where notices go.
    url: String,
    #[serde(default)]
    description: Option<String>,
    /// The notices that it gets; all without it.
    #[serde(default)]
    events: Vec<WebhookEvent>,
    /// The title of the brain whose runs it gets notices about; all brains without it.
    #[serde(default)]
    brain: Option<String>,
    /// The secrets that sign each delivery, `whsec_` and base64 of 24 to 64 bytes. To rotate, send the new and the old one
    /// first, and later the new one alone. Without it, the secrets stay; a new webhook gets a generated one.
    #[serde(default)]
    secrets: Vec<String>,
    /// Whether it gets notices; a webhook that is enabled again gets those of later events.
    #[serde(default = "yes")]
    enabled: bool,
}

const fn yes() -> bool {
    true
}

async fn list(cx: RequestContext) -> Result<Response, Problem> {
    let endpoints = records(&cx).endpoints().await?;
    let items = endpoints.into_iter().map(|(id, endpoint)| WebhookItem::of(id, endpoint)).collect();
    json(&List { items, next: None })
}

async fn read(cx: RequestContext) -> Result<Response, Problem> {
    let id = cx.param("webhook")?;
    let endpoint = records(&cx).endpoint(id).await?.ok_or(ProblemType::UnknownWebhook)?;
    json(&WebhookItem::of(id.to_owned(), endpoint.value))
}

async fn put(cx: RequestContext) -> Result<Response, Problem> {
    let (id, new): (_, NewWebhook) = (cx.param("webhook")?, cx.json()?);
    if !is_id(id) {
        let detail = format!("the id of a webhook has 1 to {MAX_ID} of the characters a-z, 0-9, `-` and `_`");
        return Err(Problem::new(ProblemType::InvalidPath).detail(detail));
    }
    let url = parse_url(&new.url, cx.app.settings.webhook_addresses).map_err(|error| invalid("/url", &error))?;
    let now = cx.app.now();
    let mut shown = given_secrets(&new.secrets)?;
    let records = records(&cx);
    let stored = records.put_endpoint(id, |before| {
        // The headers of a subscription authenticate the server at the client's address, and at no other.
        if before.as_ref().is_some_and(|before| before.subscription.is_some() && before.url != url.as_str()) {
            let detail = "the webhook is a client's subscription to a run, whose URL stays; remove it instead";
            return Err(Problem::new(ProblemType::Conflict).detail(detail));
        }
        let mut endpoint = new.endpoint(url.as_str(), before.as_ref(), now);
        if shown.is_empty() && before.is_none() {
            shown.push(WebhookSecret::generate().map_err(|error| Problem::new(ProblemType::Internal).detail(error))?);
        }
        if !shown.is_empty() {
            endpoint.secrets.clone_from(&shown);
        }
        Ok::<_, Problem>(Some(endpoint))
    });
    let stored = stored.await?.ok_or(ProblemType::Conflict)?;
    let secrets = shown.iter().map(WebhookSecret::reveal).collect();
    json(&WebhookWithSecrets { webhook: WebhookItem::of(id.to_owned(), stored), secrets })
}

async fn remove(cx: RequestContext) -> Result<Response, Problem> {
    if records(&cx).remove_endpoint(cx.param("webhook")?).await? {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(ProblemType::UnknownWebhook.into())
    }
}

pub(crate) fn records(cx: &RequestContext) -> Records {
    Records::new(cx.app.client.clone())
}

fn is_id(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    (1..=MAX_ID).contains(&text.len()) && text.bytes().all(allowed)
}

fn given_secrets(texts: &[String]) -> Result<Vec<WebhookSecret>, Problem> {
    if texts.len() > MAX_SECRETS {
        return Err(invalid("/secrets", &format!("a webhook has at most {MAX_SECRETS} secrets")));
    }
    let parse = |(index, text): (usize, &String)| {
        WebhookSecret::parse(text).map_err(|error| invalid(&format!("/secrets/{index}"), &error))
    };
    texts.iter().enumerate().map(parse).collect()
}

fn invalid(pointer: &str, reason: &dyn ToString) -> Problem {
    Problem::new(ProblemType::InvalidBody).errors(vec![FieldError::new(pointer, reason.to_string())])
}

impl NewWebhook {
    fn endpoint(&self, url: &str, before: Option<&Endpoint>, now: Timestamp) -> Endpoint {
        let reason = || "a person has disabled it".to_owned();
        let disabled = match before.and_then(|before| before.disabled.clone()) {
            _ if self.enabled => None,
            Some(disabled) => Some(Disabled { by_person: true, ..disabled }),
            None => Some(Disabled { reason: reason(), at: now, by_person: true }),
        };
        let was_enabled = before.filter(|before| before.disabled.is_none());
        Endpoint {
            url: url.to_owned(),
            description: self.description.clone(),
            events: self.events.clone(),
            brain: self.brain.clone(),
            secrets: before.map(|before| before.secrets.clone()).unwrap_or_default(),
            created: before.map_or(now, |before| before.created),
            since: was_enabled.map_or(now, |before| before.since),
            disabled,
            subscription: before.and_then(|before| before.subscription.clone()),
        }
    }
}

impl WebhookItem {
    fn of(id: String, endpoint: Endpoint) -> Self {
        let Endpoint { url, description, events, brain, created, since, disabled, .. } = endpoint;
        Self {
            id,
            url,
            description,
            events,
            brain,
            enabled: disabled.is_none(),
            disabled_reason: disabled.map(|disabled| disabled.reason),
            created: created.into(),
            since: since.into(),
        }
    }
}

#[cfg(test)]
mod tests;
