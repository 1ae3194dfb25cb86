//! The decision on a call that no longer waits for one, from the log.

use super::refusal::Refusal;
use crate::record::{Decision, Event, EventKind, Path};

/// Finds the decision on a call, or the last one on more for a loop or a brain, in the log: the state drops the calls
/// of a completed batch.
pub fn earlier_decision<'a>(log: impl IntoIterator<Item = &'a Event>, call: &Path) -> Option<Refusal> {
    let (mut found, mut currency) = (None, None);
    for event in log {
        currency = currency.or_else(|| event.currency());
        if event.path != *call {
            continue;
        }
        let (mut how, reason, actor) = match &event.kind {
            EventKind::LoopApprovalDecided { decision: Decision::Approved, reason, actor, .. } => {
                ("it was approved".to_owned(), reason, actor)
            }
            EventKind::LoopApprovalDecided { decision: Decision::Rejected, reason, actor, .. } => {
                ("it was rejected".to_owned(), reason, actor)
            }
            EventKind::BudgetDecided { decision: Decision::Approved, more, reason, actor, .. } => {
                (format!("it was granted {} more", more.amounts(currency)), reason, actor)
            }
            EventKind::BudgetDecided { decision: Decision::Rejected, reason, actor, .. } => {
                ("it was refused more".to_owned(), reason, actor)
            }
            _ => continue,
        };
        how.push_str(&actor.clause());
        if let Some(reason) = reason {
            how.push_str(": ");
            how.push_str(reason);
        }
        found = Some(Refusal::Decided { call: call.clone(), how });
    }
    found
}
