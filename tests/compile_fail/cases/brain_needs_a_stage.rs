//! A brain has at least one stage before it runs, nests, or is built.

use positronic_core::prelude::*;

async fn start(runner: Runner) {
    _ = runner.start(brain("Support"), ()).await;
}

fn main() {
    _ = start;
    _ = brain("Support").brain("Nested", brain("Inner")).map_output(|(), ()| ());
    _ = brain("Support").build();
}
