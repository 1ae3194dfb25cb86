//! A tool ends with `.execute(…)`.

use positronic_core::prelude::*;

fn main() {
    let _ = brain("Oracle").r#loop("Ask", |cx| cx.system("Answer.").tool("done", |t| t.description("Is done").exit()));
}
