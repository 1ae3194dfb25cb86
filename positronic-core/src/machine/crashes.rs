//! Crash counting: how often a worker process ended while something ran, and when the run fails because of it.
//!
//! A claim that follows an unreleased one is a crash. Each call counts the crashes that interrupted it, and the tool's retries
//! limit them. Steps, model calls, configurations and mappings are limited by the run's own count: consecutive crashes without
//! any outcome between them. That limit is higher, because a crash of a process affects all of its runs; the culprit should
//! reach its limit first.

use std::sync::Arc;

use crate::record::{EndReason, Event, EventKind, Failure};

use super::call::CallPhase;
use super::close::end_brain;
use super::effect::{Effect, Next};
use super::loop_frame::LoopPhase;
use super::state::{BrainFrame, Intent, RunState, Stage};

/// The maximum number of consecutive crashes without progress.
pub const MAX_CRASHES: u32 = 10;

impl RunState {
    /// Counts a claim over an unreleased one; any outcome of the worker resets the count.
    pub(super) fn count_crashes(&mut self, event: &Event, was_claimed: bool) {
        match &event.kind {
            EventKind::RunClaimed { .. } if was_claimed => self.crashes = self.crashes.saturating_add(1),
            EventKind::RunClaimed { .. }
            | EventKind::RunNotClaimed { .. }
            | EventKind::BrainMigrated { .. }
            | EventKind::StepStart { .. }
            | EventKind::LoopToolStart { .. }
            | EventKind::LoopModelCall { .. }
            // A step's rerun repeats its question from the first attempt, so a retry is not progress.
            | EventKind::LoopModelRetry { .. }
            | EventKind::LoopOutput { .. } => {}
            _ if event.epoch.is_none() => {}
            _ => self.crashes = 0,
        }
    }
}

/// Fails a run that has crashed too often, instead of its next effect.
pub(super) fn give_up(state: &RunState, root: &BrainFrame, next: &Next) -> Option<Effect> {
    let last = next.effects.iter().find(|effect| effect.path().is_some()).filter(|_| state.crashes >= MAX_CRASHES)?;
    let message = format!(
        "the process ended {} times in a row at the same place, so it is not tried again: {}",
        state.crashes,
        describe(last)
    );
    let failure = Failure { code: EndReason::Crash, message, retryable: false };
    Some(Effect::Append(end_brain(root, &failure)))
}

fn describe(effect: &Effect) -> String {
    match effect {
        Effect::Append(_) => "the worker".to_owned(),
        Effect::Step { path, .. } => format!("the step `{path}`"),
        Effect::Prepare { path, iteration } => {
            format!("the configuration of the loop `{path}` for iteration {iteration}")
        }
        Effect::Ask { path, .. } => format!("the model call `{path}`"),
        Effect::Execute { path, .. } => format!("the tool call `{path}`"),
        Effect::Resume { path } => format!("the `resume` closure of the call `{path}`"),
        Effect::StartBrain { path } => format!("the start of the brain `{path}`"),
        Effect::FinishBrain { path } => format!("applying the result of the brain `{path}`"),
        Effect::CompleteBrain { path } if path.is_root() => "the result of the run's brain".to_owned(),
        Effect::CompleteBrain { path } => format!("the result of the brain `{path}`"),
        Effect::CloseLoop { path, .. } => format!("the end of the loop `{path}`"),
    }
}

/// Marks work in flight as doubtful: its worker ended, by a crash or regularly.
pub(super) fn doubt(brain: &mut BrainFrame, crashed: bool) {
    let doubt_intent = |intent: &mut Intent| {
        let was_running = *intent == Intent::Running;
        if was_running {
            *intent = Intent::Doubtful;
        }
        was_running
    };
    match &mut brain.stage {
        Stage::Step(step) => {
            doubt_intent(&mut step.intent);
        }
        Stage::Brain(inner) => doubt(Arc::make_mut(inner), crashed),
        Stage::Loop(frame) => {
            let frame = Arc::make_mut(frame);
            if let LoopPhase::Ask { intent, .. } = &mut frame.phase {
                doubt_intent(intent);
            }
            for call in &mut frame.batch {
                // A detached call outlives the worker: the next one gets its outcome.
                let is_own = matches!(call.phase, CallPhase::Open(Intent::Running)) && !call.detached;
                if !is_own && !matches!(call.phase, CallPhase::Brain(_)) {
                    continue;
                }
                let call = Arc::make_mut(call);
                match &mut call.phase {
                    CallPhase::Open(intent) => {
                        let interrupted = doubt_intent(intent) && crashed;
                        call.crashes = call.crashes.saturating_add(u32::from(interrupted));
                    }
                    CallPhase::Brain(inner) => doubt(Arc::make_mut(inner), crashed),
                    CallPhase::Gated
                    | CallPhase::Pending { .. }
                    | CallPhase::Waiting { .. }
                    | CallPhase::Resumed { .. }
                    | CallPhase::Done(_) => {}
                }
            }
        }
        Stage::Ready | Stage::Failed(_) => {}
    }
}
