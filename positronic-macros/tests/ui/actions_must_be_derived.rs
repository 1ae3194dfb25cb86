//! What is no enum of actions is told how it becomes one.

use positronic_core::prelude::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Other {}

fn main() {
    _ = brain("Robot").r#loop("Act", |cx| cx.system("").act(async |_: Other, _| Ok(())));
}
