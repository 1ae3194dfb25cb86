//! No stage follows the public view, the result, or the services of a brain.

use positronic_core::prelude::*;

struct Acme;

fn main() {
    let opened = || brain("Support").services::<Acme>().step("Open", async |_| Ok(7));

    _ = opened().public(|state| *state).step("Close", async |cx| Ok(cx.state));
    _ = opened().result(|state| *state).step("Close", async |cx| Ok(cx.state));
    _ = opened().bind(Acme).step("Close", async |cx| Ok(cx.state));
}
