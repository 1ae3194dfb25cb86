//! Options, services and the initial state are set before the first stage.

use positronic_core::prelude::*;

struct Acme;

fn main() {
    _ = brain("Support").step("Open", async |_| Ok(7)).options::<u32>();
    _ = brain("Support").step("Open", async |_| Ok(7)).services::<Acme>();
    _ = brain("Support").step("Open", async |_| Ok(7)).state(8);
}
