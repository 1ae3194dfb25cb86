//! The fold: the effect of each event on the state.
//!
//! An event that is impossible in the state is refused with an [`IllegalEvent`]. The state is then unchanged, since
//! [`RunState::apply`] folds into a copy.

use std::sync::Arc;

use crate::record::{Change, Claim, Event, EventKind, LoopOutcome, Path, Segment, StageKind};

use super::conversation_budget::{budget_of, shared_of};
use super::crashes::doubt;
use super::frames::{BrainEnd, BrainFrame, CallPhase, Intent, Stage};
use super::grants::{Grants, Spending};
use super::stages::r#loop::fold;
use super::state::{KNOWN_SIGNALS, NotClaimed, RunState};
use super::tree::owner_of;

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

/// The reason, without the event.
pub(super) type Reason = String;

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
        // A fork begins without the crashes of its origin.
        if self.start.forked_from.as_ref().is_some_and(|(_, at)| event.seq == at.next()) {
            self.crashed.clear();
        }
        // Before the event: a batch that it completes is gone afterwards.
        let crashed = (!self.crashed.is_empty()).then(|| self.work_at(path));
        self.count_lost_call(event);
        let active = (was_claimed && !claims).then(|| self.active_before(event));
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
                    self.count_crash(event.at, shared);
                }
                if let Some(root) = &mut self.root {
                    doubt(Arc::make_mut(root), was_claimed, shared);
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
                let frame = BrainFrame {
                    path: path.clone(),
                    title: start.title.as_str().into(),
                    version: start.version,
                    fingerprint: start.fingerprint.clone(),
                    stages: Arc::new(start.stages.clone()),
                    options: Arc::new(start.options.clone()),
                    state: Arc::new(start.state.clone()),
                    changed: event.seq,
                    plugins: start.plugins.clone(),
                    index: 0,
                    stage: Stage::Ready,
                    usage: crate::record::Usage::default(),
                    budget: budget_of(start),
                    shared: shared_of(start),
                    grants: Grants::default(),
                    spent: Spending::default(),
                    iterations: 0,
                    active: 0,
                    began: event.at,
                    end: None,
                };
                self.accept(start.start.as_ref().and_then(|start| start.id.as_ref()), event);
                if let Some(start) = &start.start {
                    self.start = start.clone();
                    self.currency = event.currency().map(Arc::from);
                }
                self.begin_brain(path, frame)
            }
            EventKind::BrainMigrated { version, fingerprint, stages, change } => {
                let brain =
                    self.brain_mut("", |_| ()).filter(|_| path.is_root()).ok_or("only the run's brain migrates")?;
                brain.index = migrated_stage(brain, stages)?;
                (brain.version, brain.fingerprint) = (*version, fingerprint.clone());
                brain.stages = Arc::new(stages.clone());
                change_state(brain, change.as_ref(), event)
            }
            EventKind::BrainComplete { result } => self.end_brain(path, |brain| {
                if brain.index < brain.stages.0.len() {
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
            EventKind::StepStart { attempt } => self.start_step(path, *attempt),
            EventKind::StepBlocked {} => self.block_step(path),
            EventKind::StepRetry { attempt, due, .. } => self.retry_step(path, *attempt, *due),
            EventKind::StepComplete { change, .. } => self.complete_stage(path, change.as_ref(), event),
            EventKind::ValueRecorded { name, value } => match path.last() {
                Some(Segment::Call(..)) => fold::apply(self, event),
                _ => self.record_step_value(path, name, value),
            },
            EventKind::LoopModelCall { question: Some(question), .. } if self.is_question(path) => {
                self.ask(path, question)
            }
            EventKind::LoopModelResult { parts, metadata, .. } if self.is_question(path) => {
                self.answer(path, parts, metadata)?;
                self.add_usage(path, metadata);
                Ok(())
            }
            EventKind::LoopModelRetry { .. } if self.is_question(path) => Ok(()),
            EventKind::LoopAnswerRefused { metadata, .. } => {
                fold::apply(self, event)?;
                self.add_usage(path, metadata);
                Ok(())
            }
            EventKind::LoopAnswerBroken { metadata } => {
                if !self.is_question(path) {
                    fold::apply(self, event)?;
                }
                self.add_usage(path, metadata);
                Ok(())
            }
            EventKind::LoopModelResult { metadata, .. } => {
                fold::apply(self, event)?;
                self.add_usage(path, metadata);
                Ok(())
            }
            EventKind::LoopIteration(_) => {
                fold::apply(self, event)?;
                self.add_iteration(path);
                Ok(())
            }
            EventKind::BudgetRequested(_) | EventKind::BudgetDecided { .. } | EventKind::BudgetExpired {} => {
                self.apply_budget(event)
            }
            EventKind::LoopComplete { change, outcome, .. } => {
                self.complete_loop(path, outcome, change.as_ref(), event)
            }
            EventKind::LoopStart { .. }
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
            | EventKind::LoopApprovalDecided { .. }
            | EventKind::LoopApprovalWithdrawn { .. }
            | EventKind::LoopApprovalExpired {}
            | EventKind::LoopWait { .. }
            | EventKind::LoopResume { .. }
            | EventKind::LoopMessage { .. }
            | EventKind::LoopExit { .. }
            | EventKind::LoopMaxIterations { .. }
            | EventKind::LoopLimit(_)
            | EventKind::LoopStopped { .. }
            | EventKind::LoopPluginChanged { .. }
            | EventKind::LoopPluginFailed { .. }
            | EventKind::LoopCompacted { .. } => fold::apply(self, event),
        };
        applied?;
        // A signal is not the worker's, and a claim may migrate the run.
        let begun = event.epoch.is_some() && !matches!(event.kind, EventKind::BrainMigrated { .. });
        self.restoring = claims || (self.restoring && !begun);
        if let Some(work) = crashed {
            self.count_progress(event, &work);
        }
        self.count_active(event, active.as_deref());
        Ok(())
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

    fn begin_brain(&mut self, path: &Path, frame: BrainFrame) -> Result<(), Reason> {
        let Some(last) = path.last() else {
            if self.root.is_some() {
                return Err("the run has begun".to_owned());
            }
            self.root = Some(Arc::new(frame));
            return Ok(());
        };
        let owner = owner_of(path).unwrap_or_default();
        let brain = self.brain_mut(owner, |_| ()).ok_or("the brain around it is not open")?;
        let is_here = matches!(last, Segment::Stage(name) if brain.is_at(name, StageKind::Brain));
        match (last, &mut brain.stage) {
            (Segment::Stage(_), Stage::Ready) if is_here => {
                brain.stage = Stage::Brain(Arc::new(frame));
                Ok(())
            }
            (Segment::Call(iteration, index), Stage::Loop(around)) => {
                let call = Arc::make_mut(around).call_mut(iteration, index).ok_or("there is no such call")?;
                if !matches!(call.phase, CallPhase::Open(Intent::Running)) || !call.flags.brain {
                    return Err("the call does not start a brain now".to_owned());
                }
                call.phase = CallPhase::Brain(Arc::new(frame));
                Ok(())
            }
            _ => Err("no brain starts here".to_owned()),
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
        brain.stage = Stage::Ready;
        Ok(())
    }

    fn complete_stage(&mut self, path: &Path, change: Option<&Change>, event: &Event) -> Result<(), Reason> {
        let Some(Segment::Stage(name)) = path.last() else { return Err("this is not the path of a stage".to_owned()) };
        let owner = owner_of(path).unwrap_or_default();
        let brain = self.brain_mut(owner, |_| ()).ok_or("the brain around it is not open")?;
        let done = match &brain.stage {
            Stage::Step(step) => matches!(step.intent, Intent::Running | Intent::Doubtful),
            Stage::Brain(inner) => matches!(inner.end, Some(BrainEnd::Completed(_))),
            Stage::Ready | Stage::Loop(_) | Stage::Failed(_) => false,
        };
        if !done || brain.current().is_none_or(|stage| stage.name != name) {
            return Err("the stage is not running".to_owned());
        }
        change_state(brain, change, event)?;
        brain.index += 1;
        brain.stage = Stage::Ready;
        Ok(())
    }

    fn complete_loop(
        &mut self,
        path: &Path,
        outcome: &LoopOutcome,
        change: Option<&Change>,
        event: &Event,
    ) -> Result<(), Reason> {
        let owner = owner_of(path).ok_or("this is not the path of a loop")?;
        let brain = self.owner(path).ok_or("the brain around it is not open")?;
        let Stage::Loop(frame) = &brain.stage else { return Err("the loop is not open".to_owned()) };
        if frame.path != *path {
            return Err("another loop is open".to_owned());
        }
        if let Some(open) = frame.batch.iter().find(|call| call.result().is_none()) {
            return Err(format!("the call `{}` has no result", open.path));
        }
        let failure = self.limit_failure(frame, outcome);
        let brain = self.brain_mut(owner, |_| ()).ok_or("the brain around it is not open")?;
        change_state(brain, change, event)?;
        match failure {
            Some(failure) => brain.stage = Stage::Failed(failure),
            None => {
                brain.index += 1;
                brain.stage = Stage::Ready;
            }
        }
        Ok(())
    }
}

/// Finds the current stage of a brain in another list of stages.
pub(super) fn migrated_stage(brain: &BrainFrame, stages: &crate::record::Shape) -> Result<usize, Reason> {
    let Some(current) = brain.current() else { return Ok(stages.0.len()) };
    let place = stages.0.iter().position(|stage| stage.name == current.name && stage.kind == current.kind);
    place.ok_or_else(|| format!("it has no {} `{}`, where the run is", current.kind, current.name))
}

/// Applies a recorded change to a brain's state.
pub(super) fn change_state(brain: &mut BrainFrame, change: Option<&Change>, event: &Event) -> Result<(), Reason> {
    if let Some(change) = change {
        change.apply(Arc::make_mut(&mut brain.state)).map_err(|error| error.to_string())?;
        brain.changed = event.seq;
    }
    Ok(())
}
