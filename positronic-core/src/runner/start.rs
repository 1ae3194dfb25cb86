//! Starts of runs: checks, the append that begins a run, and the comparison of a repeated start with its run.
//!
//! A repeated start is the same run: the same brain with the same options, for the same user, with the same tags, at the same
//! place of a conversation, with the same message, budget and overrides. The person and the channel may differ, because a retry
//! may have another trace.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;

use super::client::child_ends::cancel_orphan;
use super::resume::{apart, attend_children, attended, open};
use super::serve::run_task::attend;
use super::worker::append::{Extras, append, append_of, follow, stamp};
use super::worker::claim::append_alone;
use super::worker::loaded_code::Frames;
use super::worker::shared::{Folded, Shared};
use super::worker::stop_reason::LEAVES;
use super::worker::timers::fires;
use super::worker::{Worker, load};
use super::{RunHandle, Runner};
use crate::definition::{BrainDefinition, UnknownAction};
use crate::machine::RunState;
use crate::projection::Prompts;
use crate::record::{
    BrainStart, Budget, DocumentError, EndReason, Epoch, EventKind, Failure, HandedOver, InvalidName, MAX_NAME_CHARS,
    NewEvent, Path, PluginStates, RunId, Seq, SignalId, Start, Timestamp, check_document, check_message, check_name,
    is_invisible,
};
use crate::store::StoreError;
use crate::tools::{CallerToolError, check_caller_tools};

/// The reason why a run did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The options do not fit the brain.
    #[error("the options do not fit `{brain}`: {reason}")]
    Options {
        /// The brain's title.
        brain: String,
        /// What does not fit.
        reason: String,
    },
    /// Another run has that id.
    #[error("the run `{run}` exists and differs: {}; use another id", listed(.differs))]
    Started {
        /// The run.
        run: RunId,
        /// The differences.
        differs: Vec<Difference>,
    },
    /// The brain has no loop of its own that could take the message.
    #[error("`{brain}` takes no message: it has no loop of its own; start it without a message")]
    NoListener {
        /// The brain's title.
        brain: String,
    },
    /// No loop of the brain takes tools of its caller, and the message has some.
    #[error("no loop of `{brain}` takes tools of its caller; its author opts in with `.caller_tools()` after a loop")]
    NoCallerTools {
        /// The brain's title.
        brain: String,
    },
    /// The caller's tools cannot be taken.
    #[error("the tools of the caller are refused: {0}")]
    CallerTools(#[source] CallerToolError),
    /// The message is too large for the log.
    #[error("the message cannot be recorded: {0}")]
    Message(#[source] DocumentError),
    /// The id, the user, the conversation or the model is invalid.
    #[error("the {field} of the run {reason}")]
    Name {
        /// `id`, `user`, `conversation` or `model`.
        field: &'static str,
        /// What is wrong with it.
        reason: InvalidName,
    },
    /// A tag is invalid.
    #[error("the tag {tag:?} is invalid: {reason}")]
    Tag {
        /// Its place among the tags, from 0.
        index: usize,
        /// The tag.
        tag: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The state that the brain keeps over a conversation does not fit its code.
    #[error("the state that `{brain}` has kept from the run before cannot be used: {reason}")]
    State {
        /// The brain's title.
        brain: String,
        /// What does not fit.
        reason: String,
    },
    /// The brain names an action that the runner does not have.
    #[error(transparent)]
    Action(#[from] UnknownAction),
    /// The runner releases its runs and starts no more: [`Runner::release`](super::Runner::release).
    #[error("{LEAVES}")]
    Leaves,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A difference between a run and a start with its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[non_exhaustive]
pub enum Difference {
    /// It was not begun by a start with that id.
    #[strum(to_string = "it was not begun by a start with that id")]
    Id,
    /// It has another brain.
    #[strum(to_string = "it has another brain")]
    Brain,
    /// It has other options.
    #[strum(to_string = "it has other options")]
    Options,
    /// It has another user, or none.
    #[strum(to_string = "it has another user")]
    User,
    /// It has other tags.
    #[strum(to_string = "it has other tags")]
    Tags,
    /// It belongs to another conversation, or has another place in it.
    #[strum(to_string = "it has another place in conversations")]
    Conversation,
    /// It began with another message.
    #[strum(to_string = "it began with another message")]
    Message,
    /// It was started by another trigger, schedule or webhook, or by none.
    #[strum(to_string = "it was started by another trigger, schedule or webhook, or by none")]
    Trigger,
    /// It has another budget.
    #[strum(to_string = "it has another budget")]
    Budget,
    /// It has another system prompt or model override.
    #[strum(to_string = "it has another system prompt or model")]
    Overrides,
}

fn listed(differs: &[Difference]) -> String {
    differs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What a run takes over from the run before it in a conversation.
#[derive(Default)]
pub(super) struct TakenOver {
    /// The states of its plugins.
    pub(super) plugins: PluginStates,
    /// The state of its brain; `None` for the initial one.
    pub(super) state: Option<Value>,
    /// The brain with which the conversation stays.
    pub(super) handed_over: Option<Box<HandedOver>>,
}

/// Starts a run.
pub(super) async fn start(
    runner: &Runner,
    definition: Arc<BrainDefinition>,
    options: Value,
    start: Start,
    TakenOver { plugins, state, handed_over }: TakenOver,
) -> Result<RunHandle<Value>, StartError> {
    runner.code.actions.check(&definition)?;
    if let Some(opening) = &start.message {
        check_message(&opening.text, &opening.files, runner.settings.max_document_bytes)
            .map_err(StartError::Message)?;
    }
    if start.message.is_some() && !definition.stages.iter().any(|stage| stage.body.as_loop().is_some()) {
        return Err(StartError::NoListener { brain: definition.title.clone() });
    }
    let caller_tools = start.message.as_ref().and_then(|message| message.caller_tools.as_deref()).unwrap_or_default();
    if !caller_tools.is_empty() && !definition.takes_caller_tools() {
        return Err(StartError::NoCallerTools { brain: definition.title.clone() });
    }
    check_caller_tools(caller_tools).map_err(StartError::CallerTools)?;
    check_names(&start)?;
    check_tags(&start.tags)?;
    let misfit = |reason| StartError::Options { brain: definition.title.clone(), reason };
    check_document(&options, runner.settings.max_document_bytes).map_err(|error| misfit(error.to_string()))?;
    let read = (definition.read_options)(&options, runner.settings.max_document_bytes);
    let options = read.map_err(|error| misfit(error.to_string()))?;
    let run = match &start.id {
        Some(id) => RunId::new(id.as_str()),
        None => runner.ids.run(),
    };
    let given = start.clone();
    let start = (start != Start::default()).then_some(start);
    let initial = definition.begin(options.clone());
    let state = state.unwrap_or_else(|| initial.state.clone());
    let begin = BrainStart { start, plugins, state, handed_over, ..initial };
    let (own, id, code) = (runner.clone(), run.clone(), Arc::clone(&definition));
    runner.state.started.insert(&definition);
    // Boxed, so that the future of a start is small.
    let begun = Box::pin(async move { begin_run(&own, &id, code, begin).await });
    match apart(begun).await.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
        Err(StartError::Store(StoreError::Conflict { .. })) => {}
        begun => return begun,
    }
    // A repeated start returns the same run; another run with that id is refused.
    let known = Box::pin(load::whole(&*runner.store, &run, &runner.state.histories)).await?;
    let differs = differences(&known.state, &definition, &options, &given);
    // A delivery, a step and a call start one run, whatever the code computes the next time.
    let is_same_delivery = given.delivery.is_some() && known.state.start.delivery == given.delivery;
    let is_same_child = given.parent.is_some() && known.state.start.parent == given.parent;
    if is_same_delivery || is_same_child || differs.is_empty() {
        let definition = Some(definition).filter(|_| !runner.settings.submits);
        let is_worked_on = definition.is_some() && !known.state.has_ended();
        let run = attended(runner, run, definition, known);
        if is_worked_on {
            attend_children(runner, &run);
        }
        Ok(run)
    } else {
        Err(StartError::Started { run, differs })
    }
}

/// Starts a run for the code of another one.
pub(super) fn start_run(
    runner: Runner,
    definition: Arc<BrainDefinition>,
    options: Value,
    given: Start,
) -> BoxFuture<'static, Result<(), String>> {
    Box::pin(async move {
        let started = start(&runner, definition, options, given, TakenOver::default()).await;
        started.map(drop).map_err(|error| error.to_string())
    })
}

async fn begin_run(
    runner: &Runner,
    run: &RunId,
    definition: Arc<BrainDefinition>,
    begin: BrainStart,
) -> Result<RunHandle<Value>, StartError> {
    if runner.settings.submits {
        return submit(runner, run, begin).await;
    }
    // Registered before another process can find it. If it is registered already, the store refuses the
    // append.
    let guard = runner.state.registry.guard(run);
    if runner.state.registry.is_leaving() {
        return Err(StartError::Leaves);
    }
    let epoch = Epoch(1);
    let lease = runner.lease().await?;
    let owner = lease.owner().to_owned();
    let trace = begin.start.as_ref().and_then(|start| start.actor.trace.clone());
    let before = begin.start.as_ref().and_then(|start| start.after.clone());
    let now = time_after(runner, before.as_ref()).await?;
    let mut prompts = match before {
        Some(before) => Prompts::after(load::history(&*runner.store, &before, &runner.state.histories).await?),
        None => Prompts::default(),
    }
    .in_run(run)
    .dropping_ended();
    let begin = vec![NewEvent::new(Path::root(), EventKind::BrainStart(Box::new(begin)))];
    let claim = vec![NewEvent::new(Path::root(), EventKind::RunClaimed { owner, trace })];
    let mut events = stamp(begin, Seq(0), now, None);
    events.extend(stamp(claim, Seq(1), now, Some(epoch)));
    let none = RunState::default();
    let state = follow(&none, &events).map_err(|error| StoreError::corrupt_log(run, error))?;
    let extras = Extras { sinks: runner.durable_sinks(), ..causes(&state.start, now) };
    let begun = append_of(run, &none, &state, None, &events, extras);
    let summary = begun.index.summary.clone();
    append(&*runner.store, run, begun).await?;
    for event in &events {
        prompts.apply(event);
    }
    let folded = Folded { state, prompts, summary, snapshot: Seq(0) };
    let start = &folded.state.start;
    let served = runner.settings.driven || start.fired.is_some() || start.scheduled.is_some();
    let shared = Shared::new((runner.clone(), start_run), run.clone(), Some(Arc::clone(&definition)), served, folded);
    shared.feed(Seq(0));
    let begun = shared.state().clone();
    let made = match guard {
        Some(guard) => {
            let mut worker = Worker::new(&shared, (epoch, lease), guard);
            let frames = Frames::restored(run, &begun, &definition, &worker.link).await;
            frames.map(|frames| {
                worker.frames = frames;
                Some(worker)
            })
        }
        None => Ok(None),
    };
    let worker = match made {
        Ok(worker) => worker,
        Err(stop) => {
            let failure = Failure { code: EndReason::Config, message: stop.to_string(), retryable: false };
            // If this append fails, the run's task comes to the same result.
            _ = append_alone(&shared, epoch, EventKind::BrainError(failure)).await;
            None
        }
    };
    if begun.start.parent.is_some() {
        // If that fails, the next claim does it.
        _ = cancel_orphan(&runner.client(), run, &begun).await;
    }
    tokio::spawn(attend(Arc::clone(&shared), worker));
    Ok(RunHandle::new(shared))
}

/// Appends the first event of a run, and leaves the work to another worker.
async fn submit(runner: &Runner, run: &RunId, begin: BrainStart) -> Result<RunHandle<Value>, StartError> {
    let before = begin.start.as_ref().and_then(|start| start.after.as_ref());
    let now = time_after(runner, before).await?;
    let events = stamp(vec![NewEvent::new(Path::root(), EventKind::BrainStart(Box::new(begin)))], Seq(0), now, None);
    let none = RunState::default();
    let state = follow(&none, &events).map_err(|error| StoreError::corrupt_log(run, error))?;
    append(&*runner.store, run, append_of(run, &none, &state, None, &events, causes(&state.start, now))).await?;
    Ok(open(runner, run).await?)
}

/// Returns what the append that begins a run uses up: the trigger fires, and the webhook leaves the mailbox.
fn causes(start: &Start, now: Timestamp) -> Extras {
    let timers = fires(start, now).into_iter().collect();
    let deliveries = start.delivery.iter().map(|delivery| delivery.id.clone()).collect();
    Extras { timers, deliveries, ..Extras::default() }
}

/// Returns the time at which a run starts after another one of its conversation. Lists are ordered by time, and a
/// clock may stand still or go back.
async fn time_after(runner: &Runner, before: Option<&RunId>) -> Result<Timestamp, StoreError> {
    let now = runner.clock.now();
    Ok(match before {
        Some(before) => now.max(runner.store.run(before).await?.at.after(Duration::from_micros(1))),
        None => now,
    })
}

/// The most characters of a user and of a conversation: the id of a conversation's run adds its number.
pub(super) const MAX_OWNER_CHARS: usize = MAX_NAME_CHARS - 20;

/// Checks the names of a start.
fn check_names(start: &Start) -> Result<(), StartError> {
    let names = [
        ("user", start.user.as_deref(), MAX_OWNER_CHARS),
        ("conversation", start.conversation.as_deref(), MAX_OWNER_CHARS),
        ("id", start.id.as_ref().map(SignalId::as_str), MAX_NAME_CHARS),
        ("model", start.overrides.model.as_deref(), MAX_NAME_CHARS),
    ];
    for (field, name, most) in names {
        if let Some(Err(reason)) = name.map(|name| check_name(name, most)) {
            return Err(StartError::Name { field, reason });
        }
    }
    Ok(())
}

/// The most tags of a run.
const MAX_TAGS: usize = 16;
/// The most bytes of a tag.
const MAX_TAG_BYTES: usize = 64;

/// Checks the tags of a start.
fn check_tags(tags: &[String]) -> Result<(), StartError> {
    for (index, tag) in tags.iter().enumerate() {
        let reason = match tag {
            tag if tag.trim().is_empty() => "it is empty",
            tag if tag.len() > MAX_TAG_BYTES => "it has more than 64 bytes",
            tag if tag.contains(char::is_control) => "it has a control character",
            tag if tag.contains(is_invisible) => "it has an invisible character",
            tag if tags.iter().take(index).any(|before| before == tag) => "it is given twice",
            _ if index >= MAX_TAGS => "a run has at most 16 tags",
            _ => continue,
        };
        return Err(StartError::Tag { index, tag: tag.clone(), reason });
    }
    Ok(())
}

/// The conversation's budget; the usage of previous runs follows from the place in the conversation.
fn shared(start: &Start) -> Option<&Budget> {
    start.shared_budget.as_ref().map(|shared| &shared.budget)
}

/// Compares a run with a start with its id, in the order of display; empty if that start began it.
fn differences(begun: &RunState, definition: &BrainDefinition, options: &Value, given: &Start) -> Vec<Difference> {
    let start = &begun.start;
    let root = begun.root.as_deref();
    let same = [
        (Difference::Id, start.id == given.id),
        (Difference::Brain, root.is_some_and(|root| *root.title == *definition.title)),
        (Difference::Options, root.is_some_and(|root| *root.options == *options)),
        (Difference::User, start.user == given.user),
        (Difference::Tags, start.tags == given.tags),
        (Difference::Conversation, (&start.conversation, &start.after) == (&given.conversation, &given.after)),
        (Difference::Message, start.message == given.message),
        (
            Difference::Trigger,
            (&start.fired, &start.scheduled, &start.delivery) == (&given.fired, &given.scheduled, &given.delivery),
        ),
        (Difference::Budget, start.budget == given.budget && shared(start) == shared(given)),
        (Difference::Overrides, start.overrides == given.overrides),
    ];
    same.into_iter().filter(|(_, same)| !same).map(|(differs, _)| differs).collect()
}
