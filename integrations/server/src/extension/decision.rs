//! Decisions of a further route's caller about what a run waits for.

use positronic_core::record::{Amounts, RunSummary};
use serde_json::Value;

use crate::api::{Key, NewDecision, decide};
use crate::problem::Problem;
use crate::routes::RequestContext;

/// A decision about a pending item, or the answer to it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Decision {
    /// Approves a call.
    Approve {
        /// The edited arguments, all of them.
        arguments: Option<Value>,
    },
    /// Rejects a call, or a request for more of a limit.
    Reject {
        /// The reason; for a call, the model reads it.
        reason: Option<String>,
    },
    /// Grants more of a limit.
    Grant(Amounts),
    /// Answers a call or a stage that waits.
    Reply {
        /// The answer.
        payload: Value,
        /// Which of several possible answers it is, from 0.
        wait: Option<usize>,
    },
}

impl RequestContext {
    /// Decides a pending item of a run, as `POST /runs/{run}/calls/{id}/decision` does. `key` is the client's id of the decision:
    /// repeated with the same content, it succeeds again.
    ///
    /// # Errors
    ///
    /// The problems of that route: the caller lacks the scope or the right to decide, another decision was recorded first
    /// (`AlreadyDecided`, with it in `decision`), the item has expired or no longer waits, or the edited arguments do not match.
    pub async fn decide(&self, row: &RunSummary, id: &str, decision: Decision, key: &str) -> Result<(), Problem> {
        let mut new = NewDecision::default();
        match decision {
            Decision::Approve { arguments } => (new.approve, new.arguments) = (Some(true), arguments),
            Decision::Reject { reason } => (new.reject, new.reason) = (Some(true), reason),
            Decision::Grant(more) => new.grant = Some(more),
            Decision::Reply { payload, wait } => (new.reply, new.wait) = (Some(payload), wait),
        }
        let key = Key::named(self.caller()?, key.to_owned());
        decide(self, row, id, new, &key).await.map(drop)
    }
}
