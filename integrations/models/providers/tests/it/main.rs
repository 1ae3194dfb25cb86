//! Tests of the crate's public API.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "../../../anthropic/tests/it/rules.rs"]
mod anthropic_rules;
mod chat_rules;
mod fallback;
#[path = "../../../gemini/tests/it/rules.rs"]
mod gemini_rules;
mod options;
mod strings;
