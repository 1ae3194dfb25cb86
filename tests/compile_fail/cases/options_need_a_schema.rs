//! Options derive `Serialize`, `Deserialize` and `JsonSchema`.

use positronic_core::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Question {
    text: String,
}

fn main() {
    let _ = brain("Oracle").options::<Question>();
}
