//! The error for a type without the derive names the derive.

use positronic_core::prelude::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Other {}

fn main() {
    _ = brain("Robot").r#loop("Act", |cx| cx.system("").act(async |_: Other, _| Ok(())));
}
