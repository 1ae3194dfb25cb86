//! The closure of `.approval` has a `cx` of its own, and cannot capture that of the loop.

use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Account {
    limit: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Refund {
    amount: u32,
}

fn main() {
    _ = brain("Support").state(Account { limit: 100 }).r#loop("Chat", |cx| {
        cx.system("Help.").tool("refund", |t| {
            t.approval(|refund: &Refund, _| (refund.amount > cx.state.limit).then(|| "much".to_owned()))
                .execute(async |_, _| Ok("paid"))
        })
    });
}
