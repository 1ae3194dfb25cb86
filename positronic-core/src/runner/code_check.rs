//! Comparison of the code with what a run needs.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::Runner;
use super::effects::link::RunLink;
use super::start::start_run;
use super::worker::append::{follow, stamp};
use super::worker::claim::epoch_after;
use super::worker::code_difference::migration;
use super::worker::load;
use super::worker::loaded_code::Frames;
use super::worker::shared::Shared;
use super::worker::stop_reason::ResumeError;
use crate::machine::{IllegalEvent, RunState};
use crate::record::{EventKind, NewEvent, Path, RunId, SignalKind};
use crate::store::StoreError;

/// How the code differs from what a run needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CodeCheck {
    /// How its brain differs from the code that the run began with, up to its current stage.
    pub brain: Option<String>,
    /// What its open calls need and the code does not have.
    pub calls: Option<String>,
}

impl CodeCheck {
    /// Returns the difference because of which a signal must not be sent: the code could not carry out an answer to an open call,
    /// or could not continue a resumed run. The other signals, such as a rejection, need no code.
    #[must_use]
    pub fn refuses(&self, signal: &SignalKind) -> Option<&str> {
        match signal {
            SignalKind::Approve { .. }
            | SignalKind::Grant { .. }
            | SignalKind::Webhook { .. }
            | SignalKind::Reply { .. }
            | SignalKind::ChildEnded { .. } => self.calls.as_deref(),
            SignalKind::Resume => self.brain.as_deref(),
            SignalKind::Reject { .. }
            | SignalKind::Message { .. }
            | SignalKind::UpdatePlugin { .. }
            | SignalKind::Pause
            | SignalKind::Cancel { .. } => None,
        }
    }
}

/// Compares the code with what a run needs.
pub(super) async fn check(runner: &Runner, run: &RunId) -> Result<CodeCheck, StoreError> {
    let folded = load::whole(&*runner.store, run, &runner.state.histories).await?;
    let definition = runner.definition_of(&folded.summary.brain).filter(|_| !folded.state.has_ended());
    let Some((definition, root)) = definition.zip(folded.state.root.as_deref()) else {
        return Ok(CodeCheck::default());
    };
    let migrated = match migration(root, &definition, runner.settings.max_document_bytes) {
        Ok(migrated) => migrated,
        Err(difference) => return Ok(CodeCheck { brain: Some(difference), calls: None }),
    };
    let claimed = would_claim(&folded.state, migrated).map_err(|error| StoreError::corrupt_log(run, error))?;
    let shared = Shared::new((runner.clone(), start_run), run.clone(), Some(Arc::clone(&definition)), true, folded);
    let (reports, _unread) = mpsc::unbounded_channel();
    let link = Arc::new(RunLink::new(&shared, reports));
    let restored = Frames::restored(run, &claimed, &definition, &link);
    let calls = match restored.await {
        Err(ResumeError::Changed { difference }) => Some(difference),
        Ok(frames) => frames.missing_tool(&claimed),
        Err(_) => None,
    };
    Ok(CodeCheck { brain: None, calls })
}

/// Returns the state after a claim by a worker with this code.
fn would_claim(state: &RunState, migrated: Option<EventKind>) -> Result<RunState, IllegalEvent> {
    let claimed = EventKind::RunClaimed { owner: String::new(), trace: None };
    let new_events = [claimed].into_iter().chain(migrated).map(|kind| NewEvent::new(Path::root(), kind)).collect();
    follow(state, &stamp(new_events, state.next, state.at, Some(epoch_after(state))))
}
