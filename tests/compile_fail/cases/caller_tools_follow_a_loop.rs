//! Only a loop calls tools.

use positronic_core::prelude::*;

fn main() {
    _ = brain("Greeter").step("Greet", async |_| Ok(())).caller_tools();
}
