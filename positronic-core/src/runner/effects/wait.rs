//! How a stage that waits begins, and what its answer does to the state.

use crate::definition::{StageBody, WaitStage};
use crate::error::{Error, Result, caught_now};
use crate::machine::{Outcome, WaitOutcome};
use crate::record::{Change, Path};
use crate::runner::worker::Worker;
use crate::runner::worker::early_webhooks::take_early_webhooks;
use crate::runner::worker::stop_reason::ResumeError;

pub(super) async fn begin_wait(worker: &mut Worker, path: &Path) -> Result<bool, ResumeError> {
    let Some(document) = worker.document(path) else { return Ok(false) };
    let now = worker.shared.now().max(worker.state.at);
    let begun = wait_of(worker, path).and_then(|wait| caught_now(|| (wait.begin)(&document, now)));
    let new_events = worker.settled(path, Outcome::WaitBegun(begun));
    worker.mail_unread = true;
    if !worker.append(new_events).await? {
        return Ok(false);
    }
    // The webhook may have arrived before. After a crash right here, the next worker reads the mailbox.
    take_early_webhooks(worker).await?;
    Ok(true)
}

pub(super) fn finish_wait(worker: &mut Worker, path: &Path) -> Option<Outcome> {
    let document = worker.document(path)?;
    let end = worker.state.owner(path)?.stage.as_wait()?.end.clone()?;
    let next = wait_of(worker, path).and_then(|wait| {
        let answer = match &end {
            WaitOutcome::Answered(index, payload) => Some((*index, &**payload)),
            WaitOutcome::Expired => None,
        };
        let next = caught_now(|| (wait.finish)(&document, answer))?;
        Ok(Change::between(document.json(), &next))
    });
    Some(Outcome::StageEnded(next))
}

fn wait_of(worker: &Worker, path: &Path) -> Result<WaitStage> {
    let wait = worker.frames.stage_at(path).and_then(StageBody::as_wait).cloned();
    wait.ok_or_else(|| Error::new("the brain's code has no such wait"))
}
