//! The delivery of a webhook that starts a run.

use serde::{Deserialize, Serialize};

use crate::record::ids::{RunId, SignalId};
use crate::record::name::{MAX_NAME_CHARS, check_name};
use crate::record::sha256;

/// The delivery of a webhook that starts a run. Its id identifies it: each delivery starts at most one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookDelivery {
    /// The id of the delivery, under which the mailbox stored it.
    pub id: SignalId,
    /// The webhook's name.
    pub webhook: String,
    /// The identifier with which it was delivered; empty if it had none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub identifier: String,
}

impl WebhookDelivery {
    /// Returns the id of the run that a delivery starts: the delivery's own, or its hash if the sender's id cannot be the id of a
    /// run.
    #[must_use]
    pub fn run(id: &SignalId) -> RunId {
        let id = id.as_str();
        let is_plain = id.chars().all(|char| char.is_ascii_alphanumeric() || "-_.:".contains(char));
        if is_plain && check_name(id, MAX_NAME_CHARS).is_ok() {
            return RunId::new(id);
        }
        RunId::from(format!("webhook-{}", sha256(id.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_id_is_that_of_the_delivery_unless_it_cannot_be_one() {
        let run = |id: &str| WebhookDelivery::run(&SignalId::new(id)).to_string();
        assert_eq!(run("orders:msg_1"), "orders:msg_1");
        for id in ["orders:../x", "orders:a b", "orders:\u{202e}", &format!("orders:{}", "x".repeat(200))] {
            let run = run(id);
            assert!(run.starts_with("webhook-") && run.len() == 72, "{id} {run}");
        }
        assert_ne!(run("orders:a b"), run("orders:a c"));
    }
}
