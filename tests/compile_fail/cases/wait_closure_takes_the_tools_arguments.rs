//! A wait closure takes the same arguments as the tool.

use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Message {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Search {
    query: String,
}

fn main() {
    let _ = brain("Support").r#loop("Chat", |cx| {
        cx.system("Help.").tool("search", |t| {
            t.wait(|message: &Message, _| [webhook::<Message>("slack").on(&message.text)])
                .execute(async |Search { query }, _| Ok(query))
        })
    });
}
