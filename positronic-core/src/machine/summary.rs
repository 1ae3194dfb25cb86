//! The summary of a run for lists.

mod cause;
mod from_events;
mod gist;

use std::sync::Arc;

use super::active_time::active_of_run;
use super::admit::REPLY;
use super::apply::IllegalEvent;
use super::frames::BrainEnd;
use super::state::RunState;
use super::status::{pending, status_and_next};
use super::waiting::why;
use crate::record::{Event, RunId, RunSummary, Starter, Status, Timestamp};
use cause::cause;
pub(crate) use from_events::add_events;

/// Computes the summary of a run; `before` is the previous one, which contains since when the status is
/// unchanged, when a fork was made, whose events are older, who started it, and what `add_events` has found in its
/// events, such as what its answers have used. The append counts its pending items.
#[must_use]
pub fn summary(run: &RunId, state: &RunState, before: Option<&RunSummary>) -> RunSummary {
    let root = state.root.as_deref();
    let (status, next) = status_and_next(state);
    let same = before.filter(|before| before.status == status);
    RunSummary {
        run: run.clone(),
        brain: root.map(|root| Arc::clone(&root.title)).unwrap_or_default(),
        version: root.map(|root| root.version).unwrap_or_default(),
        user: state.start.user.clone(),
        starter: before.and_then(|before| before.starter.clone()).or_else(|| Starter::of(&state.start).map(Arc::new)),
        tags: state.start.tags.clone(),
        conversation: state.start.conversation.clone(),
        after: state.start.after.clone(),
        forked_from: state.start.forked_from.clone(),
        parent: state.start.parent.as_ref().map(|parent| parent.run.clone()),
        status,
        why: root.and_then(|root| match &root.end {
            Some(BrainEnd::Failed(failure)) => Some(failure.message.clone()),
            // The event that ends it says why.
            Some(BrainEnd::Completed(_) | BrainEnd::Cancelled) => same.and_then(|before| before.why.clone()),
            None if state.refused.is_some() || matches!(status, Status::Waiting | Status::Paused) => {
                why(state).map(|why| why.sentence)
            }
            None => None,
        }),
        last_event: before.and_then(|before| before.last_event.clone()),
        input: before.and_then(|before| before.input.clone()),
        result: before.and_then(|before| before.result.clone()),
        cut_off: before.and_then(|before| before.cut_off.clone()),
        stopped_by: before.and_then(|before| before.stopped_by.clone()),
        tools: before.map(|before| Arc::clone(&before.tools)).unwrap_or_default(),
        since: same.map_or(state.at, |before| before.since),
        started: before.map_or_else(|| root.map_or(state.at, |root| root.began), |before| before.started),
        at: state.at,
        next: state.next,
        usage: before.map(|before| before.usage).unwrap_or_default(),
        active: active_of_run(state, before),
        cost: before.and_then(|before| before.cost.clone()),
        models: before.map(|before| Arc::clone(&before.models)).unwrap_or_default(),
        cause: root.and_then(|root| match &root.end {
            Some(BrainEnd::Failed(failure)) => Some(cause(&failure.message)),
            _ => None,
        }),
        claim: state.claim.clone(),
        crashes: state.crashes(),
        parked: state.parked.is_some(),
        refused: state.refused.as_ref().map(|refused| refused.reason),
        wake: next.wake,
        mail: status == Status::Waiting
            && state.claim.as_ref().is_some_and(|claim| !claim.released)
            && hears_mail(state),
        pending: None,
        older_answers: Arc::clone(&state.older_answers),
    }
}

/// Returns since when the status at the end of a log is unchanged, as the appends of the log have found it.
pub(crate) fn status_since(events: &[Arc<Event>]) -> Result<Option<Timestamp>, IllegalEvent> {
    let mut state = RunState::default();
    let mut last: Option<(Status, Timestamp)> = None;
    // A status that lasts no time is none: the events of an append have one time.
    for moment in events.chunk_by(|one, next| one.at == next.at) {
        for event in moment {
            state.fold(event)?;
        }
        let (status, _) = status_and_next(&state);
        if last.is_none_or(|(before, _)| before != status) {
            last = Some((status, state.at));
        }
    }
    Ok(last.map(|(_, since)| since))
}

/// Returns whether anything in a run waits for a webhook that the mailbox can deliver.
pub(crate) fn hears_mail(state: &RunState) -> bool {
    pending(state).iter().flat_map(|pending| pending.kind.waits()).any(|wait| wait.webhook != REPLY)
}
