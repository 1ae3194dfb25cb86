//! A brain that reads options declares their type with `.options::<Options>()`.

use positronic_core::prelude::*;

fn main() {
    _ = brain("Hello").step("Greet", async |cx| Ok(format!("Hello {}", cx.options.name)));
}
