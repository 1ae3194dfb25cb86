//! Serves the runs of a store over HTTP: an API, the inspector page, webhooks.
//!
//! [`router`] makes an axum router that a service nests, with its own authentication if it has one:
//!
//! ```no_run
//! # use positronic_core::runner::Runner;
//! use positronic_server::{Options, router};
//!
//! # async fn example(runner: Runner) -> std::io::Result<()> {
//! let app = router(runner.client(), Options::builder().brains(runner.clone()).build());
//! axum::serve(tokio::net::TcpListener::bind("127.0.0.1:4747").await?, app).await
//! # }
//! ```
//!
//! A request goes through these steps:
//!
//! ```text
//! host ─▶ route (one table) ─▶ accept, cross-site ─▶ caller ─▶ scope ─▶ rate ─▶ ownership ─▶ body ─▶ handler ─▶ JSON, events
//!   └───────────┴──────────────────────┴───────────────┴─────────┴────────┴─────────┴──────────┴───────┴─▶ problem document
//! ```
//!
//! The `routes` table has one entry per method and path: with its scope, its ownership, its schemas and its problems. The
//! axum router, the authorisation, the OpenAPI document and a test that walks all routes are made from it.

mod api;
mod app;
mod auth;
mod blocking;
mod bodies;
mod brains;
mod continuation;
mod cursor;
mod event_lines;
pub mod extension;
mod forks;
mod long_answer;
mod openapi;
mod options_builder;
mod problem;
mod problem_page;
mod readiness;
mod redact;
mod routes;
mod run_cache;
mod serve;
mod settings;
mod shutdown;
mod sse;
mod state_at_event;
mod time;
mod timeline_cache;
#[cfg(feature = "ui")]
mod ui;
pub mod webhooks;

pub use auth::{
    Authenticate, Caller, DeciderPolicy, DeciderRule, Deciders, InvalidDeciderRule, InvalidIpRange, IpRange, Login,
    Question, Scope, Token, TokenError,
};
pub use brains::{Brains, NoBrains};
pub use options_builder::{Options, OptionsBuilder};
pub use problem::{FieldError, Problem, ProblemType};
pub use redact::{REDACTED, redact_fields};
pub use routes::{openapi, openapi_with, router};
pub use serve::Listener;
pub use shutdown::Shutdown;
pub use url::Url;
