//! `.exit()` and the other flags come before `.execute(…)`.

use positronic_core::prelude::*;

fn main() {
    let _ = brain("Oracle").r#loop("Ask", |cx| {
        cx.system("Answer.").tool("done", |t| t.execute(async |_: NoArgs, _| Ok("done")).exit())
    });
}
