//! The second argument of `map_output` is the result of the nested brain.

use positronic_core::prelude::*;

fn main() {
    let oracle = || brain("Oracle").step("Answer", async |_| Ok("no".to_owned()));

    let _ = brain("Seeker").state(0).r#loop("Ask", |cx| {
        cx.system("Seek.").tool("ask", |t| t.brain(oracle()).map_output(|state: &mut u32, answer: u32| *state = answer))
    });
    let _ = brain("Seeker").state(0).r#loop("Ask", |cx| {
        cx.system("Seek.").tool("ask", |t| t.brain(oracle()).map_output(|state, answer| *state = answer))
    });
}
