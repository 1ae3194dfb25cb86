//! A loop that takes tools of its caller: the program that talks to it offers functions of its own, runs them and sends their results.
//!
//! `caller_tools_within` lets the caller's tools stand beside `sights`, the loop's own. A call of one waits in the log for its
//! result, at most an hour; then the model reads that there is none, and continues. `docs/guide/openai-api.md` has a caller in Python.

use std::time::Duration;

use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

/// The brain's title.
pub const TITLE: &str = "Concierge";

/// Answers without a configured model, for a caller with the tool `get_weather`; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/concierge.jsonl");

/// How long a call waits for its caller.
pub const PATIENCE: Duration = Duration::from_hours(1);

#[derive(Debug, Deserialize, JsonSchema)]
struct Town {
    /// The town
    city: String,
}

/// Builds the brain.
pub fn concierge() -> Brain<(), ()> {
    brain(TITLE)
        .description("Plans a day in a town, with the tools of the program that asks")
        .r#loop("Talk", |cx| {
            cx.system("You plan a day in a town. Use the tools that you have, and say what you could not find out.")
                .tool("sights", |t| {
                    t.description("Lists the sights of a town").read_only().execute(async |Town { city }, _| {
                        Ok(format!("{city}: the clock tower, the old arsenal, the market"))
                    })
                })
        })
        .caller_tools_within(PATIENCE)
        .build()
}
