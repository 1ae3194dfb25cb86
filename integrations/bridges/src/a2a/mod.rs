//! A2A 1.0 over JSON-RPC: each brain is an agent, at `/api/v1/a2a/{title}`, and all of them are the skills of one, at `/api/v1/a2a`.
//!
//! ```text
//! GET  /.well-known/agent-card.json ──▶ the brains that the caller may start, as skills
//! POST SendMessage {message}        ──▶ a task (a run), once it has a result or waits for a person
//! POST SendMessage {taskId, data: {question, response}} ──▶ a decision, and the same task
//! POST SendStreamingMessage, SubscribeToTask ──▶ the task as it is, then its artifacts and its states
//! ```
//!
//! A context is a conversation. A task has the id of its run, so it outlives the connection and the server.

mod card;
mod encoder;
mod error;
mod input;
mod parts;
mod push;
mod send;
mod server;
mod tasks;

use std::sync::Arc;

use positronic_server::extension::Route;
use positronic_server::{ProblemType, Scope};
use schemars::JsonSchema;
use serde_json::Value;

use crate::bridges::Shared;

/// The maximum bytes of a body.
const MAX_BODY: usize = 8 << 20;
/// The revision of the protocol.
const VERSION: &str = "1.0";

/// An answer of JSON-RPC.
#[derive(JsonSchema)]
#[schemars(rename = "A2aAnswer")]
#[expect(dead_code, reason = "it describes what the server encodes as values")]
struct RpcAnswer {
    jsonrpc: String,
    id: Value,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

/// The card of an agent.
#[derive(JsonSchema)]
#[schemars(rename = "A2aAgentCard", rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes what the server encodes as values")]
struct AgentCard {
    name: String,
    description: String,
    version: String,
    supported_interfaces: Vec<Value>,
    capabilities: Value,
    security_schemes: Value,
    security_requirements: Vec<Value>,
    default_input_modes: Vec<String>,
    default_output_modes: Vec<String>,
    skills: Vec<Value>,
}

pub(crate) fn routes(shared: &Arc<Shared>) -> Vec<Route> {
    let rpc = |path, summary| {
        let shared = Arc::clone(shared);
        Route::post(path, summary, move |cx| {
            let shared = Arc::clone(&shared);
            async move { server::answer(&shared, &cx).await }
        })
        .scopes(&[Scope::Read])
        .takes::<input::RpcRequest>()
        .max_body(MAX_BODY)
        .waits()
        .returns::<RpcAnswer>(200)
        .streams()
        .problems(&[ProblemType::NotAllowed, ProblemType::NotAnApprover, ProblemType::TooManyStreams])
    };
    let card = |path, summary| {
        let shared = Arc::clone(shared);
        Route::get(path, summary, move |cx| {
            let shared = Arc::clone(&shared);
            async move { cx.answer(200, &card::card(&cx, &shared)?) }
        })
        .scopes(&[Scope::Read])
        .returns::<AgentCard>(200)
        .problems(&[ProblemType::UnknownBrain])
    };
    vec![
        card("/.well-known/agent-card.json", "Read the card of all brains as an agent of A2A"),
        card("/api/v1/a2a/{title}/.well-known/agent-card.json", "Read the card of a brain as an agent of A2A"),
        rpc("/api/v1/a2a", "Send a request of A2A"),
        rpc("/api/v1/a2a/{title}", "Send a request of A2A to the agent of a brain"),
    ]
}
