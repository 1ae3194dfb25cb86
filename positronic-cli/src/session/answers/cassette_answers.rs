//! Answers of a played cassette to pending items, and the lines to add where it has none.

use positronic_core::model::cassette::{AwaitedSignal as Asked, Cassette};
use positronic_core::record::{BudgetRequest, Pending, PendingKind, SignalKind, WaitSpec};
use serde_json::{Value, json};

use crate::app::REPLY;
use crate::cli::limits;

/// Returns the cassette's next answer to a pending item.
pub(crate) fn from_cassette(cassette: &Cassette, pending: &[Pending]) -> Option<SignalKind> {
    let asked: Vec<Asked<'_>> = pending.iter().flat_map(asked).collect();
    cassette.next_signal(&asked)
}

fn asked(pending: &Pending) -> Vec<Asked<'_>> {
    match &pending.kind {
        PendingKind::Approval { .. } | PendingKind::Budget(_) => vec![Asked::Approval(&pending.call)],
        PendingKind::Answer { waits } => waits
            .iter()
            .map(|wait| match wait.webhook.as_str() {
                REPLY => Asked::Reply(&pending.call),
                name => Asked::Webhook { name, identifier: &wait.identifier },
            })
            .collect(),
    }
}

/// Returns the signal that delivers a payload to a wait.
pub(super) fn delivery(pending: &Pending, wait: &WaitSpec, payload: Value) -> SignalKind {
    if wait.webhook == REPLY {
        SignalKind::Reply { call: pending.call.clone(), payload }
    } else {
        SignalKind::Webhook { name: wait.webhook.clone(), identifier: wait.identifier.clone(), payload }
    }
}

/// Renders example lines of a cassette that answer the pending items.
pub(crate) fn example_lines(pending: &[Pending]) -> Vec<String> {
    let line = |pending: &Pending| {
        let signal = match &pending.kind {
            PendingKind::Approval { .. } => SignalKind::Approve { call: pending.call.clone(), arguments: None },
            PendingKind::Budget(BudgetRequest { kind, limit, used, .. }) => {
                let more = limits::read(*kind, &limits::suggested(*kind, *limit, *used)).ok()?;
                SignalKind::Grant { to: pending.call.clone(), more }
            }
            PendingKind::Answer { waits } => {
                let wait = waits.first()?;
                delivery(pending, wait, crate::cli::options::sample(&wait.schema))
            }
        };
        Some(json!({"after": pending.call, "signal": signal}).to_string())
    };
    pending.iter().filter_map(line).collect()
}
