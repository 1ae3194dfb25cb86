//! Services are declared before the first stage.

use positronic_core::prelude::*;

struct Acme;

/// Sends a letter.
#[tool]
async fn send(cx: ToolContext<(), (), Acme>) -> Result<()> {
    let _: &Acme = &cx.services;
    Ok(())
}

fn main() {
    let _bound = brain("Support").step("Open", async |_| Ok(7)).bind(Acme);
    let _tool = brain("Support").r#loop("Chat", |cx| cx.system("Help.").tools([send()]));
}
