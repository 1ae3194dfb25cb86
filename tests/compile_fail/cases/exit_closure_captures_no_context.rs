//! The closure of `.on_exit` cannot capture the `cx` of the loop.

use positronic_core::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Account {
    limit: u32,
}

fn main() {
    _ = brain("Support").state(Account { limit: 100 }).r#loop("Chat", |cx| {
        cx.system("Help.").on_exit(move |account, _| account.limit = cx.state.limit)
    });
}
