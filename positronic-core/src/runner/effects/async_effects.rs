//! Effects that take time: their intents, and their start, each in a task of its own.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::report::Outcome;
use super::undo::undo_step;
use super::{model_call, tool_call};
use crate::definition::StageBody;
use crate::error::{Error, Result};
use crate::machine::{Effect, given_up};
use crate::record::{CODE, EventKind, NewEvent, Path, Segment};
use crate::runner::Clock;
use crate::runner::catch::{caught, caught_now};
use crate::runner::detached::attach::is_taken;
use crate::runner::worker::Worker;

/// Returns the intent of an effect, which must be in the log before the effect starts.
pub(in crate::runner) fn intent(worker: &Worker, effect: &Effect) -> Option<NewEvent> {
    let (path, kind) = match effect {
        Effect::Step { path, attempt } => (path, EventKind::StepStart { attempt: *attempt }),
        Effect::Execute { path, attempt } => {
            let detached = is_taken(worker, path, *attempt);
            (path, EventKind::LoopToolStart { attempt: *attempt, detached })
        }
        Effect::Ask { path, attempt } => {
            let settings = &worker.state.loop_at(path)?.prepared.settings;
            let model = match settings.in_code {
                true => CODE.to_owned(),
                false => worker.shared.runner.model_of(settings.tier).name(),
            };
            (path, EventKind::LoopModelCall { attempt: *attempt, model, question: None })
        }
        _ => return None,
    };
    Some(NewEvent::new(path.clone(), kind))
}

/// Returns the result of a call that is not started again, because the process ended during it more often
/// than its tool's retries allow.
pub(in crate::runner) fn given_up_call(worker: &Worker, effect: &Effect) -> Option<NewEvent> {
    let Effect::Execute { path, .. } = effect else { return None };
    let call = worker.state.call(path).filter(|call| call.crashes > 0)?;
    // A missing tool has a result of its own.
    let retries = worker.frames.tool(path, &call.tool)?.retries;
    given_up(call, retries)
}

/// Starts the effects whose intents are in the log.
pub(in crate::runner) fn start_announced(worker: &mut Worker) {
    for effect in std::mem::take(&mut worker.announced) {
        start_effect(worker, &effect);
    }
}

/// Starts an effect whose intent is in the log.
pub(in crate::runner) fn start_effect(worker: &mut Worker, effect: &Effect) {
    match effect {
        Effect::Step { path, .. } => spawn_step(worker, path),
        Effect::Ask { path, attempt } => model_call::spawn(worker, path, *attempt),
        Effect::Execute { path, attempt } => tool_call::spawn(worker, path, *attempt),
        _ => {}
    }
}

fn spawn_step(worker: &mut Worker, path: &Path) {
    worker.used_answers.remove(path);
    let Some(Segment::Stage(name)) = path.last() else { return };
    let owner = path.parent().unwrap_or_default();
    let (step, scope) = match undo_step(worker, path) {
        Some(Ok((step, scope))) => (Ok(step), Some(scope)),
        Some(Err(error)) => (Err(error), worker.scope(path.clone())),
        None => {
            let step = worker.frames.stage(&owner, name).and_then(StageBody::as_step).cloned();
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
            let step = match step {
                Ok(step) => step,
                Err(error) => return Outcome::Step { result: Err(error), retries: 0, took: shared.since(started) },
            };
            let result = limited(&*shared.runner.clock, step.timeout, caught((step.run)(scope))).await;
            let is_retried = |error: &Error| caught_now(|| Ok((step.retried)(error))).unwrap_or(false);
            let retries = result.as_ref().err().filter(|error| is_retried(error)).map_or(0, |_| step.retries);
            Outcome::Step { result, retries, took: shared.since(started) }
        }),
    );
}

/// Runs a step for at most a time.
async fn limited(
    clock: &dyn Clock,
    timeout: Option<Duration>,
    work: impl Future<Output = Result<Value>> + Send,
) -> Result<Value> {
    let Some(timeout) = timeout else { return work.await };
    let mut result = None;
    let is_in_time = clock.limit(timeout, Box::pin(async { result = Some(work.await) })).await;
    let late = || Err(Error::transient(format!("it took longer than {timeout:?}")));
    result.filter(|_| is_in_time).unwrap_or_else(late)
}
