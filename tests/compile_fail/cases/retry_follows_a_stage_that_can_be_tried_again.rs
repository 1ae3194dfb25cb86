//! A loop repeats its requests and calls by itself, and a wait does nothing that could fail.

use std::time::Duration;

use positronic_core::dsl::Retry;
use positronic_core::prelude::*;

fn main() {
    _ = brain("Agent").r#loop("Chat", |cx| cx.system("Talk.")).retry(Retry::times(2));
    _ = brain("Sleeper").sleep("Pause", |()| Duration::ZERO).retry(Retry::times(2));
    _ = brain("Checked").guard("Passes", |()| true).retry(Retry::times(2));
}
