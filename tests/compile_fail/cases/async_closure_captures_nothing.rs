//! A closure that captures is written `move |…| { let x = x.clone(); async move { … } }`.

use positronic_core::prelude::*;

fn main() {
    let greeting = "hello".to_owned();
    let other = greeting.clone();

    let _step = brain("Greeter").step("Greet", async move |_| Ok(greeting.clone()));

    let _tool = brain("Greeter").r#loop("Chat", move |cx| {
        let other = other.clone();
        cx.system("Greet.").tool("greet", |t| t.execute(async move |_: NoArgs, _| Ok(other.clone())))
    });
}
