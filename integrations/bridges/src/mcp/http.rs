//! The protocol over streamable HTTP: the transport of `rmcp` behind the checks of the router's table.
//!
//! Each message has its own caller. A session belongs to the caller that has begun it: its id alone opens nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use futures::future::{BoxFuture, ready};
use futures::stream::once;
use futures::{FutureExt as _, StreamExt as _};
use parking_lot::Mutex;
use positronic_server::extension::{RequestContext as CallerContext, Route};
use positronic_server::{Problem, ProblemType, Scope};
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use schemars::JsonSchema;
use serde_json::Value;

use super::calls_in_flight::{Callers, ToolServer};
use super::listen::{LISTEN, LISTEN_TO_TASKS, renamed};
use crate::json_rpc_error::json_rpc_problem;
use crate::shared::Shared;

const PATH: &str = "/api/v1/mcp";
const SESSION: &str = "mcp-session-id";
/// The header that repeats the method of a message.
const METHOD: &str = "mcp-method";
/// How many sessions one caller may have.
const MAX_SESSIONS: usize = 64;
/// After how long a client without an answer gets the beginning of a stream.
const PATIENCE: Duration = Duration::from_secs(10);

/// A message of the protocol.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what `rmcp` decodes")]
struct McpMessage {
    jsonrpc: String,
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Value>,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

/// The transport, and who has begun which session.
struct SessionService {
    service: StreamableHttpService<ToolServer, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    owners: Mutex<HashMap<String, String>>,
}

pub(crate) fn routes(shared: &Arc<Shared>, longest_call: Duration) -> Vec<Route> {
    let shared = Arc::clone(shared);
    let factory = move || Ok(ToolServer::new(Callers::OfRequest, Arc::clone(&shared), longest_call));
    let sessions = Arc::new(LocalSessionManager::default());
    // The router has checked the host and the origin.
    let config = StreamableHttpServerConfig::default().disable_allowed_hosts().disable_allowed_origins();
    let service = StreamableHttpService::new(factory, Arc::clone(&sessions), config);
    let transport = Arc::new(SessionService { service, sessions, owners: Mutex::default() });
    let handler = || {
        let transport = Arc::clone(&transport);
        move |cx| handle(Arc::clone(&transport), cx)
    };
    let routes = vec![
        Route::post(PATH, "Send a message of MCP", handler())
            .scopes(&[Scope::Read])
            .takes::<McpMessage>()
            .returns::<McpMessage>(200)
            .streams()
            .returns_nothing(202)
            .problems(&[ProblemType::NotFound, ProblemType::TooManyStreams]),
        Route::get(PATH, "Listen to a session of MCP", handler())
            .scopes(&[Scope::Read])
            .streams()
            .problems(&[ProblemType::NotFound, ProblemType::TooManyStreams]),
        Route::delete(PATH, "End a session of MCP", handler())
            .scopes(&[Scope::Read])
            .returns_nothing(204)
            .problems(&[ProblemType::NotFound]),
    ];
    routes.into_iter().map(|route| route.problems_as("application/json", json_rpc_problem)).collect()
}

async fn handle(transport: Arc<SessionService>, cx: CallerContext) -> Result<Response, Problem> {
    let caller = cx.caller()?;
    let owner = format!("{}\n{}", caller.subject(), caller.user_id().unwrap_or_default());
    match cx.header(SESSION) {
        Some(session) if transport.owners.lock().get(session) != Some(&owner) => {
            return Err(Problem::new(ProblemType::NotFound).detail("there is no such session; initialize a new one"));
        }
        Some(_) => {}
        None => transport.make_room(&owner).await?,
    }
    let (place, mut request) = (cx.stream_place()?, cx.request());
    let ends_session = request.method() == Method::DELETE;
    if cx.header(METHOD) == Some(LISTEN)
        && let Some(message) = renamed(cx.json()?)
    {
        request.headers_mut().insert(METHOD, HeaderValue::from_static(LISTEN_TO_TASKS));
        *request.body_mut() = Body::from(message.to_string());
    }
    let cx = Arc::new(cx);
    request.extensions_mut().insert(Arc::clone(&cx));
    let own = Arc::clone(&transport);
    let mut answering: BoxFuture<'static, Response> =
        Box::pin(async move { own.service.handle(request).await.map(Body::new) });
    let mut response = match tokio::time::timeout(PATIENCE, &mut answering).await {
        Ok(response) => response,
        Err(_) => late(answering),
    };
    // The session has ended when the transport answers, and clients take nothing but 200 and 204 for that.
    if ends_session && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
        if let Some(session) = cx.header(SESSION) {
            transport.owners.lock().remove(session);
        }
    }
    if let Some(session) = response.headers().get(SESSION).and_then(|session| session.to_str().ok()) {
        transport.owners.lock().insert(session.to_owned(), owner);
    }
    Ok(if is_stream(&response) { place.relay(response) } else { response })
}

impl SessionService {
    /// Forgets the sessions that have ended, and refuses a caller that has too many.
    async fn make_room(&self, owner: &str) -> Result<(), Problem> {
        let known: Vec<_> = self.owners.lock().keys().cloned().collect();
        for session in known {
            if !self.sessions.has_session(&session.as_str().into()).await.unwrap_or_default() {
                self.owners.lock().remove(&session);
            }
        }
        let count = self.owners.lock().values().filter(|known| *known == owner).count();
        if count < MAX_SESSIONS {
            return Ok(());
        }
        let detail = format!(
            "a caller has at most {MAX_SESSIONS} sessions; end one with DELETE, or wait until an idle one ends"
        );
        Err(Problem::new(ProblemType::TooManyStreams).detail(detail))
    }
}

fn is_stream(response: &Response) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// Begins a stream whose messages come later, so that neither the router nor a proxy gives up before. A client that goes away ends the
/// request.
fn late(answering: BoxFuture<'static, Response>) -> Response {
    let first = once(ready(Ok(Bytes::from_static(b": wait\n\n"))));
    let rest = answering.into_stream().flat_map(|response| {
        let is_stream = is_stream(&response);
        let (before, after) = if is_stream { ("", "") } else { ("data: ", "\n\n") };
        let part = |text: &'static str| once(ready(Ok(Bytes::from_static(text.as_bytes()))));
        part(before).chain(response.into_body().into_data_stream()).chain(part(after))
    });
    let mut response = Response::new(Body::from_stream(first.chain(rest)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}
