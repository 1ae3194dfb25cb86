//! The decision on a call that no longer waits for one, from the log.

use super::refusal::Refusal;
use crate::record::{Decision, Event, EventKind, Path, ResumeCause};

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

/// Adds to the refusal of a reply what the call has waited for before, from the log.
pub(crate) fn with_earlier_answer<'a>(refusal: Refusal, log: impl IntoIterator<Item = &'a Event>) -> Refusal {
    let Refusal::NoSuchCall { call, open } = refusal else { return refusal };
    let ends = log.into_iter().filter(|event| event.path == call).filter_map(|event| match &event.kind {
        EventKind::LoopResume { cause, actor, .. } | EventKind::StageResume { cause, actor, .. } => Some(match cause {
            ResumeCause::Answered => format!("it was answered{}", actor.clause()),
            ResumeCause::Expired => "its wait has expired".to_owned(),
        }),
        _ => None,
    });
    let open = ends.last().map_or(open.clone(), |ended| format!("{ended}; {open}"));
    Refusal::NoSuchCall { call, open }
}
