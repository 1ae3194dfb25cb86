//! A tool changes the state with `cx.update(|ticket| ticket.open = false)`.

use positronic_core::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Ticket {
    open: bool,
}

/// Assigns a field.
#[tool]
async fn close(mut cx: ToolContext<(), Ticket>) -> Result<()> {
    cx.state.open = false;
    Ok(())
}

/// Assigns the state.
#[tool]
async fn replace(mut cx: ToolContext<(), Ticket>) -> Result<()> {
    cx.state = Ticket { open: false };
    Ok(())
}

/// Assigns a conversion.
#[tool]
async fn convert(mut cx: ToolContext<(), Ticket>) -> Result<()> {
    cx.state = Ticket { open: false }.into();
    Ok(())
}

fn main() {
    _ = brain("Support").state(Ticket { open: true }).r#loop("Chat", |cx| cx.system("Help.").tools([close(), replace(), convert()]));
}
