//! Decisions of a further route's caller about what a run waits for.

use positronic_core::record::RunSummary;

use crate::api::{Decision, Key, decide};
use crate::problem::Problem;
use crate::routes::RequestContext;

impl RequestContext {
    /// Decides a pending item of a run, as `POST /runs/{run}/calls/{id}/decision` does. `key` is the client's id of the decision:
    /// repeated with the same content, it succeeds again.
    ///
    /// # Errors
    ///
    /// The problems of that route: the caller lacks the scope or the right to decide, another decision was recorded first
    /// (`AlreadyDecided`, with it in `decision`), the item has expired or no longer waits, or the edited arguments do not match.
    pub async fn decide(&self, row: &RunSummary, id: &str, decision: Decision, key: &str) -> Result<(), Problem> {
        let key = Key::named(self.caller()?, key.to_owned());
        decide(self, row, id, decision, &key).await.map(drop)
    }
}
