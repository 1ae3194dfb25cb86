//! Forks: a new run that shares another run's past, and may be other from there on.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use super::commit::{Extras, append_of, follow, stamp};
use super::restore::migration;
use super::{Client, ResumeError, RunHandle, Runner};
use crate::machine::{RunState, Stage};
use crate::record::{Actor, Event, EventKind, NewEvent, Overrides, Path, RunId, Seq, Speaker, ToolResult};
use crate::store::StoreError;

/// What is other in a fork than in the run it comes from.
#[derive(Debug, Clone, Default, typed_builder::TypedBuilder)]
#[builder(field_defaults(default))]
#[non_exhaustive]
pub struct Fork {
    /// The options, instead of the original ones; stages that are done have read those.
    #[builder(setter(strip_option))]
    pub options: Option<Value>,
    /// The system prompt and the model's name, from the next iteration of each loop on.
    pub overrides: Overrides,
    /// The results of calls that are open at the fork, instead of whatever they would have come to.
    pub results: IndexMap<Path, ToolResult>,
    /// Who forks, and over which channel.
    pub actor: Actor,
}

/// Says why a run is not forked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForkError {
    /// The run has no such event.
    #[error("the run has no event {at}; its last is {last}")]
    NoSuchEvent {
        /// The event that was asked for.
        at: Seq,
        /// The last one there is.
        last: Seq,
    },
    /// A call that is to get another result is not open at the fork.
    #[error("the call `{call}` is not open after event {at}; {hint}")]
    NotOpen {
        /// The call.
        call: Path,
        /// The fork.
        at: Seq,
        /// Where it is open.
        hint: String,
    },
    /// The options do not fit the brain.
    #[error("the options do not fit: {0}")]
    Options(String),
    /// The forked run cannot go on.
    #[error("the fork `{run}` is there, but does not go on: {reason}")]
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
    /// Makes a new run whose log begins as another one's, up to and with event `at`; the original is untouched. Nothing
    /// works on the fork yet: that is [`Runner::fork`], or [`Runner::resume`]. A fork after an event that cannot stand without
    /// those after it, as an answer without its calls, is made after the last of them; what only began in the same append
    /// is left out. What the fork runs again has its effects again: its tools are the real ones, and get another
    /// [`idempotency_key`](crate::dsl::ToolContext::idempotency_key) than those of the original.
    ///
    /// A fork that waits for a webhook, as its origin did, takes none that lies in the mailbox: what lies there is for
    /// runs that mean it. It gets one that comes later and that no other run waits for, or what [`Fork::results`] says.
    /// What it begins to wait for by itself it looks for as any run does.
    ///
    /// # Errors
    ///
    /// [`ForkError`]; there is no new run then.
    pub async fn fork(&self, run: &RunId, at: Seq, fork: Fork) -> Result<RunId, ForkError> {
        let Fork { options, overrides, results, actor } = fork;
        let log = self.events(run, Seq(0)).await?;
        let at = whole(&log, at)?;
        let mut past: Vec<_> = log.iter().take(at.next().index()).map(|event| Event::clone(event)).collect();
        if let Some(EventKind::BrainStart(start)) = past.first_mut().map(|event| &mut event.kind) {
            let origin = start.start.get_or_insert_default();
            // It has the same history, but is no part of the conversation.
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
                let hint = not_open(&log, &call);
                return Err(ForkError::NotOpen { call, at, hint });
            }
            new_events.push(NewEvent::new(call, EventKind::LoopToolResult { result, duration: None, change: None }));
        }
        let now = self.now().max(state.at);
        events.extend(stamp(new_events, state.next, now, None));
        // The worker of the original has not this one in hand.
        if let Some(claim) = state.claim.as_ref().filter(|claim| !claim.released) {
            let next = events.last().map_or(Seq(0), |event| event.seq.next());
            let released = NewEvent::new(Path::root(), EventKind::RunReleased { reason: "forked".to_owned() });
            events.extend(stamp(vec![released], next, now, Some(claim.epoch)));
        }
        let none = RunState::default();
        let after = follow(&none, &events).map_err(|error| StoreError::corrupt_log(run, error))?;
        let new = self.new_run();
        let mut append = append_of(&new, &none, &after, None, &events, Extras::default());
        // Lists show the fork as what it is, a run of now; the past that it shares keeps its times.
        (append.index.summary.started, append.index.summary.since) = (now, now);
        self.store().append(&new, append).await?;
        Ok(new)
    }

    /// Returns the event right before a run entered a stage, an iteration or a call for the first time: the place to fork it
    /// in order to run that again.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] when there is no such run, or as the store fails.
    pub async fn before(&self, run: &RunId, path: &Path) -> Result<Option<Seq>, StoreError> {
        let log = self.events(run, Seq(0)).await?;
        let first = log.iter().find(|event| event.path.is_within(path) && !event.path.is_root());
        Ok(first.and_then(|event| event.seq.0.checked_sub(1)).map(Seq))
    }
}

impl Runner {
    /// Forks a run, and goes on with the fork; see [`Client::fork`].
    ///
    /// # Errors
    ///
    /// [`ForkError`]; after [`ForkError::Resume`] the fork is there and waits for somebody who can go on with it.
    pub async fn fork(&self, run: &RunId, at: Seq, mut fork: Fork) -> Result<RunHandle<Value>, ForkError> {
        let brain = self.client().store().run(run).await?.brain;
        if let (Some(options), Some(definition)) = (&fork.options, self.plan_of(&brain)) {
            let read = (definition.read_options)(options).map_err(|error| ForkError::Options(error.to_string()))?;
            fork.options = Some(read);
        }
        let new = self.client().fork(run, at, fork).await?;
        self.resume(&new).await.map_err(|reason| ForkError::Resume { run: new, reason })
    }

    /// Returns the last event after which a fork of a run goes on with the code that this runner has, where the run itself
    /// does not ([`ResumeError::Changed`]): before the open iteration, or within the last step or before the last stage up to which
    /// the code fits. None where it fits nowhere, as after a new version of the brain, and where this runner does not know
    /// the brain.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] when there is no such run, or as the store fails.
    pub async fn fork_point(&self, run: &RunId) -> Result<Option<Seq>, StoreError> {
        let log = self.client().events(run, Seq(0)).await?;
        let mut state = RunState::default();
        let mut found = None;
        for (index, event) in log.iter().enumerate() {
            state.fold(event).map_err(|error| StoreError::corrupt_log(run, error))?;
            let Some(root) = state.root.as_deref().filter(|root| root.end.is_none()) else { continue };
            let Some(definition) = self.plan_of(&root.title) else { return Ok(None) };
            let parts = matches!(root.stage, Stage::Step(_))
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

/// Returns the last event of the append that an event belongs to.
fn whole(log: &[Arc<Event>], at: Seq) -> Result<Seq, ForkError> {
    let last = log.last().map_or(Seq(0), |event| event.seq);
    if at > last {
        return Err(ForkError::NoSuchEvent { at, last });
    }
    let pairs = log.windows(2).skip(at.index());
    let together = pairs.take_while(|pair| matches!(pair, [one, next] if follows_at_once(one, next)));
    Ok(Seq(at.0 + together.count() as u64))
}

/// Says whether an event is the message of the run's start, behind the input of a loop that has its own.
fn opens(event: &Event) -> bool {
    matches!(event.kind, EventKind::LoopMessage { from: Speaker::Person, signal: None, .. })
}

/// Says whether an event cannot be missing after the one before it, with which it was appended: a call after its answer, a
/// result after what led to it. The log does not say which events one append held, and that would not help: an append
/// also holds what only begins in it, which a fork leaves out. Two appends that look like one, by the same worker within a
/// microsecond, are taken for one; the fork is then made a little later, which is no harm.
fn follows_at_once(before: &Event, event: &Event) -> bool {
    if (before.at, before.epoch) != (event.at, event.epoch) {
        return false;
    }
    match &event.kind {
        EventKind::LoopToolCall(_)
        | EventKind::LoopToolResult { duration: None, .. }
        | EventKind::LoopApprovalWithdrawn { .. }
        | EventKind::LoopExit { .. }
        | EventKind::LoopLimit { .. }
        | EventKind::BrainCancelled { .. } => true,
        EventKind::LoopPluginChanged { .. } | EventKind::LoopPluginFailed { .. } => {
            matches!(before.kind, EventKind::LoopBrainComplete { .. }) || of_a_plugin(before)
        }
        EventKind::LoopModelResult { .. } | EventKind::LoopAnswerRefused { .. } => of_a_plugin(before),
        EventKind::LoopWait { .. } | EventKind::LoopTrigger { .. } => sets_a_trigger(before) || of_a_plugin(before),
        EventKind::LoopToolResult { .. } => {
            matches!(before.kind, EventKind::LoopBrainComplete { .. }) || sets_a_trigger(before) || of_a_plugin(before)
        }
        EventKind::LoopIteration(_) => matches!(before.kind, EventKind::LoopStart { .. }) || opens(before),
        EventKind::LoopMessage { .. } => matches!(before.kind, EventKind::LoopStart { .. }) && opens(event),
        EventKind::BrainStart(_) => matches!(before.kind, EventKind::LoopBrainStart { .. }),
        EventKind::LoopComplete { .. } => {
            matches!(before.kind, EventKind::LoopToolResult { .. } | EventKind::LoopAnswerRefused { .. })
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
        | EventKind::LoopModelRetry { .. }
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
        | EventKind::BudgetRequested { .. }
        | EventKind::BudgetDecided { .. }
        | EventKind::BudgetExpired {}
        | EventKind::LoopCompacted { .. } => false,
    }
}

/// Says whether a plugin speaks: what it speaks about follows in the same append.
const fn of_a_plugin(event: &Event) -> bool {
    matches!(event.kind, EventKind::LoopPluginChanged { .. } | EventKind::LoopPluginFailed { .. })
}

/// Says whether a call sets a trigger or takes one back: its result follows in the same append.
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
