//! Requests of running code to its worker: ask a model, record a value, name a child run. Code that runs again gets what the log has.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;

use super::charge::{charged, charged_error};
use super::report::{Asker, EffectOutcome, SequenceTurn};
use super::send_request::ask;
use crate::error::{Error, Result};
use crate::machine::{self, Asking, keeps_values, settle};
use crate::projection::question_request;
use crate::record::{
    ChildRun, EventKind, ModelError, ModelErrorKind, ModelResponse, NewEvent, Path, Question, Segment, Timestamp,
};
use crate::runner::clock::sleep_until;
use crate::runner::worker::Worker;
use crate::runner::worker::stop_reason::ResumeError;

/// Records a value that a step or a tool has computed and replies with it, or with the value that an earlier attempt
/// recorded.
pub(in crate::runner) async fn keep_value(
    worker: &mut Worker,
    path: &Path,
    name: String,
    value: Arc<Value>,
    reply: oneshot::Sender<Result<Arc<Value>>>,
) -> Result<(), ResumeError> {
    let known = worker.state.value(path, &name);
    let kept = if let Some(known) = known {
        Ok(known)
    } else {
        let runs = keeps_values(&worker.state, path);
        let recorded = EventKind::ValueRecorded { name, value: Arc::clone(&value) };
        match runs && worker.append_outcome(path, vec![NewEvent::new(path.clone(), recorded)]).await? {
            true => Ok(value),
            false => Err(Error::new(format!("`{path}` is not running, so its value is not recorded"))),
        }
    };
    // The code may have stopped waiting.
    _ = reply.send(kept);
    Ok(())
}

/// Records that a child run is about to be started, unless an earlier try did.
pub(in crate::runner) async fn record_child(
    worker: &mut Worker,
    path: &Path,
    child: ChildRun,
    reply: oneshot::Sender<Result<()>>,
) -> Result<(), ResumeError> {
    let recorded = if worker.state.children.contains_key(&child.run) {
        Ok(())
    } else {
        let (runs, title) = (keeps_values(&worker.state, path), child.title.clone());
        let started = vec![NewEvent::new(path.clone(), EventKind::ChildStart(child))];
        match runs && worker.append_outcome(path, started).await? {
            true => Ok(()),
            false => Err(Error::new(format!("`{path}` is not running, so it starts no run of `{title}`"))),
        }
    };
    // The code may have stopped waiting.
    _ = reply.send(recorded);
    Ok(())
}

/// Answers a question of a step, or of a plugin that prepares an iteration, from the log, or sends it to a model.
pub(in crate::runner) async fn answer_question(
    worker: &mut Worker,
    asks: Path,
    question: Question,
    reply: oneshot::Sender<Result<ModelResponse>>,
    turn: Option<SequenceTurn>,
) -> Result<(), ResumeError> {
    let asking = {
        let used = worker.used_answers.get(&asks);
        let is_used = |index| used.is_some_and(|used| used.contains(&index));
        let model = worker.shared.runner.model_of(question.settings.tier).name();
        let in_flight = |path: &Path| worker.is_in_flight(path);
        machine::ask(&worker.state, &asks, question.clone(), model, is_used, in_flight)
    };
    match asking {
        Asking::Recorded(index, answer) => {
            worker.used_answers.entry(asks).or_default().insert(index);
            _ = reply.send(Ok(answer));
        }
        Asking::Send(index, intent) => {
            worker.used_answers.entry(asks.clone()).or_default().insert(index);
            let request = question_request(intent.path.clone(), 0, &question);
            if worker.append_outcome(&asks, vec![intent]).await? {
                send_question(worker, Asker { asks, request, reply, turn }, None);
            }
        }
        Asking::Blocked(new_events) => {
            if !new_events.is_empty() {
                worker.append_outcome(&asks, new_events).await?;
            }
            worker.used_answers.remove(&asks);
            // The step runs again once more is granted; the limit ends the iteration or has it prepared again.
            worker.drop_flight(&preparing_or_step(asks));
        }
        Asking::Refused(reason) => _ = reply.send(Err(Error::new(reason))),
    }
    Ok(())
}

/// Sends a question, for a retry not before `due`.
fn send_question(worker: &mut Worker, mut asker: Asker, due: Option<Timestamp>) {
    let model = Arc::clone(worker.shared.runner.model_of(asker.request.settings.tier));
    let shared = Arc::clone(&worker.shared);
    // The question of a plugin or a guard is no part of the answer that its iteration streams.
    let after = matches!(asker.asks.last(), Some(Segment::Stage(_))).then_some(worker.state.next);
    worker.launch(asker.request.path.clone(), false, Box::pin(async move {
        let Asker { request, reply, turn, .. } = &mut asker;
        let asking = async {
            if due.is_some() {
                sleep_until(&*shared.runner.clock, due).await;
            }
            let started = shared.now();
            let result = ask(&shared, &*model, request, after, |show| show).await;
            (result, shared.since(started))
        };
        let (result, took) = if turn.is_some() {
            tokio::select! {
                asked = asking => asked,
                // The next question of the iteration waits for this one.
                () = reply.closed() => {
                    (Err(ModelError::new(ModelErrorKind::BadRequest, "what asked stopped waiting for the answer")), Duration::ZERO)
                }
            }
        } else {
            asking.await
        };
        EffectOutcome::Question { result, took, asker: Box::new(asker) }
    }));
}

/// Records the outcome of a question, and sends it again or replies to its asker.
pub(super) async fn record_question(
    worker: &mut Worker,
    path: &Path,
    mut result: Result<ModelResponse, ModelError>,
    mut asker: Asker,
    duration: Duration,
) -> Result<(), ResumeError> {
    result = match result {
        Ok(response) => Ok(ModelResponse { metadata: charged(&worker.shared.runner, response.metadata), ..response }),
        Err(error) => Err(charged_error(&worker.shared.runner, error)),
    };
    let outcome = machine::Outcome::Question { result: result.clone(), attempt: asker.request.attempt };
    let new_events = settle(&worker.state, path, outcome, duration, &worker.settle_context());
    let due = new_events.iter().find_map(|event| match &event.kind {
        EventKind::LoopModelRetry { due, .. } => Some(*due),
        _ => None,
    });
    let appended = !new_events.is_empty() && worker.append_outcome(path, new_events).await?;
    if due.is_some() && appended {
        asker.request.attempt += 1;
        send_question(worker, asker, due);
        return Ok(());
    }
    // The step may have stopped waiting.
    _ = asker.reply.send(result.map_err(|error| Error::new(format!("the model failed: {error}"))));
    Ok(())
}

/// Returns the path of the task that asks: a step, or the loop whose iteration is prepared.
fn preparing_or_step(asks: Path) -> Path {
    match asks.last() {
        Some(Segment::Iteration(_)) => asks.parent().unwrap_or_default(),
        _ => asks,
    }
}
