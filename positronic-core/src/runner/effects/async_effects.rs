//! Effects that take time: their intents, and their start, each in a task of its own.

use super::{model_call, step, tool_call};
use crate::machine::{Effect, given_up};
use crate::record::{CODE, EventKind, NewEvent};
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
    let mut announced = std::mem::take(&mut worker.announced);
    for effect in announced.drain(..) {
        start_effect(worker, &effect);
    }
    // Its room is used again.
    worker.announced = announced;
}

/// Starts an effect whose intent is in the log.
pub(in crate::runner) fn start_effect(worker: &mut Worker, effect: &Effect) {
    match effect {
        Effect::Step { path, .. } => step::spawn(worker, path),
        Effect::Ask { path, attempt } => model_call::spawn(worker, path, *attempt),
        Effect::Execute { path, attempt } => tool_call::spawn(worker, path, *attempt),
        _ => {}
    }
}
