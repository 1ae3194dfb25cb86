//! A run starts with the options that its brain declares.

use positronic_core::prelude::*;
use positronic_core::runner::Runner;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Question {
    text: String,
}

async fn start(runner: Runner) {
    let oracle = brain("Oracle").options::<Question>().step("Answer", async |cx| Ok(cx.options.text.clone()));

    _ = runner.start(oracle, "why?").await;
}

fn main() {
    _ = start;
}
