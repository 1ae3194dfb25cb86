//! A tool's arguments derive `Deserialize` and `JsonSchema`.

use positronic_core::prelude::*;
use schemars::JsonSchema;

#[derive(JsonSchema)]
struct Search {
    query: String,
}

fn main() {
    let _ = brain("Oracle").r#loop("Ask", |cx| {
        cx.system("Answer.").tool("search", |t| t.execute(async |Search { query }, _| Ok(query)))
    });
}
