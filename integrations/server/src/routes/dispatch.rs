//! The checks of a request in front of its handler, in the order of the crate's documentation.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{BodyDataStream, Bytes};
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use positronic_core::record::{RunId, RunSummary};
use positronic_core::store::{RunFilter, StoreError};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::accept::{is_json, negotiated};
use super::{Body, Ownership, RequestContext, Route, RouteAccess};
use crate::app::App;
use crate::auth::{AnswerSlot, Caller, Limits, client_address, same_site};
use crate::blocking::{LARGE, off_the_executor};
use crate::bodies::BodySchema;
use crate::problem::{Problem, ProblemType};

/// The maximum time until an answer begins. A stream may then last longer.
const TIME_OUT: Duration = Duration::from_secs(30);
/// The maximum time for which a body makes no progress.
const STALL: Duration = Duration::from_secs(10);

/// The bytes of a body that are read although the route takes none.
const IGNORED: usize = 64 << 10;
/// The bytes of a refused body that are read.
const SKIPPED: usize = 32 << 20;

/// A route of a router.
pub(super) struct ServedRoute {
    route: Route,
    /// The schema of its body, if that is JSON.
    schema: Option<Arc<BodySchema>>,
}

impl ServedRoute {
    pub(super) fn new(route: Route) -> Self {
        let schema = match route.body {
            Body::Json(schema) => Some(Arc::new(BodySchema::new(schema))),
            Body::None | Body::Raw => None,
        };
        Self { route, schema }
    }
}

pub(super) async fn dispatch(
    app: Arc<App>,
    served: &ServedRoute,
    params: Vec<(String, String)>,
    request: Request,
) -> Response {
    let (route, answer) = (&served.route, checked(app, served, params, request));
    let answer = match route.waits {
        true => answer.await,
        false => timeout(TIME_OUT, answer).await.unwrap_or_else(|_| Err(ProblemType::TimedOut.into())),
    };
    let mut response = answer.unwrap_or_else(Problem::into_response);
    if let Some(form) = route.problem_form {
        // The outermost layer writes the problem.
        response.extensions_mut().insert(form);
    }
    response
}

async fn checked(
    app: Arc<App>,
    served: &ServedRoute,
    params: Vec<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let route = &served.route;
    let (parts, body) = request.into_parts();
    if route.query.is_none() && route.path.starts_with("/api/") && parts.uri.query().is_some() {
        return Err(Problem::new(ProblemType::InvalidQuery).detail("this resource has no parameters"));
    }
    let accepted = accepted(route, &parts)?;
    if route.is_unsafe() {
        same_site(&app.settings, &parts)?;
        if app.settings.read_only && route.access != RouteAccess::Public {
            return Err(ProblemType::ReadOnly.into());
        }
    }
    let address = client_address(&app.settings.trusted_proxies, &parts);
    let caller = match route.access {
        RouteAccess::Public => None,
        RouteAccess::Authenticated | RouteAccess::Scopes(_) => match find_caller(&app, &parts).await {
            Ok(caller) => Some(caller),
            Err(problem) => {
                app.limits.request(None, address)?;
                return Err(problem);
            }
        },
    };
    let remaining = if route.unlimited { None } else { app.limits.request(caller.as_ref(), address)? };
    if let (RouteAccess::Scopes(scopes), Some(caller)) = (route.access, &caller)
        && !scopes.iter().any(|scope| caller.may(*scope))
    {
        return Err(Problem::scope_missing(scopes));
    }
    let run = match (route.ownership, &caller) {
        (Ownership::Run, Some(caller)) => Some(find_run(&app, caller, &params).await?),
        (Ownership::Run, None) | (Ownership::None, _) => None,
    };
    let most = match max_bytes(&app, route, &parts) {
        Ok(most) => most,
        Err(problem) => {
            // A client may read the answer only after it has sent its body.
            if caller.is_some() && !parts.headers.contains_key(EXPECT) {
                skip(&mut body.into_data_stream(), SKIPPED).await;
            }
            return Err(problem);
        }
    };
    (route.before_body)(&app, &params, &parts)?;
    let key = Limits::key(caller.as_ref(), address).unwrap_or_default();
    let sender = Sender { key: &key, is_anonymous: caller.is_none() };
    // Until the answer is made.
    let (body, value, _turn) = read(&app, served, &parts, body, most, sender).await?;
    let place = if route.large_answers { app.limits.answers.place(&key).await } else { None };
    let limits = Arc::clone(&app);
    let reporter = app.reporter(&parts);
    let cx = RequestContext { app, parts, params, body, value, accepted, reporter, caller, run, place: place.clone() };
    let answer = (route.handler)(cx).await;
    let mut response = answer.unwrap_or_else(Problem::into_response);
    if let Some(place) = place {
        response.extensions_mut().insert(place);
    }
    if let Some(remaining) = remaining {
        limits.limits.headers(remaining, response.headers_mut());
    }
    Ok(response)
}

/// Finds the caller of a request.
async fn find_caller(app: &App, parts: &Parts) -> Result<Caller, Problem> {
    let caller = app.authenticate.authenticate(parts).await?;
    let caller = caller.filter(|caller| !caller.has_expired(app.now()));
    caller.ok_or_else(|| match parts.headers.contains_key(AUTHORIZATION) {
        true => Problem::new(ProblemType::Unauthenticated)
            .detail("the token is unknown, revoked or expired; `token create` creates another one"),
        false => ProblemType::Unauthenticated.into(),
    })
}

/// The fewest characters of the end of an id that name a run: as many as lists show.
const SHORTEST_END: usize = 4;

/// Reads the row of the run in the path, which names it by its id or by an end of it that no other run has. The run of another user
/// does not exist for the caller.
async fn find_run(app: &App, caller: &Caller, params: &[(String, String)]) -> Result<RunSummary, Problem> {
    let id = params.iter().find(|(name, _)| name == "run").map_or("", |(_, value)| value.as_str());
    let unknown = match app.row(caller, &RunId::new(id)).await {
        Err(problem) if id.len() >= SHORTEST_END && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => problem,
        found => return found,
    };
    let filter = RunFilter::builder().ends(vec![id.to_ascii_lowercase()]).limit(2).build();
    let rows = app.client.store().runs(&filter).await?;
    match rows.as_slice() {
        [row] if caller.sees(row) => Ok(row.clone()),
        [one, other] if caller.sees(one) && caller.sees(other) => {
            Err(unknown.detail(format!("several runs end with `{id}`: `{}`, `{}`, …", one.run, other.run)))
        }
        _ => Err(unknown),
    }
}

impl App {
    /// Reads the row of a run that the caller may see.
    pub(crate) async fn row(&self, caller: &Caller, run: &RunId) -> Result<RunSummary, Problem> {
        let unknown = || {
            Problem::new(ProblemType::UnknownRun)
                .detail(format!("there is no run `{run}`, or it is that of another user"))
        };
        match self.client.store().run(run).await {
            Ok(row) if caller.sees(&row) => Ok(row),
            Ok(_) | Err(StoreError::NoSuchRun { .. }) => Err(unknown()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the media type of the answer that the client wants most.
fn accepted(route: &Route, parts: &Parts) -> Result<Option<&'static str>, Problem> {
    let available = route.media_types();
    let wanted = negotiated(&parts.headers, &available);
    if wanted.is_none() && !available.is_empty() {
        return Err(Problem::new(ProblemType::NotAcceptable).field("available", available));
    }
    Ok(wanted)
}

/// Returns how many bytes the body of a request has at most: what it says itself, or what the route allows.
fn max_bytes(app: &App, route: &Route, parts: &Parts) -> Result<usize, Problem> {
    let most = match route.body {
        Body::None => return Ok(0),
        Body::Json(_) | Body::Raw => route.max_body_bytes.unwrap_or(app.settings.max_body_bytes),
    };
    let announced = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    match announced {
        Some(announced) if announced > most => Err(too_large(most)),
        announced => Ok(announced.unwrap_or(most)),
    }
}

fn too_large(most: usize) -> Problem {
    Problem::new(ProblemType::TooLarge).detail(format!("the body has more than {most} bytes")).field("max_bytes", most)
}

/// Who sends a body.
#[derive(Clone, Copy)]
struct Sender<'a> {
    /// The name by which its large bodies are counted.
    key: &'a str,
    /// Whether the sender is not authenticated yet.
    is_anonymous: bool,
}

/// The permits of a large body: of its sender, of all anonymous senders, and of the server.
type Turn = (Option<AnswerSlot>, Option<OwnedSemaphorePermit>, Option<OwnedSemaphorePermit>);

/// Reads the body, of at most so many bytes, and decodes its JSON.
async fn read(
    app: &App,
    served: &ServedRoute,
    parts: &Parts,
    body: axum::body::Body,
    most: usize,
    sender: Sender<'_>,
) -> Result<(Bytes, Value, Option<Turn>), Problem> {
    if let Body::None = served.route.body {
        // The client can send its next request over the same connection.
        skip(&mut body.into_data_stream(), IGNORED).await;
        return Ok((Bytes::new(), Value::Null, None));
    }
    if served.schema.is_some() && !has_json(parts) {
        return Err(ProblemType::UnsupportedMediaType.into());
    }
    let (bytes, turn) = collect(app, body, most, sender).await?;
    let Some(schema) = &served.schema else { return Ok((bytes, Value::Null, turn)) };
    if bytes.len() <= LARGE {
        let value = schema.read(&bytes)?;
        return Ok((bytes, value, turn));
    }
    let schema = Arc::clone(schema);
    // The turn lasts as long as the decoding, also after a time-out.
    let (value, turn) = off_the_executor(move || (schema.read(&bytes), turn)).await?;
    Ok((Bytes::new(), value?, turn))
}

/// Reads a body that nothing needs. One that is longer, or makes no progress, is left, and ends the connection.
async fn skip(chunks: &mut BodyDataStream, most: usize) {
    let mut length = 0;
    while length < most
        && let Ok(Some(Ok(chunk))) = timeout(STALL, chunks.next()).await
    {
        length += chunk.len();
    }
}

/// Reads the bytes of a body. Large bodies wait for each other, because they take much memory: each once so much of it has arrived, since
/// a client that sends nothing must not keep others waiting. One that makes no progress is given up.
async fn collect(
    app: &App,
    body: axum::body::Body,
    most: usize,
    sender: Sender<'_>,
) -> Result<(Bytes, Option<Turn>), Problem> {
    let (mut chunks, mut bytes, mut turn) = (body.into_data_stream(), Vec::new(), None);
    while let Some(chunk) = timeout(STALL, chunks.next()).await.map_err(|_| ProblemType::TimedOut)? {
        let chunk = chunk.map_err(|error| Problem::new(ProblemType::InvalidBody).detail(error))?;
        let length = bytes.len() + chunk.len();
        if length > most {
            if !sender.is_anonymous {
                skip(&mut chunks, SKIPPED).await;
            }
            return Err(too_large(most));
        }
        if length > LARGE && turn.is_none() {
            turn = Some(app.turn(sender).await);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok((bytes.into(), turn))
}

impl App {
    /// Waits until a large body of a sender may be in memory.
    async fn turn(&self, sender: Sender<'_>) -> Turn {
        let own = self.limits.bodies.place(sender.key).await;
        let anonymous = match sender.is_anonymous {
            true => Arc::clone(&self.large_anonymous_bodies).acquire_owned().await.ok(),
            false => None,
        };
        (own, anonymous, Arc::clone(&self.large_bodies).acquire_owned().await.ok())
    }
}

fn has_json(parts: &Parts) -> bool {
    let media_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    is_json(media_type)
}
