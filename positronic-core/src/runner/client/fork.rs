//! Forks: a new run that shares another run's past and may differ from there on.
//!
//! A fork shares whole transitions of its origin. What began in the same append, such as a call after the answer that asked for
//! it, is a transition of its own, so a fork right before it begins it anew.
//!
//! The shared events keep their times. Deadlines that are open count from the fork's first event of its own: what was left of them is left again.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use crate::machine::RunState;
use crate::record::{
    Actor, Event, EventKind, InvalidName, MAX_NAME_CHARS, NewEvent, Overrides, Path, RunId, Seq, ToolResult, check_name,
};
use crate::runner::worker::append::{Extras, Stamp, append, append_of, follow, stamp};
use crate::runner::worker::code_difference::migration;
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
    /// The name of the model is invalid.
    #[error("the name of the model {0}")]
    Model(InvalidName),
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

/// Creates a fork of a run with this log after exactly this event, with which the run can stand. It begins with `begins`.
pub(super) async fn fork_log(
    client: &Client,
    run: &RunId,
    log: &[Arc<Event>],
    at: Seq,
    fork: Fork,
    begins: Vec<NewEvent>,
) -> Result<RunId, ForkError> {
    let Fork { options, overrides, results, actor, run: id } = fork;
    overrides.model.as_deref().map_or(Ok(()), |model| check_name(model, MAX_NAME_CHARS)).map_err(ForkError::Model)?;
    let mut past: Vec<_> = log.iter().take(at.next().index()).map(|event| Event::clone(event)).collect();
    if let Some(EventKind::BrainStart(start)) = past.first_mut().map(|event| &mut event.kind) {
        let origin = start.start.get_or_insert_default();
        let earlier = origin.forked_from.take().map(|(_, at)| at.next());
        origin.earlier_forks.extend(earlier);
        origin.earlier_forks.retain(|begins| *begins <= at);
        // It shares the history and is not part of the conversation.
        (origin.id, origin.conversation, origin.forked_from) = (None, None, Some((run.clone(), at)));
        (origin.overrides, origin.actor) = (overrides, actor);
        if let Some(options) = options {
            start.options = options;
        }
    }
    if let Some(last) = past.last_mut() {
        last.with_next = false;
    }
    let mut events: Vec<_> = past.into_iter().map(Arc::new).collect();
    let state = follow(&RunState::default(), &events).map_err(|error| StoreError::corrupt_log(run, error))?;
    let mut new_events = begins;
    for (call, result) in results {
        if state.call(&call).is_none_or(|call| call.result().is_some()) {
            let hint = not_open(log, &call);
            return Err(ForkError::NotOpen { call, at, hint });
        }
        new_events.push(NewEvent::new(call, EventKind::LoopToolResult { result, duration: None, change: None }));
    }
    let now = client.now().max(state.at);
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
    let new = id.unwrap_or_else(|| client.new_run());
    let mut forked = append_of(&new, &none, &after, None, &events, Extras::default());
    // Lists show the fork as a run of now; the events that it shares keep their times.
    (forked.index.summary.started, forked.index.summary.since) = (now, now);
    append(client.store(), &new, forked).await?;
    Ok(new)
}

/// Forks a run and resumes the fork.
pub(in crate::runner) async fn fork_and_resume(
    runner: &Runner,
    run: &RunId,
    at: Seq,
    mut fork: Fork,
) -> Result<RunHandle<Value>, ForkError> {
    let brain = runner.client().store().run(run).await?.brain;
    if let (Some(options), Some(definition)) = (&fork.options, runner.definition_of(&brain)) {
        let read = (definition.read_options)(options, runner.settings.max_document_bytes);
        fork.options = Some(read.map_err(|error| ForkError::Options(error.to_string()))?);
    }
    let new = runner.client().fork(run, at, fork).await?;
    runner.resume(&new).await.map_err(|reason| ForkError::Resume { run: new, reason })
}

/// Returns how the code differs from the code with which a fork with this state would have to continue.
pub(in crate::runner) fn difference(runner: &Runner, state: &RunState) -> Option<String> {
    let root = state.root.as_deref().filter(|root| root.end.is_none())?;
    let definition = runner.definition_of(&root.title)?;
    migration(root, &definition, runner.settings.max_document_bytes).err()
}

/// Returns the last event after which a fork can continue with the code of a runner.
pub(in crate::runner) async fn point(runner: &Runner, run: &RunId) -> Result<Option<Seq>, StoreError> {
    let log = runner.client().events(run, Seq(0)).await?;
    let mut state = RunState::default();
    let mut found = None;
    for (index, event) in log.iter().enumerate() {
        state.fold(event).map_err(|error| StoreError::corrupt_log(run, error))?;
        let Some(root) = state.root.as_deref().filter(|root| root.end.is_none()) else { continue };
        let Some(definition) = runner.definition_of(&root.title) else { return Ok(None) };
        let parts = root.stage.as_step().is_some()
            || log.get(index + 1).is_some_and(|next| {
                matches!(
                    next.kind,
                    EventKind::StepStart { .. } | EventKind::LoopStart { .. } | EventKind::LoopIteration(_)
                )
            });
        if parts && !event.with_next && migration(root, &definition, runner.settings.max_document_bytes).is_ok() {
            found = Some(event.seq);
        }
    }
    Ok(found)
}

/// Returns the last event of the transition to which an event belongs.
pub(super) fn end_of_transition(log: &[Arc<Event>], at: Seq) -> Result<Seq, ForkError> {
    let last = log.last().map_or(Seq(0), |event| event.seq);
    if at > last {
        return Err(ForkError::NoSuchEvent { at, last });
    }
    let end = log.iter().skip(at.index()).find(|event| !event.with_next);
    Ok(end.map_or(last, |event| event.seq))
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
