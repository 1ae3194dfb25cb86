//! An approval closure takes the same arguments as the tool.

use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Refund {
    amount: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Search {
    query: String,
}

fn main() {
    let _ = brain("Support").r#loop("Chat", |cx| {
        cx.system("Help.").tool("search", |t| {
            t.approval(|refund: &Refund, _| (refund.amount > 100).then(|| "much".to_owned()))
                .execute(async |Search { query }, _| Ok(query))
        })
    });
}
