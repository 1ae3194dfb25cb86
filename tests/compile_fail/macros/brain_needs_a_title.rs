//! A brain needs a title, and the error shows its position.

use positronic_core::brain;

fn main() {
    brain! { .loop("Chat", |cx| cx.system("You are a support agent.")) };
}
