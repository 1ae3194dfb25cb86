//! The published rules of the providers' APIs, as far as a body shows them.

pub mod anthropic;
pub mod chat;
pub mod gemini;
pub mod responses;
pub mod schema;

/// Returns whether a signature or an encrypted text is that of a model. A scripted answer names its model in it: `model:NAME`.
fn is_of(secret: &str, model: &str) -> bool {
    secret.strip_prefix("model:").is_none_or(|made_by| made_by == model)
}

/// Returns the rule as an error if it is broken.
fn require(holds: bool, rule: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(rule.to_owned()) }
}
