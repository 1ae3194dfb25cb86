//! Why a run does not start, and whether a start is one that has been.
//!
//! The same start again is the same run: of the same brain with the same options, for the same user, at the same place of a
//! conversation, with the same message, budget and overrides. Who started it and over which channel may differ, since whoever
//! tries again may have another trace.

use std::fmt;

use serde_json::Value;

use super::registry::LEAVES;
use crate::definition::{BrainDefinition, UnknownAction};
use crate::machine::RunState;
use crate::record::{Budget, RunId, Start};
use crate::store::StoreError;

/// Says why a run did not start.
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
    /// There is another run of that id.
    #[error("there is a run `{run}` already, and it is another one: {}; start this one with another id", listed(.differs))]
    Started {
        /// The run.
        run: RunId,
        /// What is other in it.
        differs: Vec<Difference>,
    },
    /// The brain has no loop of its own that a message could be said to.
    #[error("`{brain}` takes no message: it has no loop of its own that could hear one; start it without a message")]
    NoListener {
        /// The brain's title.
        brain: String,
    },
    /// The brain names an action that the runner does not have.
    #[error(transparent)]
    Action(#[from] UnknownAction),
    /// The runner releases its runs and starts none any more: [`Runner::release`](super::Runner::release).
    #[error("{LEAVES}")]
    Leaves,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is other in a run than in a start with its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// No start of that id has begun it.
    Id,
    /// It is of another brain.
    Brain,
    /// It has other options.
    Options,
    /// It belongs to another user, or to nobody.
    User,
    /// It is a part of another conversation, or stands at another place in it.
    Conversation,
    /// It was begun with another message.
    Message,
    /// Another trigger has started it, or none.
    Trigger,
    /// It has another budget.
    Budget,
    /// It has another system prompt or model than its code says.
    Overrides,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Id => "it was not begun by a start of that id",
            Self::Brain => "it is of another brain",
            Self::Options => "it has other options",
            Self::User => "it is somebody else's",
            Self::Conversation => "it has another place in conversations",
            Self::Message => "it was begun with another message",
            Self::Trigger => "another trigger has started it, or none",
            Self::Budget => "it has another budget",
            Self::Overrides => "it has another system prompt or model",
        })
    }
}

fn listed(differs: &[Difference]) -> String {
    differs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The budget that prompts share; what those before have used follows from the place in the conversation.
fn shared(start: &Start) -> Option<&Budget> {
    start.shared_budget.as_ref().map(|shared| &shared.budget)
}

/// Compares a run with a start of its id, in the order in which people are told; nothing where the start is the one that has
/// begun it.
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
        (Difference::Conversation, (&start.conversation, &start.after) == (&given.conversation, &given.after)),
        (Difference::Message, start.message == given.message),
        (Difference::Trigger, start.fired == given.fired),
        (Difference::Budget, start.budget == given.budget && shared(start) == shared(given)),
        (Difference::Overrides, start.overrides == given.overrides),
    ];
    same.into_iter().filter(|(_, same)| !same).map(|(differs, _)| differs).collect()
}
