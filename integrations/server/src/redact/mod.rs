//! Redaction of secrets at the edge of the API: what a client gets has a mark in their place, the log keeps them.

mod answer;
mod fields;
mod mark;
mod restore;
mod text;

pub(crate) use answer::{Redact, redacted, redacted_answer, redacted_text, redacted_then_cut};
pub use fields::redact_fields;
pub(crate) use mark::AsIs;
pub use mark::REDACTED;
pub(crate) use restore::{shown, with_secrets};
