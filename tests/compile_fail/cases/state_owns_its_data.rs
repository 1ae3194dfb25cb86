use positronic_core::prelude::*;

fn main() {
    let _ = brain("Greeter").step("Greet", async |_| Ok("hello"));
}
