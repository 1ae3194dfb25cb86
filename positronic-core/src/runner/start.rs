//! Errors of a start, and the comparison of a repeated start with its run.
//!
//! A repeated start is the same run: the same brain with the same options, for the same user, with the same tags, at the same
//! place of a conversation, with the same message, budget and overrides. The person and the channel may differ, because a retry
//! may have another trace.

use serde_json::Value;

use super::worker::stop::LEAVES;
use crate::definition::{BrainDefinition, UnknownAction};
use crate::machine::RunState;
use crate::record::{
    Budget, DocumentError, InvalidName, MAX_NAME_CHARS, RunId, SignalId, Start, check_name, is_invisible,
};
use crate::store::StoreError;

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
    /// The message is too large for the log.
    #[error("the message cannot be recorded: {0}")]
    Message(#[source] DocumentError),
    /// The id, the user or the conversation is invalid.
    #[error("the {field} of the run {reason}")]
    Name {
        /// `id`, `user` or `conversation`.
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
    /// It was started by another trigger or schedule, or by none.
    #[strum(to_string = "it was started by another trigger or schedule, or by none")]
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

/// The most characters of a user and of a conversation: the id of a conversation's run adds its number.
pub(super) const MAX_OWNER_CHARS: usize = MAX_NAME_CHARS - 20;

/// Checks the names of a start.
pub(super) fn check_names(start: &Start) -> Result<(), StartError> {
    let names = [
        ("user", start.user.as_deref(), MAX_OWNER_CHARS),
        ("conversation", start.conversation.as_deref(), MAX_OWNER_CHARS),
        ("id", start.id.as_ref().map(SignalId::as_str), MAX_NAME_CHARS),
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
pub(super) fn check_tags(tags: &[String]) -> Result<(), StartError> {
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
pub(super) fn differences(
    begun: &RunState,
    definition: &BrainDefinition,
    options: &Value,
    given: &Start,
) -> Vec<Difference> {
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
        (Difference::Trigger, (&start.fired, &start.scheduled) == (&given.fired, &given.scheduled)),
        (Difference::Budget, start.budget == given.budget && shared(start) == shared(given)),
        (Difference::Overrides, start.overrides == given.overrides),
    ];
    same.into_iter().filter(|(_, same)| !same).map(|(differs, _)| differs).collect()
}
