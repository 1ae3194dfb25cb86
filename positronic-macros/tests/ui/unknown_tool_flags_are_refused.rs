//! A flag that is misspelt, doubled or given the wrong value is said at the flag, all of them together.

use positronic_core::Result;
use positronic_macros::tool;

/// Searches.
#[tool(readonly, exit, exit, idempotent = true, approval, name = "a/b", timeout = "soon", retries = "2")]
async fn search(query: String) -> Result<()> {
    Ok(drop(query))
}

fn main() {}
