//! A stage that runs a brain with options computes them with `map_input`.

use positronic_core::prelude::*;

fn main() {
    let oracle = brain("Oracle").options::<String>().step("Answer", async |cx| Ok(cx.options.len()));

    _ = brain("Seeker").brain("Ask", oracle).map_output(|(), length| length);
}
