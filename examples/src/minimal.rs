//! The smallest useful loop: a system prompt, a tool to search, and a tool to finish.
//!
//! The closure of `.r#loop` runs before every model call and sets the system prompt and the tools. A tool is a
//! name, a description, a type for its arguments and an async function; an `exit` tool ends the loop when it succeeds.

use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

/// The brain's title.
pub const TITLE: &str = "Minimal";

/// Answers without a configured model; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/minimal.jsonl");

/// What the model fills in to search.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Search {
    /// A few words
    pub query: String,
}

/// Builds the brain. It has no options, no state and no services, so all three of its types are `()`.
pub fn minimal() -> Brain {
    brain(TITLE)
        .description("Answers one question and is done")
        .r#loop("Agent", |cx| {
            cx.system("You are a helpful assistant. Call `done` when the question is answered.")
                .input("How tall is the tallest tree?")
                .tool("search", |t| {
                    t.description("Search the web").read_only().execute(async |Search { query }, _| Ok(search(&query)))
                })
                .tool("done", |t| t.description("Task complete").exit().execute(async |_: NoArgs, _| Ok("done")))
        })
        .build()
}

/// The pages of this example's web.
const WEB: [&str; 3] = [
    "The tallest living tree is a coast redwood of about 116 metres.",
    "The oldest living tree is a bristlecone pine.",
    "A group of owls is called a parliament.",
];

fn search(query: &str) -> Vec<&'static str> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    WEB.into_iter().filter(|page| words.iter().all(|word| page.to_lowercase().contains(word))).collect()
}
