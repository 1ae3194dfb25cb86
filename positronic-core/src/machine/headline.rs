//! The last event of a run in a few words, for lists.
//!
//! It names stages, tools and models, and never quotes messages, arguments or results.

use std::sync::Arc;

use super::state::RunState;
use crate::record::{Decision, Event, EventKind, Path, Segment};

/// Describes the last of some events that says what the run does; `state` is the run's state after them. Events about
/// workers and bookkeeping have no description.
pub(crate) fn headline(state: &RunState, events: &[Arc<Event>]) -> Option<String> {
    events.iter().rev().find_map(|event| described(state, event))
}

fn described(state: &RunState, event: &Event) -> Option<String> {
    use EventKind as E;
    let path = &event.path;
    let tool = || state.call(path).map_or("a call", |call| call.tool.as_str());
    let stage = || stage(path);
    let decided = |decision| match decision {
        Decision::Approved => "approved",
        Decision::Rejected => "rejected",
    };
    Some(match &event.kind {
        E::RunClaimed { .. }
        | E::RunReleased { .. }
        | E::RunNotClaimed { .. }
        | E::StepBlocked {}
        | E::ValueRecorded { .. }
        | E::ChildStart(_)
        | E::LoopIteration(_)
        | E::LoopOutput { .. }
        | E::LoopTrigger { .. }
        | E::LoopPluginChanged { .. } => return None,
        E::BrainStart(_) => "started".to_owned(),
        E::BrainMigrated { version, .. } => format!("migrated to version {version}"),
        E::BrainComplete { .. } => "completed".to_owned(),
        E::BrainError(_) => "failed".to_owned(),
        E::BrainCancelled { .. } => "cancelled".to_owned(),
        E::UndoStart { steps, .. } => format!("undoes {} stages", steps.len()),
        E::UndoFailed { .. } => format!("{} failed", stage()),
        E::BrainPaused { failure: Some(_), .. } => "parked after crashes".to_owned(),
        E::BrainPaused { .. } => "paused".to_owned(),
        E::BrainResumed { .. } => "resumed".to_owned(),
        E::StepStart { .. } | E::LoopStart { .. } => format!("{} started", stage()),
        E::StepComplete { .. } | E::LoopComplete { .. } => format!("{} completed", stage()),
        E::StepRetry { .. } => format!("{} failed and retries", stage()),
        E::LoopModelCall { model, .. } => ["asked ", model].concat(),
        E::LoopModelResult { .. } => "the model answered".to_owned(),
        E::LoopModelRetry { .. } => "the model failed and is asked again".to_owned(),
        E::LoopAnswerBroken { .. } => "an answer broke after it had used tokens".to_owned(),
        E::LoopAnswerRefused { .. } => "an answer was refused".to_owned(),
        E::LoopToolCall(call) => ["called ", &call.tool].concat(),
        E::LoopToolStart { .. } => [tool(), " started"].concat(),
        E::LoopToolRetry { .. } => format!("{} failed and retries", tool()),
        E::LoopToolResult { .. } => [tool(), " returned"].concat(),
        E::LoopBrainStart { title, .. } => format!("{title} started"),
        E::LoopBrainComplete { handed_back: true, .. } => format!("{} handed the dialogue back", tool()),
        E::LoopBrainComplete { .. } => format!("{} completed", tool()),
        E::LoopApprovalRequested { .. } => format!("{} needs an approval", tool()),
        E::LoopApprovalDecided { decision, .. } => format!("{} was {}", tool(), decided(*decision)),
        E::LoopApprovalWithdrawn { .. } => format!("the approval of {} was withdrawn", tool()),
        E::LoopApprovalExpired {} => format!("the approval of {} expired", tool()),
        E::LoopWait { .. } => format!("{} waits", tool()),
        E::LoopResume { .. } => format!("{} resumed", tool()),
        E::BranchChosen(arm) => format!("{} takes {}", stage(), arm.name),
        E::GroupStart { options, .. } => format!("{} runs {} brains", stage(), options.len()),
        E::RepeatRound { round, .. } => format!("{} ended round {}", stage(), u64::from(*round) + 1),
        E::GuardChecked { passed: true, .. } => format!("{} passed", stage()),
        E::GuardChecked { .. } => format!("{} did not pass", stage()),
        E::StageWait { .. } => format!("{} waits", stage()),
        E::StageResume { .. } => format!("{} resumed", stage()),
        E::LoopMessage { .. } => "a message arrived".to_owned(),
        E::LoopExit { tool, .. } => format!("{tool} ended {}", stage()),
        E::LoopMaxIterations { .. } | E::LoopLimit(_) => format!("{} reached a limit", stage()),
        E::LoopStopped { .. } => format!("{} stopped", stage()),
        E::BudgetRequested(_) => "more of a limit was requested".to_owned(),
        E::BudgetDecided { decision, .. } => format!("more of a limit was {}", decided(*decision)),
        E::BudgetExpired {} => "the request for more of a limit expired".to_owned(),
        E::LoopGuardReplaced { guard, .. } => format!("the guard {guard} replaced what it saw"),
        E::LoopPluginUpdate { plugin, .. } => format!("an update of the plugin {plugin} arrived"),
        E::LoopPluginFailed { plugin, update: Some(_), .. } => format!("the plugin {plugin} refused an update"),
        E::LoopPluginFailed { plugin, .. } => format!("the plugin {plugin} failed"),
        E::LoopCompacted { .. } => "the transcript was compacted".to_owned(),
    })
}

/// Returns the name of the innermost stage at a path.
fn stage(path: &Path) -> &str {
    let mut segments = path.segments().rev();
    segments
        .find_map(|segment| match segment {
            Segment::Stage(name) => Some(name),
            Segment::Iteration(_) | Segment::Call(..) | Segment::Question(..) => None,
        })
        .unwrap_or("the run")
}
