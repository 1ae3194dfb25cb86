//! A misspelt, repeated or invalid flag is reported at the flag, together with all others.

use positronic_core::Result;
use positronic_core::tool;

/// Searches.
#[tool(readonly, exit, exit, idempotent = true, approval, name = "a/b", timeout = "soon", retries = "2")]
async fn search(query: String) -> Result<()> {
    Ok(drop(query))
}

fn main() {}
