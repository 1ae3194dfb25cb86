//! A stage reads the state that the previous step returned.

use positronic_core::dsl::StepContext;
use positronic_core::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Draft {
    text: String,
}

#[derive(Serialize, Deserialize)]
struct Letter {
    address: String,
}

async fn send(cx: StepContext<(), Letter>) -> Result<()> {
    println!("{}", cx.state.address);
    Ok(())
}

fn main() {
    let _closure = brain("Post")
        .step("Write", async |_| Ok(Draft { text: String::new() }))
        .step("Send", async |cx| Ok(cx.state.address));

    let _function = brain("Post").step("Write", async |_| Ok(Draft { text: String::new() })).step("Send", send);
}
