//! The first of several answers, or of several brains, is a value of one type.

use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Payment {
    amount: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Refusal {
    reason: String,
}

fn main() {
    _ = brain("Shop").state("o-7".to_owned()).wait(
        "Payment",
        |w| {
            w.on(webhook::<Payment>("paid"), String::clone).or(w.on(webhook::<Refusal>("refused"), String::clone))
        },
        |order, payment| format!("{} for {order}", payment.amount),
    );
    let (post, mail) = (brain("Post").step("Send", async |_| Ok(1)), brain("Mail").step("Send", async |_| Ok(true)));
    _ = brain("Desk").race("First", |r| r.run("Post", post, |()| ()).or(r.run("Mail", mail, |()| ())), |(), day| day);
}
