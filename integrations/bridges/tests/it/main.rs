//! The bridges over their routes: what holds for the API holds for them, and what a stream says of a run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper of a test fails as the test does"
)]

mod a2a;
mod a2a_http;
mod ag_ui;
mod ai_sdk;
mod errors;
mod handoff;
mod history;
mod mcp;
mod openai;
mod openai_tools;
mod rmcp_client;
mod routes;
mod stopping;
mod support;
