//! Forks: a new run that shares another run's past and may differ from there on.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use crate::machine::RunState;
use crate::record::{Actor, Event, EventKind, NewEvent, Overrides, Path, RunId, Seq, Speaker, ToolResult};
use crate::runner::worker::append::{Extras, Stamp, append, append_of, follow, stamp};
use crate::runner::worker::restore::migration;
use crate::runner::{Client, ResumeError, RunHandle, Runner};
use crate::store::StoreError;

/// The differences of a fork from its origin.
#[derive(Debug, Clone, Default, typed_builder::TypedBuilder)]
#[builder(field_defaults(default))]
#[non_exhaustive]
pub struct Fork {
    /// The new options; completed stages have read the original ones.
    #[builder(setter(strip_option))]
    pub options: Option<Value>,
    /// The system prompt and the model's name, from the next iteration of each loop on.
    pub overrides: Overrides,
    /// Results for calls that are open at the fork.
    pub results: IndexMap<Path, ToolResult>,
    /// The person who forks, and the channel.
    pub actor: Actor,
    /// The id of the new run; a new one by default.
    #[builder(setter(strip_option))]
    pub run: Option<RunId>,
}

/// The reason why a run is not forked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForkError {
    /// The run has no such event.
    #[error("the run has no event {at}; its last is {last}")]
    NoSuchEvent {
        /// The event that was asked for.
        at: Seq,
        /// The last event.
        last: Seq,
    },
    /// A call with a given result is not open at the fork.
    #[error("the call `{call}` is not open after event {at}; {hint}")]
    NotOpen {
        /// The call.
        call: Path,
        /// The event of the fork.
        at: Seq,
        /// Where it is open.
        hint: String,
    },
    /// The options do not fit the brain.
    #[error("the options do not fit: {0}")]
    Options(String),
    /// The fork exists and cannot be resumed.
    #[error("the fork `{run}` exists but cannot be resumed: {reason}")]
    Resume {
        /// The fork.
        run: RunId,
        /// Why.
        reason: ResumeError,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Client {
    /// Creates a new run whose log begins with the events of another run up to and including `at`; the original
    /// is unchanged. No worker claims the fork until [`Runner::fork`] or [`Runner::resume`]. If event `at` cannot
    /// stand without those after it, as an answer without its calls, the fork is made after the last of them;
    /// what only begins in the same append is left out. Effects that the fork reruns happen again: its tools are
    /// real and get another [`idempotency_key`](crate::dsl::ToolContext::idempotency_key).
    ///
    /// A fork that waits for a webhook since before the fork does not take stored ones from the mailbox, which
    /// belong to other runs. It gets a later one that no other run waits for, or the result in [`Fork::results`].
    /// For waits that it begins itself it reads the mailbox as any run.
    ///
    /// # Errors
    ///
    /// [`ForkError`]; no run was created then.
    pub async fn fork(&self, run: &RunId, at: Seq, fork: Fork) -> Result<RunId, ForkError> {
        let log = self.events(run, Seq(0)).await?;
        self.fork_log(run, &log, whole(&log, at)?, fork).await
    }

    /// Forks a run after exactly this event, with which the run can stand.
    pub(super) async fn fork_exactly(&self, run: &RunId, at: Seq, fork: Fork) -> Result<RunId, ForkError> {
        let log = self.events(run, Seq(0)).await?;
        self.fork_log(run, &log, at, fork).await
    }

    async fn fork_log(&self, run: &RunId, log: &[Arc<Event>], at: Seq, fork: Fork) -> Result<RunId, ForkError> {
        let Fork { options, overrides, results, actor, run: id } = fork;
        let mut past: Vec<_> = log.iter().take(at.next().index()).map(|event| Event::clone(event)).collect();
        if let Some(EventKind::BrainStart(start)) = past.first_mut().map(|event| &mut event.kind) {
            let origin = start.start.get_or_insert_default();
            // It shares the history and is not part of the conversation.
            (origin.id, origin.conversation, origin.forked_from) = (None, None, Some((run.clone(), at)));
            (origin.overrides, origin.actor) = (overrides, actor);
            if let Some(options) = options {
                start.options = options;
            }
        }
        let mut events: Vec<_> = past.into_iter().map(Arc::new).collect();
        let state = follow(&RunState::default(), &events).map_err(|error| StoreError::corrupt_log(run, error))?;
        let mut new_events = Vec::new();
        for (call, result) in results {
            if state.call(&call).is_none_or(|call| call.result().is_some()) {
                let hint = not_open(log, &call);
                return Err(ForkError::NotOpen { call, at, hint });
            }
            new_events.push(NewEvent::new(call, EventKind::LoopToolResult { result, duration: None, change: None }));
        }
        let now = self.now().max(state.at);
        events.extend(stamp(new_events, state.next, now, None));
        // The original's worker has not claimed the fork.
        if let Some(claim) = state.claim.as_ref().filter(|claim| !claim.released) {
            let next = events.last().map_or(Seq(0), |event| event.seq.next());
            let released = NewEvent::new(Path::root(), EventKind::RunReleased { reason: "forked".to_owned() });
            let at = Stamp::for_worker(now, state.worker_at);
            events.extend(stamp(vec![released], next, at, Some(claim.epoch)));
        }
        let none = RunState::default();
        let after = follow(&none, &events).map_err(|error| StoreError::corrupt_log(run, error))?;
        let new = id.unwrap_or_else(|| self.new_run());
        let mut forked = append_of(&new, &none, &after, None, &events, Extras::default());
        // Lists show the fork as a run of now; the events that it shares keep their times.
        (forked.index.summary.started, forked.index.summary.since) = (now, now);
        append(self.store(), &new, forked).await?;
        Ok(new)
    }

    /// Returns the event after which a fork at `at` is made: `at`, or the last one that belongs to it.
    ///
    /// # Errors
    ///
    /// [`ForkError::NoSuchEvent`] if the run has no event `at`, [`ForkError::Store`] if the store fails.
    pub async fn fork_event(&self, run: &RunId, at: Seq) -> Result<Seq, ForkError> {
        whole(&self.events(run, Seq(0)).await?, at)
    }

    /// Returns the event right before a run first entered a stage, an iteration or a call: the place to fork it
    /// in order to run that part again.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] if there is no such run; other variants if the store fails.
    pub async fn before(&self, run: &RunId, path: &Path) -> Result<Option<Seq>, StoreError> {
        let log = self.events(run, Seq(0)).await?;
        let first = log.iter().find(|event| event.path.is_within(path) && !event.path.is_root());
        Ok(first.and_then(|event| event.seq.0.checked_sub(1)).map(Seq))
    }
}

impl Runner {
    /// Forks a run and resumes the fork; see [`Client::fork`].
    ///
    /// # Errors
    ///
    /// [`ForkError`]; after [`ForkError::Resume`] the fork exists, and another runner can resume it.
    pub async fn fork(&self, run: &RunId, at: Seq, mut fork: Fork) -> Result<RunHandle<Value>, ForkError> {
        let brain = self.client().store().run(run).await?.brain;
        if let (Some(options), Some(definition)) = (&fork.options, self.definition_of(&brain)) {
            let read = (definition.read_options)(options).map_err(|error| ForkError::Options(error.to_string()))?;
            fork.options = Some(read);
        }
        let new = self.client().fork(run, at, fork).await?;
        self.resume(&new).await.map_err(|reason| ForkError::Resume { run: new, reason })
    }

    /// Returns how the code of a run's brain differs from the code with which a fork after event `at` would have to continue.
    /// `None` if the fork can continue or has ended, and if this runner does not know the brain.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] if there is no such run; other variants if the store fails.
    pub async fn fork_difference(&self, run: &RunId, at: Seq) -> Result<Option<String>, StoreError> {
        let state = self.client().state_at(run, at).await?.0;
        let open = state.root.as_deref().filter(|root| root.end.is_none());
        let definition = open.and_then(|root| self.definition_of(&root.title));
        Ok(open.zip(definition).and_then(|(root, definition)| migration(root, &definition).err()))
    }

    /// Returns the last event after which a fork of a run can continue with this runner's code, if the run itself
    /// cannot ([`ResumeError::Changed`]): before the open iteration, within the last step, or before the last
    /// stage up to which the code matches. `None` if it matches nowhere, as after a new version of the brain, or
    /// if this runner does not know the brain.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] if there is no such run; other variants if the store fails.
    pub async fn fork_point(&self, run: &RunId) -> Result<Option<Seq>, StoreError> {
        let log = self.client().events(run, Seq(0)).await?;
        let mut state = RunState::default();
        let mut found = None;
        for (index, event) in log.iter().enumerate() {
            state.fold(event).map_err(|error| StoreError::corrupt_log(run, error))?;
            let Some(root) = state.root.as_deref().filter(|root| root.end.is_none()) else { continue };
            let Some(definition) = self.definition_of(&root.title) else { return Ok(None) };
            let parts = root.stage.as_step().is_some()
                || log.get(index + 1).is_some_and(|next| {
                    matches!(
                        next.kind,
                        EventKind::StepStart { .. } | EventKind::LoopStart { .. } | EventKind::LoopIteration(_)
                    )
                });
            let stands = || whole(&log, event.seq).is_ok_and(|at| at == event.seq);
            if parts && stands() && migration(root, &definition).is_ok() {
                found = Some(event.seq);
            }
        }
        Ok(found)
    }
}

/// Returns the last event of the append to which an event belongs.
fn whole(log: &[Arc<Event>], at: Seq) -> Result<Seq, ForkError> {
    let last = log.last().map_or(Seq(0), |event| event.seq);
    if at > last {
        return Err(ForkError::NoSuchEvent { at, last });
    }
    let pairs = log.windows(2).skip(at.index());
    let together = pairs.take_while(|pair| matches!(pair, [one, next] if follows_at_once(one, next)));
    Ok(Seq(at.0 + together.count() as u64))
}

/// Returns whether an event is the message of the run's start, after the input of a loop that has its own.
fn opens(event: &Event) -> bool {
    matches!(event.kind, EventKind::LoopMessage { from: Speaker::Person, signal: None, .. })
}

/// Returns whether an event must follow the one before it, with which it was appended: a call after its answer, a
/// result after its cause. The log does not record the bounds of appends, which would not help: an append also has
/// what only begins in it, and a fork leaves that out. Two appends of the same worker within a microsecond look like
/// one; the fork is then made slightly later, which is harmless.
fn follows_at_once(before: &Event, event: &Event) -> bool {
    if (before.at, before.epoch) != (event.at, event.epoch) {
        return false;
    }
    match &event.kind {
        EventKind::LoopToolCall(_)
        | EventKind::LoopToolResult { duration: None, .. }
        | EventKind::LoopApprovalWithdrawn { .. }
        | EventKind::LoopExit { .. }
        | EventKind::LoopLimit(_)
        | EventKind::BrainCancelled { .. } => true,
        EventKind::LoopPluginChanged { .. } | EventKind::LoopPluginFailed { .. } => {
            matches!(before.kind, EventKind::LoopBrainComplete { .. }) || precedes_its_outcome(before)
        }
        EventKind::LoopModelResult { .. } | EventKind::LoopAnswerRefused { .. } | EventKind::LoopModelRetry { .. } => {
            precedes_its_outcome(before)
        }
        EventKind::LoopWait { .. } | EventKind::LoopTrigger { .. } => {
            sets_a_trigger(before) || precedes_its_outcome(before)
        }
        EventKind::LoopToolResult { .. } => {
            matches!(before.kind, EventKind::LoopBrainComplete { .. })
                || sets_a_trigger(before)
                || precedes_its_outcome(before)
        }
        EventKind::LoopIteration(_) => matches!(before.kind, EventKind::LoopStart { .. }) || opens(before),
        EventKind::LoopMessage { .. } => matches!(before.kind, EventKind::LoopStart { .. }) && opens(event),
        EventKind::BrainStart(_) => matches!(before.kind, EventKind::LoopBrainStart { .. }),
        EventKind::LoopComplete { .. } => {
            matches!(
                before.kind,
                EventKind::LoopToolResult { .. }
                    | EventKind::LoopAnswerRefused { .. }
                    | EventKind::LoopAnswerBroken { .. }
            )
        }
        EventKind::RunClaimed { .. } => matches!(before.kind, EventKind::BrainStart(_)),
        EventKind::BrainMigrated { .. } => true,
        EventKind::RunReleased { .. }
        | EventKind::RunNotClaimed { .. }
        | EventKind::BrainComplete { .. }
        | EventKind::BrainError(_)
        | EventKind::BrainPaused { .. }
        | EventKind::BrainResumed { .. }
        | EventKind::StepStart { .. }
        | EventKind::StepComplete { .. }
        | EventKind::StepRetry { .. }
        | EventKind::StepBlocked {}
        | EventKind::ValueRecorded { .. }
        | EventKind::LoopStart { .. }
        | EventKind::LoopModelCall { .. }
        | EventKind::LoopAnswerBroken { .. }
        | EventKind::LoopToolStart { .. }
        | EventKind::LoopToolRetry { .. }
        | EventKind::LoopBrainStart { .. }
        | EventKind::LoopBrainComplete { .. }
        | EventKind::LoopOutput { .. }
        | EventKind::LoopApprovalRequested { .. }
        | EventKind::LoopApprovalDecided { .. }
        | EventKind::LoopApprovalExpired {}
        | EventKind::LoopResume { .. }
        | EventKind::LoopMaxIterations { .. }
        | EventKind::LoopStopped { .. }
        | EventKind::BudgetRequested(_)
        | EventKind::BudgetDecided { .. }
        | EventKind::BudgetExpired {}
        | EventKind::LoopCompacted { .. } => false,
    }
}

/// Returns whether an event is a plugin's, or of a broken answer: the event that it concerns follows in the same append.
const fn precedes_its_outcome(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::LoopPluginChanged { .. } | EventKind::LoopPluginFailed { .. } | EventKind::LoopAnswerBroken { .. }
    )
}

/// Returns whether a call changes a trigger: its result follows in the same append.
const fn sets_a_trigger(event: &Event) -> bool {
    matches!(event.kind, EventKind::LoopTrigger { .. })
}

fn not_open(log: &[Arc<Event>], call: &Path) -> String {
    let of_call = |event: &&Arc<Event>| event.path == *call;
    let begins = log.iter().filter(of_call).find(|event| matches!(event.kind, EventKind::LoopToolCall(_)));
    let ends = log.iter().filter(of_call).find(|event| matches!(event.kind, EventKind::LoopToolResult { .. }));
    match (begins, ends) {
        (Some(begins), Some(ends)) => {
            format!("it is open from event {} to event {}", begins.seq, Seq(ends.seq.0.saturating_sub(1)))
        }
        (Some(begins), None) => format!("it is open from event {} on", begins.seq),
        (None, _) => "the run has no such call".to_owned(),
    }
}
