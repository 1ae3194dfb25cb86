//! A server that checks requests by a provider's published rules and plays answers.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

/// Checks the body of a request, and says which rule it breaks.
pub type Rules = fn(&Value) -> Result<(), String>;

/// A provider whose answers are scripted. It answers a request that breaks a rule with status 400 and the rule.
#[derive(Debug)]
pub struct Provider {
    server: MockServer,
    bodies: Arc<Mutex<Vec<Value>>>,
}

#[derive(Debug)]
struct Script {
    rules: Rules,
    answers: Mutex<Vec<ResponseTemplate>>,
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl Provider {
    /// Starts a provider with these rules and answers, each the events of a stream.
    pub async fn start(rules: Rules, answers: Vec<Vec<String>>) -> Self {
        let stream = |events: Vec<String>| {
            let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
            ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
        };
        Self::with(rules, answers.into_iter().map(stream).collect()).await
    }

    /// Starts a provider with these rules and answers.
    pub async fn with(rules: Rules, mut answers: Vec<ResponseTemplate>) -> Self {
        answers.reverse();
        let server = MockServer::start().await;
        let bodies = Arc::default();
        let script = Script { rules, answers: Mutex::new(answers), bodies: Arc::clone(&bodies) };
        Mock::given(any()).respond_with(script).mount(&server).await;
        Self { server, bodies }
    }

    /// Returns the URL of the server.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.uri()
    }

    /// Returns the bodies of the requests so far.
    #[must_use]
    pub fn bodies(&self) -> Vec<Value> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the requests so far.
    pub async fn requests(&self) -> Vec<Request> {
        self.server.received_requests().await.unwrap_or_default()
    }
}

impl Respond for Script {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let refuse = |rule: String| {
            let error = json!({ "error": { "type": "invalid_request_error", "message": rule } });
            ResponseTemplate::new(400).set_body_json(error)
        };
        let body = match serde_json::from_slice(&request.body) {
            Ok(body) => body,
            Err(error) => return refuse(error.to_string()),
        };
        if let Err(rule) = (self.rules)(&body) {
            return refuse(rule);
        }
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).push(body);
        let next = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        next.unwrap_or_else(|| refuse("the script has no further answer".to_owned()))
    }
}
