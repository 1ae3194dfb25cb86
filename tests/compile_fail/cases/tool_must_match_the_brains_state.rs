//! A tool that was built elsewhere must match the state of the brain.

use positronic_core::dsl::ToolReply;
use positronic_core::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Ticket {
    open: bool,
}

/// Closes the ticket.
#[tool]
async fn close(cx: ToolContext<(), Ticket>) -> Result<ToolReply<Ticket>> {
    Ok(cx.result("closed").update(|ticket| ticket.open = false))
}

fn main() {
    let _ = brain("Greeter").state("hello".to_owned()).r#loop("Chat", |cx| cx.system("Greet.").tools([close()]));
}
