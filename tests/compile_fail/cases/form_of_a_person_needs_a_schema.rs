use positronic_core::dsl::form;
use positronic_core::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct SignOff {
    approved: bool,
}

fn main() {
    let _ = brain("Release")
        .state(0)
        .ask_person("Sign off", |_| form::<SignOff>("Is it ready?"), |releases, answer| releases + i32::from(answer.approved));
}
