//! A map takes the result type of its brain.

use positronic_core::prelude::*;

fn main() {
    let oracle = || brain("Oracle").step("Answer", async |_| Ok("no".to_owned()));

    let _ = brain("Seeker").state(String::new()).r#loop("Ask", |cx| {
        cx.system("Seek.").tool("ask", |t| t.brain(oracle()).map_output(|state, answer: u32| *state = answer.to_string()))
    });
}
