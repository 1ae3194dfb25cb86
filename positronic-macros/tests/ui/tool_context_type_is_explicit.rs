//! The context of `#[tool]` is named by its own type, not by an alias.

use positronic_core::prelude::*;
use positronic_core::tool;

type Cx = ToolContext<(), String>;

/// Says the state.
#[tool]
async fn say(cx: Cx) -> Result<String> {
    Ok(cx.state.to_string())
}

fn main() {}
