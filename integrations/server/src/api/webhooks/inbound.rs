//! `/hooks`: inbound webhooks. The signature is the authentication of a delivery.

use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use positronic_core::dsl::ProjectWebhook;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::cursor::List;

use crate::app::App;
use crate::bodies::cut;
use crate::problem::{Problem, ProblemType};
use crate::routes::{Params, RequestContext, Route, RouteAccess, json};
use crate::webhooks::{HookAcceptance, HookError, HookOutcome};

pub(crate) fn routes() -> Vec<Route> {
    let hook = |path, summary| {
        Route::post(path, summary, receive)
            .access(RouteAccess::Public)
            .takes_bytes()
            .before_body(check_headers)
            .returns::<AcceptedHook>(202)
            .returns_text(200, "text/plain")
            .problems(&[ProblemType::BadSignature, ProblemType::PayloadInvalid])
    };
    vec![
        Route::get("/api/v1/hooks", "List the webhooks that the project knows", list).returns::<List<HookItem>>(200),
        hook("/api/v1/hooks/{name}", "Deliver a signed webhook that contains its identifier"),
        hook("/api/v1/hooks/{name}/{identifier}", "Deliver a signed webhook for an identifier"),
    ]
}

/// A webhook of the project.
#[derive(Serialize, JsonSchema)]
struct HookItem {
    name: String,
    description: String,
    /// The JSON schema of its payload.
    payload_schema: Value,
    /// The brains of which it starts runs.
    starts: Vec<String>,
    /// The brains with a stage that waits for it, or a loop that declares that its tools do.
    waits: Vec<String>,
    /// Whether this server accepts it from a sender.
    accepted: bool,
}

async fn list(cx: RequestContext) -> Result<Response, Problem> {
    let (brains, hooks) = (&*cx.app.settings.brains, &cx.app.settings.hooks);
    let starts = brains.starts();
    let structures: Vec<_> = brains.definitions().iter().map(|brain| brain.structure()).collect();
    let item = |webhook: &ProjectWebhook| {
        let name = webhook.name();
        let starting = starts.iter().filter(|start| start.webhook == name);
        let waiting = structures.iter().filter(|brain| brain.waits().iter().any(|(_, wait)| *wait == name));
        HookItem {
            name: name.to_owned(),
            description: webhook.description().to_owned(),
            payload_schema: Value::clone(webhook.payload_schema()),
            starts: starting.map(|start| start.brain.clone()).collect(),
            waits: waiting.map(|brain| brain.title.clone()).collect(),
            accepted: hooks.names().any(|known| known == name),
        }
    };
    json(&List::whole(brains.webhooks().iter().map(item).collect()))
}

/// What an accepted webhook led to.
#[derive(Serialize, JsonSchema)]
struct AcceptedHook {
    /// `matched`: a run received it, now or earlier. `started`: it has started a run, now or earlier. `kept`: no run waits for it
    /// yet, and it is kept for seven days.
    accepted: HookAcceptance,
    /// The run that it has started.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
}

/// Refuses a webhook whose headers alone show that it is not genuine.
fn check_headers(app: &App, params: &Params, parts: &Parts) -> Result<(), Problem> {
    if app.settings.read_only {
        return Err(ProblemType::ReadOnly.into());
    }
    let param = |wanted| params.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let name = param("name").unwrap_or_default();
    Ok(app.settings.hooks.check_headers(name, param("identifier"), &parts.headers, app.now())?)
}

async fn receive(cx: RequestContext) -> Result<Response, Problem> {
    let app = &cx.app;
    let (name, identifier) = (cx.param("name")?, cx.param("identifier").ok());
    let (hooks, brains) = (&app.settings.hooks, &*app.settings.brains);
    match hooks.receive(&app.client, brains, name, identifier, &cx.parts.headers, &cx.body).await? {
        HookOutcome::Accepted { accepted, run } => {
            let run = run.map(|run| run.to_string());
            let mut response = json(&AcceptedHook { accepted, run })?;
            *response.status_mut() = StatusCode::ACCEPTED;
            Ok(response)
        }
        HookOutcome::Answer(answer) => Ok(answer.text.into_response()),
    }
}

impl From<HookError> for Problem {
    fn from(error: HookError) -> Self {
        match error {
            // The answer does not reveal which names exist.
            HookError::Unknown | HookError::Signature(_) => Self::new(ProblemType::BadSignature),
            HookError::Payload(error) => Self::new(ProblemType::PayloadInvalid).detail(cut(&error.to_string())),
            HookError::Misfit(reason) => Self::new(ProblemType::PayloadInvalid).detail(reason),
            HookError::NotStarted(reason) => Self::new(ProblemType::Internal).detail(reason),
            HookError::Store(error) => error.into(),
        }
    }
}
