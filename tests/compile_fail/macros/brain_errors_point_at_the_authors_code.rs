//! An error inside a renamed `.loop(…)`, at any depth, is underlined in the author's code.

use positronic_core::prelude;
use positronic_core::brain;

fn main() {
    brain! {
        "Support Agent"
        .step("Open", async |_| Ok(7_u32))
        .loop("Chat", |cx| {
            let _inner = prelude::brain("Inner").step("Open", async |_| Ok(8_u64)).loop("Ask", |cx| cx.system(cx.state.missing));
            cx.system(cx.state.forgotten)
        })
    };
}
