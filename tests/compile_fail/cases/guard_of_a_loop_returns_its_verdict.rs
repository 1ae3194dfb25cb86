use positronic_core::prelude::*;

fn main() {
    let _bool = brain("Desk").r#loop("Chat", |cx| {
        cx.system("Help.").guard_answer("No keys", async |_, answer| !answer.text().contains("sk-"))
    });
    let _borrowed = brain("Desk").r#loop("Chat", |cx| {
        cx.system("Help.").guard_answer("No keys", async |_, answer| match answer.text().contains("sk-") {
            true => Err("it names an API key"),
            false => Ok(()),
        })
    });
}
