//! A tool sees the services of its brain and no others.

use positronic_core::prelude::*;

struct Mailer;

impl Mailer {
    fn send(&self) {}
}

struct Acme;

fn main() {
    _ = brain("Clerk").services::<Acme>().r#loop("Sort", |cx| {
        cx.system("Sort the post.").tool("send", |t| {
            t.description("Sends a letter").execute(async |_: NoArgs, cx| {
                cx.services.mailer.send();
                Ok("sent")
            })
        })
    });
    _ = Mailer;
}
