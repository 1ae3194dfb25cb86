//! A sub-brain has the services of its parent, or gets its own with `.provide`.

use positronic_core::prelude::*;

struct Acme;

struct Database;

fn main() {
    let billing = || brain("Billing").services::<Database>().step("Look", async |_| Ok(7));

    let _stage = brain("Support").services::<Acme>().brain("Billing", billing()).map_output(|_, answer| answer);

    let _tool = brain("Support")
        .services::<Acme>()
        .r#loop("Chat", |cx| cx.system("Help.").brain("billing", billing()));
}
