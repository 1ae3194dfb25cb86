//! The closure of a loop returns its configuration.

use positronic_core::prelude::*;

fn main() {
    let _ = brain("Oracle").r#loop("Ask", |cx| {
        cx.system("Answer.").input("why?");
    });
}
