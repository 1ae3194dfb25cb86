//! Why a conversation refuses a message.

use crate::record::{LimitKind, RunId};
use crate::runner::{ResumeError, SignalError, StartError};
use crate::store::StoreError;

/// The reason why a conversation refuses a message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConversationError {
    /// The conversation belongs to another user.
    #[error("the conversation `{conversation}` belongs to another user")]
    NotYours {
        /// The conversation.
        conversation: String,
    },
    /// A run has the id of the conversation, and is not one of its runs.
    #[error("a conversation cannot have the id of a run, `{run}`; choose another one")]
    IdOfRun {
        /// The run.
        run: RunId,
    },
    /// The last run has not ended, and no open loop can take the message.
    #[error("the run `{run}` has not ended and takes no message now: {reason}; wait for its end or cancel it")]
    Busy {
        /// The run.
        run: RunId,
        /// The reason of the refusal.
        reason: SignalError,
    },
    /// The last run has not ended, and there is no message for it.
    #[error("the run `{run}` has not ended; wait for its end or cancel it")]
    Open {
        /// The run.
        run: RunId,
    },
    /// The conversation has used up its budget.
    #[error(
        "the conversation `{conversation}` has used up its budget of {}: {} of {}; give it a larger one",
        kind.noun(), kind.amount(*used, currency.as_deref()), kind.amount(*limit, currency.as_deref())
    )]
    Spent {
        /// The conversation.
        conversation: String,
        /// The exhausted limit.
        kind: LimitKind,
        /// How much it may use: iterations, tokens, billionths of money, microseconds.
        limit: u64,
        /// How much it has used, in the same unit.
        used: u64,
        /// The currency in which money counts, where it is known.
        currency: Option<String>,
    },
    /// The conversation has a budget of money, and its cost so far is unknown.
    #[error("the conversation `{conversation}` has a budget of money: {what}")]
    Prices {
        /// The conversation.
        conversation: String,
        /// What is wrong.
        what: String,
    },
    /// The run did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The open run cannot be resumed here.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// The run could not be cancelled.
    #[error(transparent)]
    Signal(#[from] SignalError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
