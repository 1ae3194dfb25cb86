//! The outcome of a loop's configuration: the loop begins, then an iteration, with what has changed since the one before.

use std::cell::LazyCell;
use std::sync::Arc;

use crate::machine::stages::{CONTINUE, FORGOTTEN, OPENING};
use crate::machine::{LoopFrame, Prepared, RunState};
use crate::record::{
    Content, ContentHash, ContextItem, ContinuedLoop, EventKind, Iteration, Limits, NewEvent, Path, PluginStates,
    Settings, Speaker, ToolDecl, ToolEntry, UserMessage, hash_json, hash_text,
};

/// A loop's configuration for an iteration, and what else its first events depend on.
pub(crate) struct ConfiguredIteration<'a> {
    pub(crate) input: Option<&'a UserMessage>,
    pub(crate) hidden: bool,
    /// Whether the author's code answers instead of a model.
    pub(crate) in_code: bool,
    pub(crate) system: &'a Arc<str>,
    pub(crate) context: &'a [ContextItem],
    pub(crate) tools: Vec<&'a ToolDecl>,
    pub(crate) settings: &'a Settings,
    pub(crate) limits: &'a Limits,
    /// Whether only an exit tool ends the loop.
    pub(crate) exits: bool,
    /// How many of the latest messages stay, and the summary of those before.
    pub(crate) compaction: Option<(u64, Option<&'a str>)>,
    /// The states of the loop's plugins; empty without plugins.
    pub(crate) plugins: &'a PluginStates,
    /// Whether the loop is the first one of the run's own brain, which gets the message that the run was started with.
    pub(crate) is_first: bool,
    /// The loop whose dialogue it continues.
    pub(crate) continues: Option<ContinuedLoop>,
    /// The messages of people that the loop whose dialogue it takes over has not read.
    pub(crate) unread: Vec<UserMessage>,
}

/// Begins a loop, unless it has begun, and an iteration.
pub(crate) fn begin_iteration(
    state: &RunState,
    path: &Path,
    number: u32,
    loop_at: &ConfiguredIteration<'_>,
) -> Vec<NewEvent> {
    let frame = state.loop_at(path).filter(|frame| frame.path == *path);
    let mut new_events = match frame {
        Some(_) => Vec::with_capacity(1),
        None => begin_loop(state, path, loop_at),
    };
    if let Some((keep, summary)) = loop_at.compaction {
        let summary = summary.map(|text| if text.trim().is_empty() { FORGOTTEN } else { text }.to_owned());
        new_events.push(NewEvent::new(path.clone(), EventKind::LoopCompacted { keep, summary }));
    }
    let mut iteration = iteration(frame, loop_at);
    if let Some(brain) = state.owner(path).filter(|_| !loop_at.plugins.is_empty()) {
        let steps = loop_at.plugins.iter().map(|(name, after)| (name, brain.plugins.step(name, after)));
        iteration.plugins = steps.filter_map(|(name, step)| Some((name.to_owned(), step?))).collect();
    }
    new_events.push(NewEvent::new(path.iteration(number), EventKind::LoopIteration(Box::new(iteration))));
    new_events
}

/// Begins a loop with the message of a person, which is its input: in the first loop of the run's brain the one that the run was started with. Without one it
/// begins with the input that its author gives it, and without that the engine opens it. A loop that takes a dialogue over also gets the
/// messages that were not read.
pub(crate) fn begin_loop(state: &RunState, path: &Path, loop_at: &ConfiguredIteration<'_>) -> Vec<NewEvent> {
    let start = &state.start;
    let first = start.message.as_ref().filter(|_| loop_at.is_first);
    let opening = first.filter(|message| !message.is_empty()).or(loop_at.input).filter(|message| !message.is_empty());
    let mut said = opening.into_iter().chain(&loop_at.unread).cloned();
    let (input, from) = match said.next() {
        Some(first) => (Some(first), Speaker::Person),
        // Code answers without a message, and a loop that takes a dialogue over answers the last one.
        None if loop_at.in_code || takes_over(path, loop_at) => (None, Speaker::Person),
        None if loop_at.continues.is_some() => (Some(UserMessage::new(CONTINUE)), Speaker::Engine),
        None => {
            let fired = start.fired.as_ref().filter(|_| loop_at.is_first).map(|fired| &fired.trigger.what);
            let text = fired.filter(|what| !what.trim().is_empty()).cloned().unwrap_or_else(|| OPENING.to_owned());
            (Some(UserMessage::new(text)), Speaker::Engine)
        }
    };
    let (input, message_id, files) =
        input.map_or_else(Default::default, |UserMessage { text, id, files, .. }| (Some(text), id, files));
    let begins = EventKind::LoopStart {
        input,
        from,
        message_id,
        files,
        hidden: loop_at.hidden,
        continues: loop_at.continues.clone().map(Box::new),
        limits: loop_at.limits.clone(),
    };
    let more = said.map(|UserMessage { text, id, files, .. }| EventKind::LoopMessage {
        text,
        files,
        message_id: id,
        from: Speaker::Person,
        caller_tools: None,
        signal: None,
        actor: start.actor.clone(),
    });
    [begins].into_iter().chain(more).map(|kind| NewEvent::new(path.clone(), kind)).collect()
}

/// Returns whether a call of the continued loop runs the loop.
fn takes_over(path: &Path, loop_at: &ConfiguredIteration<'_>) -> bool {
    loop_at.continues.as_ref().is_some_and(|continued| path.is_within(&continued.path))
}

/// Returns what has changed since the iteration before.
fn iteration(frame: Option<&LoopFrame>, loop_at: &ConfiguredIteration<'_>) -> Iteration {
    let first = LazyCell::new(Prepared::default);
    let before = frame.map_or_else(|| &*first, |frame| &frame.prepared);
    let knows = |hash: &ContentHash| frame.is_some_and(|frame| frame.knows(hash));
    let mut iteration = Iteration::default();
    if before.system != *loop_at.system {
        iteration.system = Some(content(hash_text(loop_at.system), loop_at.system, knows));
    }
    if *before.context != *loop_at.context {
        let items = loop_at.context.iter();
        iteration.context = Some(items.map(|item| content(hash_of(item), item, knows)).collect());
    }
    if !before.tools.tools().iter().eq(loop_at.tools.iter().copied()) {
        iteration.tools = Some(loop_at.tools.iter().map(|tool| entry(tool, knows)).collect());
    }
    if *before.settings != *loop_at.settings {
        iteration.settings = Some(content(hash_of(loop_at.settings), loop_at.settings, knows));
    }
    if frame.is_some_and(|frame| frame.limits != *loop_at.limits) {
        iteration.limits = Some(loop_at.limits.clone());
    }
    if frame.map_or(loop_at.exits, |frame| frame.exits != loop_at.exits) {
        iteration.exits = Some(loop_at.exits);
    }
    iteration
}

fn content<T: Clone>(hash: ContentHash, body: &T, knows: impl Fn(&ContentHash) -> bool) -> Content<T> {
    let body = (!knows(&hash)).then(|| body.clone());
    Content { hash, body }
}

fn entry(tool: &ToolDecl, knows: impl Fn(&ContentHash) -> bool) -> ToolEntry {
    let Content { hash, body } = content(hash_of(tool), tool, knows);
    ToolEntry { id: tool.id.clone(), hash, body }
}

fn hash_of<T: serde::Serialize>(value: &T) -> ContentHash {
    hash_json(&serde_json::to_value(value).unwrap_or_default())
}
