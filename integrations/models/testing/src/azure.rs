//! A mock of Azure OpenAI: its paths, API versions, credentials and errors.
//!
//! Sources: Microsoft's reference of the inference API, its page on API versions, and errors that users have reported, as of 2026-11.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use crate::rules;
use crate::wire_forms::{self, Reply};

/// The only deployment.
pub const DEPLOYMENT: &str = "desk";
/// The key of the resource.
pub const KEY: &str = "azure-key-1";
/// What the valid tokens of Entra ID begin with.
pub const TOKEN: &str = "entra-";

/// Dated versions that the deployment supports.
const VERSIONS: [&str; 2] = ["2024-10-21", "2025-04-01-preview"];

/// A resource of Azure OpenAI. It answers each valid request with `Hello.`, and refuses what Azure refuses.
#[derive(Debug)]
pub struct Azure {
    server: MockServer,
    failures: Arc<Mutex<Vec<ResponseTemplate>>>,
}

impl Azure {
    /// Starts a resource.
    pub async fn start() -> Self {
        let server = MockServer::start().await;
        let failures = Arc::default();
        Mock::given(any()).respond_with(Resource(Arc::clone(&failures))).mount(&server).await;
        Self { server, failures }
    }

    /// Answers the next valid request with a failure.
    pub fn fail(&self, failure: ResponseTemplate) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
    }

    /// Returns the address of the resource.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.uri()
    }

    /// Returns the requests so far.
    pub async fn requests(&self) -> Vec<Request> {
        self.server.received_requests().await.unwrap_or_default()
    }
}

/// Answers requests.
struct Resource(Arc<Mutex<Vec<ResponseTemplate>>>);

fn failure(status: u16, code: &str, message: &str) -> ResponseTemplate {
    let body = json!({ "error": { "code": code, "message": message } });
    ResponseTemplate::new(status).insert_header("apim-request-id", "req-azure").set_body_json(body)
}

/// Checks the credential: a key in `api-key`, or a token. A key is not accepted as a token.
fn authorise(request: &Request) -> Result<(), ResponseTemplate> {
    let header = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(token) = header("authorization") {
        if token.strip_prefix("Bearer ").is_some_and(|token| token.starts_with(TOKEN)) {
            return Ok(());
        }
        let message = "Unauthorized. Access token is missing, invalid, audience is incorrect \
                       (https://cognitiveservices.azure.com), or have expired.";
        return Err(ResponseTemplate::new(401).set_body_json(json!({ "statusCode": 401, "message": message })));
    }
    if header("api-key") == Some(KEY) {
        return Ok(());
    }
    let message = "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active \
                   subscription and use a correct regional API endpoint for your resource.";
    Err(failure(401, "401", message))
}

/// Finds the API and the deployment of a request.
fn route<'r>(request: &'r Request, body: &'r Value) -> Result<(&'r str, &'r str), ResponseTemplate> {
    let path = request.url.path();
    let version = request.url.query_pairs().find(|(name, _)| name == "api-version").map(|(_, version)| version);
    let unknown = || failure(404, "404", "Resource not found");
    if let Some(api @ ("/chat/completions" | "/responses")) = path.strip_prefix("/openai/v1") {
        if !matches!(version.as_deref(), None | Some("v1" | "preview" | "latest")) {
            return Err(failure(400, "BadRequest", "API version not supported"));
        }
        return Ok((api, body["model"].as_str().unwrap_or_default()));
    }
    let rest = path.strip_prefix("/openai/deployments/").ok_or_else(unknown)?;
    let (deployment, api) = rest.split_at(rest.find('/').ok_or_else(unknown)?);
    let is_known = api == "/chat/completions" && version.is_some_and(|version| VERSIONS.contains(&&*version));
    if is_known { Ok((api, deployment)) } else { Err(unknown()) }
}

impl Resource {
    fn answer(&self, request: &Request) -> Result<ResponseTemplate, ResponseTemplate> {
        authorise(request)?;
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let (api, deployment) = route(request, &body)?;
        if deployment != DEPLOYMENT {
            let message = "The API deployment for this resource does not exist. If you created the deployment within the last 5 \
                           minutes, please wait a moment and try again.";
            return Err(failure(404, "DeploymentNotFound", message));
        }
        let is_chat = api == "/chat/completions";
        let checked = if is_chat { rules::chat::check(&body) } else { rules::responses::check(&body) };
        checked.map_err(|rule| failure(400, "BadRequest", &rule))?;
        if let Some(failure) = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            return Err(failure);
        }
        let reply = Reply { text: "Hello.".to_owned(), calls: Vec::new() };
        let events = if is_chat { filtered(&wire_forms::chat(&reply, 0)) } else { wire_forms::responses(&reply, 0) };
        let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        Ok(ResponseTemplate::new(200).set_body_raw(body, "text/event-stream"))
    }
}

impl Respond for Resource {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        self.answer(request).unwrap_or_else(|failure| failure)
    }
}

/// Adds what Azure's content filter reports: a chunk about the prompt, results in each choice, and a chunk without a delta.
fn filtered(events: &[String]) -> Vec<String> {
    let results = json!({ "hate": { "filtered": false, "severity": "safe" } });
    let prompt = json!({ "choices": [], "id": "", "model": "", "prompt_filter_results": [{ "prompt_index": 0, "content_filter_results": results }] });
    let with_results = events.iter().map(|event| match serde_json::from_str::<Value>(event) {
        Ok(mut chunk) => {
            for choice in chunk["choices"].as_array_mut().into_iter().flatten() {
                choice["content_filter_results"] = results.clone();
            }
            chunk.to_string()
        }
        Err(_) => event.clone(),
    });
    let late = json!({ "choices": [{ "content_filter_offsets": { "check_offset": 9 }, "content_filter_results": results, "finish_reason": null, "index": 0 }], "id": "", "model": "" });
    let mut events: Vec<_> = [prompt.to_string()].into_iter().chain(with_results).collect();
    events.insert(2, late.to_string());
    events
}
