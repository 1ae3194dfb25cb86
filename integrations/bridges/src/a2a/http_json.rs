//! The binding HTTP+JSON: a route for each operation, below the address of an agent.
//!
//! Verbs such as `:cancel` are a part of the last segment of a path. The agent of all brains has an address of its own, since below
//! `/api/v1/a2a` a brain could be called `tasks`.

use std::sync::Arc;

use axum::response::Response;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use positronic_server::extension::{Frame, RequestContext, Route};
use positronic_server::{Problem, ProblemType, Scope};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{ProtocolError, Refusal, http_json_problem};
use super::input::SendParams;
use super::push::{PushConfig, PushParams};
use super::send::{TaskEvents, check_version, send_message, stream_message, subscribe};
use super::tasks::{ListParams, TaskParams};
use super::{push, tasks};
use crate::shared::{MAX_BODY, Shared};

/// The media type of the protocol. A client that accepts only `application/json` gets that.
const MEDIA_TYPE: &str = "application/a2a+json";

/// The paths of an agent.
struct Paths {
    send: &'static str,
    stream: &'static str,
    tasks: &'static str,
    task: &'static str,
    configs: &'static str,
    config: &'static str,
    extended_card: &'static str,
}

macro_rules! paths {
    ($base:literal) => {
        Paths {
            send: concat!($base, "/message:send"),
            stream: concat!($base, "/message:stream"),
            tasks: concat!($base, "/tasks"),
            task: concat!($base, "/tasks/{task}"),
            configs: concat!($base, "/tasks/{task}/pushNotificationConfigs"),
            config: concat!($base, "/tasks/{task}/pushNotificationConfigs/{config}"),
            extended_card: concat!($base, "/extendedAgentCard"),
        }
    };
}

/// The agent of all brains, and that of one.
const AGENTS: [Paths; 2] = [paths!("/api/v1/a2a-http"), paths!("/api/v1/a2a/{title}")];

/// A message with its configuration. What does not fit gets an error of the protocol, and not a problem.
#[derive(JsonSchema)]
#[schemars(rename = "A2aMessageRequest")]
#[expect(dead_code, reason = "it describes what the operations read")]
struct MessageRequest {
    #[serde(default)]
    message: Value,
    #[serde(default)]
    configuration: Value,
    #[serde(default)]
    metadata: Value,
}

/// Where a client wants to hear of a task.
#[derive(JsonSchema)]
#[schemars(rename = "A2aPushNotificationConfig", rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes what the operations read")]
struct PushRequest {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    task_id: Value,
    #[serde(default)]
    url: Value,
    #[serde(default)]
    token: Value,
    #[serde(default)]
    authentication: Value,
}

/// A value of the protocol.
#[derive(JsonSchema)]
#[schemars(rename = "A2aValue")]
struct HttpAnswer(#[expect(dead_code, reason = "it describes what the server encodes as values")] Value);

/// The query of a task.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TaskQuery {
    /// The most messages of the history; all by default.
    history_length: Option<usize>,
}

/// The query of a list of tasks.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListQuery {
    context_id: Option<String>,
    /// A state such as `TASK_STATE_WORKING`.
    status: Option<String>,
    /// The most tasks; 50 by default, at most 100.
    page_size: Option<usize>,
    /// `nextPageToken` of the page before.
    page_token: Option<String>,
    history_length: Option<usize>,
    /// Only tasks of which something happened at or after this time.
    status_timestamp_after: Option<String>,
    #[serde(default)]
    include_artifacts: bool,
}

/// The query of a list of configurations. A task has at most eight, so they are one page.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "all of them are one page")]
struct ConfigsQuery {
    page_size: Option<usize>,
    page_token: Option<String>,
}

/// An operation with the request that names it.
type Operation = for<'a> fn(&'a Shared, &'a RequestContext) -> BoxFuture<'a, Result<Response, Refusal>>;

pub(super) fn routes(shared: &Arc<Shared>) -> Vec<Route> {
    AGENTS.iter().flat_map(|paths| routes_of(shared, paths)).collect()
}

fn routes_of(shared: &Arc<Shared>, paths: &Paths) -> Vec<Route> {
    let handler = |operation: Operation| {
        let shared = Arc::clone(shared);
        move |cx: RequestContext| {
            let shared = Arc::clone(&shared);
            async move { answered(&shared, &cx, operation).await }
        }
    };
    let get = |path, summary, operation| scoped(Route::get(path, summary, handler(operation)));
    let post = |path, summary, operation| scoped(Route::post(path, summary, handler(operation)));
    let message =
        |path, summary, operation| post(path, summary, operation).takes::<MessageRequest>().max_body(MAX_BODY).waits();
    vec![
        json(message(paths.send, "Send a message to an agent of A2A", |shared, cx| Box::pin(send(shared, cx)))),
        message(paths.stream, "Send a message to an agent of A2A, and follow its task", |shared, cx| {
            Box::pin(streamed(shared, cx))
        })
        .streams(),
        json(get(paths.tasks, "List the tasks of an agent of A2A", |shared, cx| Box::pin(list(shared, cx))))
            .query::<ListQuery>(),
        json(get(paths.task, "Read a task of A2A, or follow it with `:subscribe`", |shared, cx| {
            Box::pin(read(shared, cx))
        }))
        .streams()
        .query::<TaskQuery>(),
        // Its body, which some clients leave out, says nothing that its path does not.
        json(post(paths.task, "Cancel a task of A2A with `:cancel`, or follow it with `:subscribe`", |shared, cx| {
            Box::pin(changed(shared, cx))
        }))
        .streams(),
        json(post(paths.configs, "Create a push notification of a task of A2A", |shared, cx| {
            Box::pin(create_config(shared, cx))
        }))
        .takes::<PushRequest>(),
        json(get(paths.configs, "List the push notifications of a task of A2A", |shared, cx| {
            Box::pin(list_configs(shared, cx))
        }))
        .query::<ConfigsQuery>(),
        json(get(paths.config, "Read a push notification of a task of A2A", |shared, cx| {
            Box::pin(read_config(shared, cx))
        })),
        json(scoped(Route::delete(
            paths.config,
            "Delete a push notification of a task of A2A",
            handler(|shared, cx| Box::pin(delete_config(shared, cx))),
        ))),
        json(get(paths.extended_card, "Read the extended card of an agent of A2A", |_, _| {
            Box::pin(async { Err(Refusal::no_extended_card()) })
        })),
    ]
}

fn scoped(route: Route) -> Route {
    let problems = [ProblemType::NotAllowed, ProblemType::NotAnApprover, ProblemType::TooManyStreams];
    route.scopes(&[Scope::Read]).problems(&problems).problems_as("application/json", http_json_problem)
}

fn json(route: Route) -> Route {
    route.returns_as::<HttpAnswer>(200, MEDIA_TYPE).returns::<HttpAnswer>(200)
}

async fn answered(shared: &Shared, cx: &RequestContext, operation: Operation) -> Result<Response, Problem> {
    let answer = match check_version(cx) {
        Ok(()) => operation(shared, cx).await,
        Err(refusal) => Err(refusal),
    };
    match answer.map_err(Refusal::into_error) {
        Ok(response) => Ok(response),
        Err(error) => {
            let (status, body) = error?.http_json();
            cx.answer(status, &body)
        }
    }
}

/// Reads the body.
///
/// # Errors
///
/// `INVALID_PARAMS` if it does not fit the operation.
fn body<T: DeserializeOwned>(cx: &RequestContext) -> Result<T, Refusal> {
    Ok(cx.json()?)
}

/// Returns a part of the path.
fn part(cx: &RequestContext, name: &str) -> Result<String, Refusal> {
    Ok(cx.param(name)?.to_owned())
}

/// Answers with a stream of the protocol's values, whose last one may be an error.
fn stream(cx: &RequestContext, events: TaskEvents) -> Result<Response, Refusal> {
    Ok(cx.stream(events.map(|event| match event {
        Ok(event) => Frame::json(&event),
        Err(error) => Frame::typed("error", &ProtocolError::http_json(&error).1),
    }))?)
}

async fn send(shared: &Shared, cx: &RequestContext) -> Result<Response, Refusal> {
    let params: SendParams = body(cx)?;
    Ok(cx.answer(200, &send_message(shared, cx, params).await?)?)
}

async fn streamed(shared: &Shared, cx: &RequestContext) -> Result<Response, Refusal> {
    stream(cx, stream_message(shared, cx, body(cx)?).await?)
}

async fn read(shared: &Shared, cx: &RequestContext) -> Result<Response, Refusal> {
    let TaskQuery { history_length } = cx.query()?;
    let id = part(cx, "task")?;
    match id.strip_suffix(":subscribe") {
        Some(id) => stream(cx, subscribe(shared, cx, id).await?),
        None => Ok(cx.answer(200, &tasks::get(cx, shared, &TaskParams { id, history_length }).await?)?),
    }
}

async fn changed(shared: &Shared, cx: &RequestContext) -> Result<Response, Refusal> {
    let named = part(cx, "task")?;
    match named.rsplit_once(':') {
        Some((id, "cancel")) => Ok(cx.answer(200, &tasks::cancel(cx, shared, id).await?)?),
        Some((id, "subscribe")) => stream(cx, subscribe(shared, cx, id).await?),
        _ => Err(Refusal::unknown_method(&format!("POST {named}"))),
    }
}

async fn list(shared: &Shared, cx: &RequestContext) -> Result<Response, Refusal> {
    let query: ListQuery = cx.query()?;
    let params = ListParams {
        context_id: query.context_id.unwrap_or_default(),
        status: query.status.unwrap_or_default(),
        page_size: query.page_size,
        page_token: query.page_token.unwrap_or_default(),
        history_length: query.history_length,
        status_timestamp_after: query.status_timestamp_after.unwrap_or_default(),
        include_artifacts: query.include_artifacts,
    };
    Ok(cx.answer(200, &tasks::list(cx, shared, &params).await?)?)
}

async fn create_config(shared: &Shared, cx: &RequestContext) -> Result<Response, Refusal> {
    let config = body::<PushConfig>(cx)?.of_task(&part(cx, "task")?)?;
    Ok(cx.answer(200, &push::create(cx, shared, &config).await?)?)
}

async fn list_configs(shared: &Shared, cx: &RequestContext) -> Result<Response, Refusal> {
    let ConfigsQuery { .. } = cx.query()?;
    let params = PushParams { task_id: part(cx, "task")?, ..PushParams::default() };
    Ok(cx.answer(200, &push::list(cx, shared, &params).await?)?)
}

async fn read_config(shared: &Shared, cx: &RequestContext) -> Result<Response, Refusal> {
    Ok(cx.answer(200, &push::get(cx, shared, &named_config(cx)?).await?)?)
}

async fn delete_config(shared: &Shared, cx: &RequestContext) -> Result<Response, Refusal> {
    Ok(cx.answer(200, &push::delete(cx, shared, &named_config(cx)?).await?)?)
}

fn named_config(cx: &RequestContext) -> Result<PushParams, Refusal> {
    Ok(PushParams { task_id: part(cx, "task")?, id: part(cx, "config")? })
}
