//! A step returns a `Result`.

use positronic_core::prelude::*;

fn main() {
    let _ = brain("Greeter").step("Greet", async |_| "hello".to_owned());
}
