//! A2A 1.0 over JSON-RPC and over HTTP+JSON: each brain is an agent, at `/api/v1/a2a/{title}`, and all of them are the skills of one, at
//! `/api/v1/a2a` and `/api/v1/a2a-http`.
//!
//! ```text
//! GET /.well-known/agent-card.json ──▶ the brains that the caller may start, as skills
//! SendMessage {message}            ──▶ a task (a run), once it has a result or waits for a person
//! SendMessage {taskId, data: {question, response}} ──▶ a decision, and the same task
//! SendStreamingMessage, SubscribeToTask ──▶ the task as it is, then its artifacts and its states
//!
//! json_rpc: POST /api/v1/a2a/{title} {method}            ──┐
//!                                                          ├─▶ send, tasks, push ──▶ value or events, or a refusal
//! http_json: POST /api/v1/a2a/{title}/message:send, … ─────┘
//! ```
//!
//! A context is a conversation. A task has the id of its run, so it outlives the connection and the server.

mod card;
mod encoder;
mod error;
mod http_json;
mod input;
mod json_rpc;
mod push;
mod send;
mod task_status;
mod tasks;

use std::sync::Arc;

use positronic_server::extension::Route;
use positronic_server::{ProblemType, Scope};
use schemars::JsonSchema;
use serde_json::Value;

use crate::shared::Shared;

/// The revision of the protocol.
const VERSION: &str = "1.0";

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
    let card = |path, summary| {
        let shared = Arc::clone(shared);
        Route::get(path, summary, move |cx| {
            let shared = Arc::clone(&shared);
            async move { cx.answer(200, &card::card(&cx, &shared)?) }
        })
        .scopes(&[Scope::Read])
        .returns::<AgentCard>(200)
        .problems(&[ProblemType::UnknownBrain])
        .problems_as("application/json", error::http_json_problem)
    };
    let cards = vec![
        card("/.well-known/agent-card.json", "Read the card of all brains as an agent of A2A"),
        card("/api/v1/a2a/{title}/.well-known/agent-card.json", "Read the card of a brain as an agent of A2A"),
    ];
    [cards, json_rpc::routes(shared), http_json::routes(shared)].concat()
}
