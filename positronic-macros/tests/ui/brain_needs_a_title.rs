//! A brain has a title, and the sentence says where it goes.

use positronic_macros::brain;

fn main() {
    brain! { .loop("Chat", |cx| cx.system("You are a support agent.")) };
}
