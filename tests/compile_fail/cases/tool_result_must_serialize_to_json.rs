//! A tool returns a value that derives `Serialize`, or `cx.result(…)`.

use positronic_core::prelude::*;

struct Page {
    text: String,
}

fn main() {
    let _ = brain("Oracle").r#loop("Ask", |cx| {
        cx.system("Answer.")
            .tool("open", |t| t.execute(async |_: NoArgs, _| Ok(Page { text: String::new() })))
            .tool("read", |t| t.execute(async |_: NoArgs, cx| Ok(cx.result(Page { text: String::new() }))))
    });
}
