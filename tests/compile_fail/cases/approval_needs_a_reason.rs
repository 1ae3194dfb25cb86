//! An approval closure returns `Some(reason)` or `None`.

use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Refund {
    amount: u32,
}

fn main() {
    let _ = brain("Support").r#loop("Chat", |cx| {
        cx.system("Help.").tool("refund", |t| {
            t.approval(|refund: &Refund, _| refund.amount > 100).execute(async |refund: Refund, _| Ok(refund.amount))
        })
    });
}
