//! The published rules of the providers' APIs, as far as a body shows them.

pub mod anthropic;
pub mod chat;
pub mod gemini;
pub mod responses;

/// Returns the rule as an error if it is broken.
fn require(holds: bool, rule: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(rule.to_owned()) }
}
