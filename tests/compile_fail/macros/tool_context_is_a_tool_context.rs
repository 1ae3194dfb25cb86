//! The parameter `cx` of `#[tool]` is its context, so its type is a `ToolContext` or an alias of one.

use positronic_core::prelude::*;
use positronic_core::tool;

/// Says the text.
#[tool]
async fn say(cx: String) -> Result<String> {
    Ok(cx)
}

fn main() {}
