//! A state derives `Serialize` and `Deserialize`.

use positronic_core::prelude::*;

struct Count {
    value: u32,
}

fn main() {
    let _step = brain("Counter").step("Begin", async |_| Ok(Count { value: 0 }));

    let _initial = brain("Counter").state(Count { value: 0 });
}
