//! A resume closure takes the payload type of its webhook.

use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Answer {
    text: String,
}

fn main() {
    let _typed = brain("Support").state(0_u32).r#loop("Chat", |cx| {
        cx.system("Help.").tool("ask", |t| {
            t.wait(|_: &NoArgs, _| [webhook::<Answer>("slack").on("7").resume(|count, answer: u32| *count += answer)])
                .execute(async |_, _| Ok("asked"))
        })
    });

    let _lost = brain("Support").state(0_u32).r#loop("Chat", |cx| {
        cx.system("Help.").tool("ask", |t| {
            t.execute(async |_: NoArgs, cx| {
                let hook = webhook::<Answer>("slack").on("7").resume(|count: &mut u32, _| *count += 1);
                Ok(cx.result("asked").wait_for([hook]))
            })
        })
    });
}
