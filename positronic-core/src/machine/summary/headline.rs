//! The last event of a run in a few words, for lists.
//!
//! It names stages, tools and models, and never quotes messages, arguments or results.

use std::io::{self, Write as _};
use std::sync::Arc;

use crate::machine::state::RunState;
use crate::record::encoding::scratch::with_scratch;
use crate::record::{Decision, Event, EventKind, Path, Segment};

/// Describes the last of some events that says what the run does; `state` is the run's state after them. Events about
/// workers and bookkeeping have no description.
pub(crate) fn headline(state: &RunState, events: &[Arc<Event>]) -> Option<Arc<str>> {
    with_scratch(|text| {
        let is_described = events.iter().rev().any(|event| write_description(text, state, event).is_some());
        is_described.then(|| String::from_utf8_lossy(text).into())
    })
}

fn write_description(out: &mut Vec<u8>, state: &RunState, event: &Event) -> Option<io::Result<()>> {
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
        E::BrainStart(_) => write!(out, "started"),
        E::BrainMigrated { version, .. } => write!(out, "migrated to version {version}"),
        E::BrainComplete { .. } => write!(out, "completed"),
        E::BrainError(_) => write!(out, "failed"),
        E::BrainCancelled { .. } => write!(out, "cancelled"),
        E::UndoStart { steps, .. } => write!(out, "undoes {} stages", steps.len()),
        E::UndoFailed { .. } => write!(out, "{} failed", stage()),
        E::BrainPaused { failure: Some(_), .. } => write!(out, "parked after crashes"),
        E::BrainPaused { .. } => write!(out, "paused"),
        E::BrainResumed { .. } => write!(out, "resumed"),
        E::StepStart { .. } | E::LoopStart { .. } => write!(out, "{} started", stage()),
        E::StepComplete { .. } | E::LoopComplete { .. } => write!(out, "{} completed", stage()),
        E::StepRetry { .. } => write!(out, "{} failed and retries", stage()),
        E::LoopModelCall { model, .. } => write!(out, "asked {model}"),
        E::LoopModelResult { .. } => write!(out, "the model answered"),
        E::LoopModelRetry { .. } => write!(out, "the model failed and is asked again"),
        E::LoopAnswerBroken { .. } => write!(out, "an answer broke after it had used tokens"),
        E::LoopAnswerRefused { .. } => write!(out, "an answer was refused"),
        E::LoopToolCall(call) => write!(out, "called {}", call.tool),
        E::LoopToolStart { .. } => write!(out, "{} started", tool()),
        E::LoopToolRetry { .. } => write!(out, "{} failed and retries", tool()),
        E::LoopToolResult { .. } => write!(out, "{} returned", tool()),
        E::LoopBrainStart { title, .. } => write!(out, "{title} started"),
        E::LoopBrainComplete { handed_back: true, .. } => write!(out, "{} handed the dialogue back", tool()),
        E::LoopBrainComplete { .. } => write!(out, "{} completed", tool()),
        E::LoopApprovalRequested { .. } => write!(out, "{} needs an approval", tool()),
        E::LoopApprovalDecided { decision, .. } => write!(out, "{} was {}", tool(), decided(*decision)),
        E::LoopApprovalWithdrawn { .. } => write!(out, "the approval of {} was withdrawn", tool()),
        E::LoopApprovalExpired {} => write!(out, "the approval of {} expired", tool()),
        E::LoopWait { .. } => write!(out, "{} waits", tool()),
        E::LoopResume { .. } => write!(out, "{} resumed", tool()),
        E::BranchChosen(arm) => write!(out, "{} takes {}", stage(), arm.name),
        E::GroupStart { options, .. } => write!(out, "{} runs {} brains", stage(), options.len()),
        E::RepeatRound { round, .. } => write!(out, "{} ended round {}", stage(), u64::from(*round) + 1),
        E::GuardChecked { passed: true, .. } => write!(out, "{} passed", stage()),
        E::GuardChecked { .. } => write!(out, "{} did not pass", stage()),
        E::StageWait { .. } => write!(out, "{} waits", stage()),
        E::StageResume { .. } => write!(out, "{} resumed", stage()),
        E::LoopMessage { .. } => write!(out, "a message arrived"),
        E::LoopExit { tool, .. } => write!(out, "{tool} ended {}", stage()),
        E::LoopMaxIterations { .. } | E::LoopLimit(_) => write!(out, "{} reached a limit", stage()),
        E::LoopStopped { .. } => write!(out, "{} stopped", stage()),
        E::BudgetRequested(_) => write!(out, "more of a limit was requested"),
        E::BudgetDecided { decision, .. } => write!(out, "more of a limit was {}", decided(*decision)),
        E::BudgetExpired {} => write!(out, "the request for more of a limit expired"),
        E::LoopGuardReplaced { guard, input: Some(_), .. } => write!(out, "the guard {guard} replaced a message"),
        E::LoopGuardReplaced { guard, .. } => match state.call(path) {
            Some(call) => write!(out, "the guard {guard} changed a call of {}", call.tool),
            None => write!(out, "the guard {guard} replaced an answer"),
        },
        E::LoopPluginUpdate { plugin, .. } => write!(out, "an update of the plugin {plugin} arrived"),
        E::LoopPluginFailed { plugin, update: Some(_), .. } => write!(out, "the plugin {plugin} refused an update"),
        E::LoopPluginFailed { plugin, .. } => write!(out, "the plugin {plugin} failed"),
        E::LoopCompacted { .. } => write!(out, "the transcript was compacted"),
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
