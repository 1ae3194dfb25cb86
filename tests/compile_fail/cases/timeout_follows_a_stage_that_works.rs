//! A wait has its time in the wait itself, and a guard ends at once.

use std::time::Duration;

use positronic_core::prelude::*;
use serde_json::Value;

fn main() {
    _ = brain("Shop")
        .wait("Payment", |w| w.on(webhook::<Value>("bank"), |()| "7".to_owned()), |(), _| ())
        .timeout(Duration::from_secs(1));
    _ = brain("Checked").guard("Passes", |()| true).timeout(Duration::from_secs(1));
}
