//! How a step runs: in a task of its own, with its limit of time.

use std::sync::Arc;

use super::report::EffectOutcome;
use super::undo::undo_step;
use crate::definition::{StageBody, Tries};
use crate::error::{Error, caught, caught_now};
use crate::machine::Outcome;
use crate::record::{Path, Segment, StageKind};
use crate::runner::clock::limited;
use crate::runner::worker::Worker;

pub(super) fn spawn(worker: &mut Worker, path: &Path) {
    worker.used_answers.remove(path);
    let Some(Segment::Stage(name)) = path.last() else { return };
    let owner = path.parent().unwrap_or_default();
    let (step, scope) = match undo_step(worker, path) {
        Some(Ok((undo, scope))) => (Ok((undo, Tries::of(StageKind::Step))), Some(scope)),
        Some(Err(error)) => (Err(error), worker.scope(path.clone())),
        None => {
            let step = worker.frames.stage(&owner, name).and_then(StageBody::as_step).cloned();
            let step = step.zip(worker.frames.tries(&owner, name).cloned());
            let missing = || Error::new("the brain's code has no such step");
            (step.ok_or_else(missing), worker.scope(path.clone()))
        }
    };
    let Some(scope) = scope else { return };
    let shared = Arc::clone(&worker.shared);
    worker.launch(
        path.clone(),
        true,
        Box::pin(async move {
            let started = shared.now();
            let (result, retries) = match step {
                Ok((run, tries)) => {
                    let result = match tries.timeout {
                        None => caught(run(scope)).await,
                        Some(timeout) => {
                            let late = || Err(Error::transient(format!("it took longer than {timeout:?}")));
                            limited(&*shared.runner.clock, timeout, caught(run(scope))).await.unwrap_or_else(late)
                        }
                    };
                    let is_retried = |error: &Error| caught_now(|| Ok((tries.retried)(error))).unwrap_or(false);
                    let retries = result.as_ref().err().filter(|error| is_retried(error)).map_or(0, |_| tries.retries);
                    (result, retries)
                }
                Err(error) => (Err(error), 0),
            };
            EffectOutcome::Settled(Outcome::Step { result, retries }, shared.since(started))
        }),
    );
}
