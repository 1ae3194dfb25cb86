//! The fold: the effect of each event on the state.
//!
//! An event that is impossible in the state is refused with an [`IllegalEvent`]. The state is then unchanged, since
//! [`RunState::apply`] folds into a copy.

use std::sync::Arc;

use super::active_time::{active_before, count_active, note_time_limit};
use super::apply_usage::{add_iteration, add_usage, apply_budget, limit_failure};
use super::crash_limit::{count_crash, count_lost_call, count_progress, work_at};
use super::frame_lookup::owner_of;
use super::frames::{BrainEnd, BrainFrame, Stage};
use super::grants::Grants;
use super::stages::{Advance, Frame, OwnerState, Reason, postpone_in_fork};
use super::state::{KNOWN_SIGNALS, NotClaimed, RunState};
use super::undo;
use crate::record::{CallerTool, Claim, Event, EventKind, Failure, Path, Segment, UndoCause};

/// The reason why an event cannot be the next one of its run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("illegal event {seq} ({name} at `{path}`): {reason}")]
pub struct IllegalEvent {
    /// The event's number.
    pub seq: crate::record::Seq,
    /// Its name.
    pub name: &'static str,
    /// Its path.
    pub path: Path,
    /// The reason.
    pub reason: String,
}

impl RunState {
    /// Folds a whole log.
    ///
    /// # Errors
    ///
    /// [`IllegalEvent`] for the first event that cannot follow those before it.
    pub fn replay<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Self, IllegalEvent> {
        let mut state = Self::default();
        for event in events {
            state.fold(event)?;
        }
        Ok(state)
    }

    /// Folds one event into the state.
    ///
    /// # Errors
    ///
    /// [`IllegalEvent`] when the event cannot happen in this state, which is then unchanged.
    pub fn apply(&mut self, event: &Event) -> Result<(), IllegalEvent> {
        let mut after = self.clone();
        after.fold(event)?;
        *self = after;
        Ok(())
    }

    /// Folds one event into a state that becomes unusable if the event is refused: the event may be partially
    /// applied.
    pub(crate) fn fold(&mut self, event: &Event) -> Result<(), IllegalEvent> {
        let fits = if event.seq != self.next {
            Err(format!("the next event has number {}", self.next))
        } else if event.at < self.at {
            Err("its time is before that of the event before".to_owned())
        } else {
            self.apply_body(event)
        };
        fits.map_err(|reason| IllegalEvent {
            seq: event.seq,
            name: event.kind.name(),
            path: event.path.clone(),
            reason,
        })?;
        self.next = event.seq.next();
        self.at = event.at;
        Ok(())
    }

    fn apply_body(&mut self, event: &Event) -> Result<(), Reason> {
        let path = &event.path;
        if self.has_ended() && !matches!(event.kind, EventKind::RunClaimed { .. } | EventKind::RunReleased { .. }) {
            return Err("the run has ended".to_owned());
        }
        let claims = matches!(event.kind, EventKind::RunClaimed { .. });
        let was_claimed = self.claim.as_ref().is_some_and(|claim| !claim.released);
        postpone_in_fork(self, event);
        // A fork begins without the crashes of its origin.
        if self.start.forked_from.as_ref().is_some_and(|(_, at)| event.seq == at.next()) {
            self.crashed.clear();
        }
        // Before the event: a batch that it completes is gone afterwards.
        let crashed = (!self.crashed.is_empty()).then(|| work_at(self, path));
        count_lost_call(self, event);
        let active = (was_claimed && !claims).then(|| active_before(self, event));
        let applied = match &event.kind {
            EventKind::RunClaimed { owner, .. } => {
                let epoch = event.epoch.ok_or("it has no epoch")?;
                if self.claim.as_ref().is_some_and(|claim| claim.epoch >= epoch) {
                    return Err("its epoch is not newer than the last".to_owned());
                }
                self.refused = None;
                self.claim = Some(Claim { epoch, owner: owner.as_str().into(), released: false });
                // A detached call belongs to the run that started it, not to a fork.
                let shared = self.start.forked_from.as_ref().map(|(_, at)| *at);
                if was_claimed {
                    count_crash(self, event.at, shared);
                }
                if let Some(root) = &mut self.root {
                    Arc::make_mut(root).doubt(was_claimed, shared);
                }
                Ok(())
            }
            EventKind::RunReleased { .. } => {
                let claim = self.claim.as_mut().ok_or("no worker has claimed the run")?;
                claim.released = true;
                Ok(())
            }
            EventKind::RunNotClaimed { reason, message, .. } => {
                let (since, reason, message) = (event.seq, *reason, message.clone());
                self.refused = Some(Arc::new(NotClaimed { since, reason, message }));
                Ok(())
            }
            EventKind::BrainStart(start) => {
                self.accept(start.start.as_ref().and_then(|start| start.id.as_ref()), event);
                if let Some(start) = &start.start {
                    self.start = start.clone();
                    self.give_caller_tools(start.message.as_ref().and_then(|message| message.caller_tools.as_ref()));
                    self.currency = event.currency().map(Arc::from);
                }
                if !path.is_root() {
                    self.stage_event(event, None)?;
                } else if self.root.is_some() {
                    return Err("the run has begun".to_owned());
                } else {
                    self.root = Some(Arc::new(BrainFrame::begun(event, start)));
                }
                Ok(())
            }
            EventKind::BrainMigrated { version, fingerprint, stages, change } => {
                let brain =
                    self.brain_mut("", |_| ()).filter(|_| path.is_root()).ok_or("only the run's brain migrates")?;
                brain.index = migrated_stage(brain, stages)?;
                (brain.version, brain.fingerprint) = (*version, fingerprint.clone());
                brain.stages = Arc::new(stages.clone());
                brain.split().1.change(change.as_ref(), event)
            }
            EventKind::BrainComplete { result } => self.end_brain(path, |brain| {
                if brain.index < brain.stages.0.len() || brain.undoing.is_some() {
                    return Err("not all of its stages are done".to_owned());
                }
                Ok(BrainEnd::Completed(result.clone()))
            }),
            EventKind::BrainError(failure) => self.end_brain(path, |_| Ok(BrainEnd::Failed(failure.clone()))),
            EventKind::BrainCancelled { signal, .. } => {
                self.end_brain(path, |_| Ok(BrainEnd::Cancelled))?;
                self.accept(signal.as_ref(), event);
                Ok(())
            }
            EventKind::UndoStart { cause, steps } => {
                let brain = self.brain_mut(path.as_str(), |_| ()).ok_or("the brain is not open")?;
                undo::begin_undo(brain, cause, steps)?;
                if let UndoCause::Cancelled { signal, .. } = cause {
                    self.accept(signal.as_ref(), event);
                }
                Ok(())
            }
            EventKind::UndoFailed { .. } => {
                let owner = owner_of(path).ok_or("this is not the path of a stage")?;
                undo::undo_failed(self.brain_mut(owner, |_| ()).ok_or("the brain is not open")?, path)
            }
            EventKind::BrainPaused { signal, failure, .. } => {
                if self.paused.is_some() {
                    return Err("the run is paused".to_owned());
                }
                self.paused = Some(event.seq);
                self.parked = failure.clone().map(Arc::new);
                self.accept(Some(signal), event);
                Ok(())
            }
            EventKind::BrainResumed { signal, .. } => {
                self.paused.take().ok_or("the run is not paused")?;
                if self.parked.take().is_some() {
                    self.crashed.clear();
                }
                self.accept(Some(signal), event);
                Ok(())
            }
            EventKind::BudgetRequested(_) | EventKind::BudgetDecided { .. } | EventKind::BudgetExpired {} => {
                apply_budget(self, event)
            }
            EventKind::LoopIteration(_) => {
                self.stage_event(event, None)?;
                add_iteration(self, path);
                Ok(())
            }
            EventKind::LoopModelResult { .. }
            | EventKind::LoopAnswerRefused { .. }
            | EventKind::LoopAnswerBroken { .. } => {
                self.stage_event(event, None)?;
                if let Some(metadata) = event.kind.answer_metadata() {
                    add_usage(self, path, metadata);
                }
                Ok(())
            }
            EventKind::LoopApprovalDecided { signal, .. } | EventKind::LoopPluginUpdate { signal, .. } => {
                self.stage_event(event, None)?;
                self.accept(Some(signal), event);
                Ok(())
            }
            EventKind::LoopMessage { signal, caller_tools, .. } => {
                self.stage_event(event, None)?;
                self.accept(signal.as_ref(), event);
                self.give_caller_tools(caller_tools.as_ref());
                Ok(())
            }
            EventKind::LoopResume { signal, received, .. } | EventKind::StageResume { signal, received, .. } => {
                self.stage_event(event, None)?;
                self.accept(signal.as_ref(), event);
                if let Some(received) = received {
                    self.note_older_answer(path, *received, event.seq);
                }
                Ok(())
            }
            EventKind::ChildStart(child) => {
                if self.children.contains_key(&child.run) {
                    return Err("the child run was started before".to_owned());
                }
                self.stage_event(event, None)?;
                Arc::make_mut(&mut self.children).insert(child.run.clone(), child.link);
                Ok(())
            }
            EventKind::LoopComplete { outcome, .. } => {
                let failure = self.loop_at(path).and_then(|frame| limit_failure(self, frame, outcome));
                self.stage_event(event, failure)
            }
            EventKind::StepStart { .. }
            | EventKind::StepBlocked {}
            | EventKind::StepRetry { .. }
            | EventKind::StepComplete { .. }
            | EventKind::ValueRecorded { .. }
            | EventKind::LoopStart { .. }
            | EventKind::LoopModelCall { .. }
            | EventKind::LoopModelRetry { .. }
            | EventKind::LoopToolCall(_)
            | EventKind::LoopToolStart { .. }
            | EventKind::LoopToolRetry { .. }
            | EventKind::LoopToolResult { .. }
            | EventKind::LoopBrainStart { .. }
            | EventKind::LoopBrainComplete { .. }
            | EventKind::LoopOutput { .. }
            | EventKind::LoopTrigger { .. }
            | EventKind::LoopApprovalRequested { .. }
            | EventKind::LoopApprovalWithdrawn { .. }
            | EventKind::LoopApprovalExpired {}
            | EventKind::LoopWait { .. }
            | EventKind::BranchChosen(_)
            | EventKind::GroupStart { .. }
            | EventKind::RepeatRound { .. }
            | EventKind::GuardChecked { .. }
            | EventKind::StageWait { .. }
            | EventKind::LoopExit { .. }
            | EventKind::LoopMaxIterations { .. }
            | EventKind::LoopLimit(_)
            | EventKind::LoopStopped { .. }
            | EventKind::LoopGuardReplaced { .. }
            | EventKind::LoopPluginChanged { .. }
            | EventKind::LoopPluginFailed { .. }
            | EventKind::LoopCompacted { .. } => self.stage_event(event, None),
        };
        applied?;
        note_time_limit(self, event);
        // A signal is not the worker's, and a claim may migrate the run.
        let begun = event.epoch.is_some() && !matches!(event.kind, EventKind::BrainMigrated { .. });
        self.restoring = claims || (self.restoring && !begun);
        if let Some(work) = crashed {
            count_progress(self, event, &work);
        }
        count_active(self, event, active.as_deref());
        Ok(())
    }

    /// Replaces the caller's own tools, if a message gives others.
    fn give_caller_tools(&mut self, tools: Option<&Vec<CallerTool>>) {
        if let Some(tools) = tools {
            self.caller_tools = Arc::new(tools.clone());
        }
    }

    pub(super) fn accept(&mut self, signal: Option<&crate::record::SignalId>, event: &Event) {
        if let Some(signal) = signal {
            let signals = Arc::make_mut(&mut self.signals);
            signals.insert(signal.clone(), event.seq);
            if signals.len() > KNOWN_SIGNALS
                && let Some(oldest) = signals.values().min().copied()
            {
                signals.retain(|_, seq| *seq != oldest);
            }
        }
    }

    fn end_brain(
        &mut self,
        path: &Path,
        end: impl FnOnce(&BrainFrame) -> Result<BrainEnd, Reason>,
    ) -> Result<(), Reason> {
        let brain = self.brain_mut(path.as_str(), |_| ()).ok_or("the brain is not open")?;
        if brain.end.is_some() {
            return Err("the brain has ended".to_owned());
        }
        brain.end = Some(end(brain)?);
        let registered = undo::take_undo(brain);
        brain.stage = Stage::Ready;
        if brain.again.is_some() {
            // An open request for more ends with its try.
            brain.grants = Grants::default();
        }
        if !registered.is_empty()
            && let Some(owner) = owner_of(path).and_then(|owner| self.brain_mut(owner, |_| ()))
        {
            undo::hand_up(owner, registered);
        }
        if let Some(Segment::Call(_, index)) = path.last()
            && let Some(owner) = owner_of(path).and_then(|owner| self.brain_mut(owner, |_| ()))
            && let Some(group) = owner.stage.as_group_mut()
        {
            group.ended(index);
        }
        Ok(())
    }

    /// Folds an event of a stage, or of an iteration or a call in it. If it ends the stage, `failure` fails the brain.
    fn stage_event(&mut self, event: &Event, failure: Option<Failure>) -> Result<(), Reason> {
        let path = &event.path;
        let owner = owner_of(path).ok_or("this is not the path of a stage")?;
        let brain = self.brain_mut(owner, |_| ()).ok_or("the brain around it is not open")?;
        let stage = brain.current().filter(|stage| brain.end.is_none() && is_in_stage(path, owner, &stage.name));
        let kind = stage.ok_or("the brain is not at this stage")?.kind;
        let advance = if matches!(brain.stage, Stage::Ready) {
            kind.rules().apply(event, brain)?
        } else {
            let (frame, enclosing) = brain.split();
            frame.ok_or("the stage has failed")?.apply(event, enclosing)?
        };
        match advance {
            Advance::Stay => {}
            Advance::Begun(stage) => brain.stage = stage,
            Advance::Done(change) => {
                brain.split().1.change(change, event)?;
                if failure.is_none() {
                    undo::register_undo(brain, event);
                    match &mut brain.undoing {
                        Some(undoing) => undoing.index += 1,
                        None => brain.index += 1,
                    }
                }
                (brain.arm, brain.round) = (None, 0);
                brain.stage = failure.map_or(Stage::Ready, Stage::Failed);
            }
            Advance::Again(change) => {
                brain.split().1.change(change, event)?;
                (brain.stage, brain.round) = (Stage::Ready, brain.round.saturating_add(1));
            }
            Advance::Chosen(arm) => brain.arm = Some(arm.clone()),
            Advance::Stopped(reason) => (brain.index, brain.stopped) = (brain.stages.0.len(), Some(reason.clone())),
        }
        Ok(())
    }
}

impl BrainFrame {
    /// Returns the frame of the current stage, and what its events change around it.
    fn split(&mut self) -> (Option<&mut dyn Frame>, OwnerState<'_>) {
        let Self { stage, state, changed, plugins, handed_over, handed_back, .. } = self;
        (stage.frame_mut(), OwnerState { state, changed, plugins, handed_over, handed_back })
    }
}

/// Returns whether a path is that of a stage in the brain `owner`, or in that stage.
fn is_in_stage(path: &Path, owner: &str, stage: &str) -> bool {
    let below = path.as_str().get(owner.len()..).unwrap_or_default();
    // Every event is looked at, and splitting takes four times as long.
    let below = below.strip_prefix('/').unwrap_or(below).strip_prefix(stage);
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Finds the current stage of a brain in another list of stages.
pub(super) fn migrated_stage(brain: &BrainFrame, stages: &crate::record::Shape) -> Result<usize, Reason> {
    let Some(current) = brain.current() else { return Ok(stages.0.len()) };
    let place = stages.0.iter().position(|stage| stage.name == current.name && stage.kind == current.kind);
    place.ok_or_else(|| format!("it has no {} `{}`, where the run is", current.kind, current.name))
}
