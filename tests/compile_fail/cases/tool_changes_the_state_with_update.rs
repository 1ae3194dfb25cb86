//! The name of the state's type says how a tool changes it: `cx.update(…)`.

use positronic_core::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Ticket {
    open: bool,
    notes: Vec<String>,
}

fn main() {
    let ticket = Ticket { open: true, notes: Vec::new() };
    _ = brain("Support").state(ticket).r#loop("Chat", |cx| {
        cx.system("Help.").tool("close", |t| {
            t.execute(async |_: NoArgs, mut cx| {
                cx.state.open = false;
                cx.state.notes.push("closed".to_owned());
                Ok("closed")
            })
        })
    });
}
