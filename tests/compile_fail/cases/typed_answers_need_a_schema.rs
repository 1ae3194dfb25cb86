//! The types of a model's and a person's answer have a schema.

use positronic_core::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Rating {
    stars: u8,
}

fn main() {
    let rating = brain("Rater").step("Rate", async |cx| {
        let rating: Rating = cx.model().ask_for("How was it?").await?;
        Ok(rating)
    });
    _ = rating.r#loop("Chat", |cx| {
        cx.system("Help.").tool("rate", |t| {
            t.execute(async |_: NoArgs, cx| Ok(cx.result("asked").wait_for_reply::<Rating>("How was it?")))
        })
    });
}
