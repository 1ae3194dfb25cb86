//! The maps of a sub-brain return its options and take its result.

use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Question {
    text: String,
}

fn main() {
    let oracle = || brain("Oracle").options::<Question>().step("Answer", async |cx| Ok(cx.options.text.len()));

    let _input = brain("Seeker").brain("Ask", oracle()).map_input(|_| "why?".to_owned()).map_output(|_, length| length);

    let _output = brain("Seeker").state(String::new()).r#loop("Ask", |cx| {
        cx.system("Seek.").tool("ask", |t| t.brain(oracle()).map_output(|state, answer| state.push_str(answer)))
    });
}
