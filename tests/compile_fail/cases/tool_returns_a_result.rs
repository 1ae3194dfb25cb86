//! A tool returns a `Result`.

use positronic_core::prelude::*;

fn main() {
    let _ = brain("Oracle").r#loop("Ask", |cx| {
        cx.system("Answer.").tool("hello", |t| t.execute(async |_: NoArgs, _| "hello"))
    });
}
