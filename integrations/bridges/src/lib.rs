//! The runs of a store in the protocols of existing frontends and clients: [AG-UI](Protocol::AgUi), the
//! [AI SDK's UI message stream](Protocol::AiSdk), [MCP](Protocol::Mcp), [OpenAI's API](Protocol::OpenAi) and
//! [A2A](Protocol::A2a).
//!
//! [`Bridges::routes`] are routes for the router of [`positronic_server`]; the same tokens, scopes, ownership, limits and redaction
//! hold for them as for the API:
//!
//! ```no_run
//! # use positronic_core::runner::Runner;
//! use positronic_bridges::Bridges;
//! use positronic_server::{Options, router};
//!
//! # async fn example(runner: Runner) -> std::io::Result<()> {
//! let options = Options::builder().brains(runner.clone()).routes(Bridges::builder().build().routes()).build();
//! axum::serve(tokio::net::TcpListener::bind("127.0.0.1:4747").await?, router(runner.client(), options)).await
//! # }
//! ```
//!
//! Each stream is a projection of the run's log:
//!
//! ```text
//! request ──▶ thread (which run, the newest message, decisions) ──▶ signals
//! log, live deltas ──▶ projection (items that people see) ──▶ encoder of a protocol ──▶ leg (start, end) ──▶ stream
//! ```

mod a2a;
mod ag_ui;
mod ai_sdk;
mod answer_form;
mod bridges;
mod caller_result;
mod cut_off;
mod decisions;
mod history;
mod json_rpc_error;
mod last_answer;
mod leg;
mod mcp;
mod open_questions;
mod openai;
mod outputs;
mod projection;
mod shared;
mod thread;

pub use bridges::{Bridges, Protocol, UnknownProtocol};
