//! A webhook's payload is checked against the schema of its type.

use positronic_core::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Message {
    text: String,
}

fn main() {
    let slack = webhook::<Message>("slack");
}
