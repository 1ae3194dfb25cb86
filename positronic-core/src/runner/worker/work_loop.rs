//! The loop of a worker: it begins what the machine asks for, waits for reports, and records outcomes.

use std::sync::Arc;
use std::time::Duration;

use super::early_webhooks::take_early_webhooks;
use super::leave_run::{LeaveReason, release};
use super::shared::WorkerPhase;
use super::stop_reason::ResumeError;
use super::worker::{Worker, lost};
use crate::error::Error;
use crate::machine::{Effect, Outcome, detached, next, status};
use crate::record::{EventKind, NewEvent, Path, Status, Timestamp};
use crate::runner::clock::{sleep, sleep_until};
use crate::runner::effects::async_effects::{start_announced, start_effect};
use crate::runner::effects::prepare::preparing;
use crate::runner::effects::questions_and_values::{answer_question, keep_value, record_child};
use crate::runner::effects::record_outcome::record_outcome;
use crate::runner::effects::report::{self, Report};
use crate::runner::effects::sync_effects::perform;

/// The maximum number of reports in an append.
const TOGETHER: usize = 64;

pub(super) async fn drive(worker: &mut Worker) -> Result<LeaveReason, ResumeError> {
    Box::pin(end_broken(worker)).await?;
    let calls = detached(&worker.state);
    for (path, attempt) in calls {
        start_effect(worker, &Effect::Execute { path, attempt });
    }
    loop {
        let leaves = worker.leaves();
        start_announced(worker);
        if leaves {
            Box::pin(give_up_iterations(worker)).await?;
        }
        let wake = if leaves { None } else { begin_effects(worker).await? };
        // Lockstep may have waited for an effect that a cancelled brain has dropped.
        if !worker.held.is_empty() {
            Box::pin(record_held(worker)).await?;
            if worker.held.is_empty() {
                Box::pin(record_drafted(worker)).await?;
                continue;
            }
        }
        if worker.state.has_ended() {
            return Ok(LeaveReason::Ended);
        }
        if leaves && worker.flights.is_empty() {
            if Box::pin(release(worker, "its worker releases its runs".to_owned())).await? {
                return Ok(LeaveReason::Released);
            }
            continue;
        }
        let idle = worker.flights.is_empty() && status(&worker.state) != Status::Running;
        worker.shared.publish(if idle { WorkerPhase::Suspended } else { WorkerPhase::Working });
        let patience = match (leaves, idle) {
            (true, _) => grace(worker),
            // Other suspects may work while this one waits.
            (false, true) if worker.quarantined.is_some() => Duration::ZERO,
            (false, true) => worker.shared.runner.settings.linger,
            (false, false) => Duration::MAX,
        };
        if wait(worker, wake, patience).await? {
            continue;
        }
        if leaves {
            Box::pin(abandon(worker)).await?;
        } else if Box::pin(release(worker, "nothing to do".to_owned())).await? {
            return Ok(LeaveReason::Released);
        }
    }
}

/// Ends the loops whose configuration failed during the restore, as when it fails the first time.
async fn end_broken(worker: &mut Worker) -> Result<(), ResumeError> {
    let broken = std::mem::take(&mut worker.frames.broken);
    loop {
        let is_open = |path: &Path| worker.state.loop_at(path).is_some_and(|frame| frame.path == *path);
        let open = broken.iter().filter(|(path, _)| is_open(path));
        let ends = |(path, error): &(Path, String)| worker.settled(path, Outcome::NotConfigured(Error::new(error)));
        let new_events: Vec<NewEvent> = open.flat_map(ends).collect();
        if new_events.is_empty() || worker.append(new_events).await? {
            return Ok(());
        }
    }
}

/// Begins all due effects and returns the time of the next one.
async fn begin_effects(worker: &mut Worker) -> Result<Option<Timestamp>, ResumeError> {
    loop {
        start_announced(worker);
        let next = next(&worker.state, worker.shared.now().max(worker.state.at));
        let fresh = worker.fresh(next.effects);
        if fresh.is_empty() {
            return Ok(next.wake);
        }
        Box::pin(begin(worker, fresh)).await?;
    }
}

/// Begins effects together: first one append with the events that follow from the state and the intents, then
/// the effects in flight, then those that the worker performs itself, whose outcomes are appended together.
async fn begin(worker: &mut Worker, mut effects: Vec<Effect>) -> Result<(), ResumeError> {
    let at = worker.state.next;
    if worker.draft_announced(&mut effects)? {
        if !worker.append_draft().await? {
            // Another writer was first: decide again.
            return Ok(());
        }
        start_announced(worker);
    }
    for effect in effects {
        // The events since then may have made this effect obsolete.
        let stale = worker.state.next != at && !worker.is_due(&effect);
        if stale || !perform(worker, effect).await? {
            break;
        }
    }
    worker.append_drafted().await.map(drop)
}

/// Aborts the preparation of iterations by plugins, which may take any time and are not in the log. Only the
/// answer to a plugin's question is awaited.
async fn give_up_iterations(worker: &mut Worker) -> Result<(), ResumeError> {
    let is_idle = |path: &&Path| {
        preparing(worker, path).is_some_and(|iteration| !worker.is_in_flight(&path.iteration(iteration)))
    };
    let paths: Vec<Path> = worker.flights.keys().filter(is_idle).cloned().collect();
    for path in &paths {
        worker.drop_flight(path);
    }
    record_held(worker).await?;
    record_drafted(worker).await
}

/// Returns how long effects in flight may still take when the runner releases its runs.
fn grace(worker: &mut Worker) -> Duration {
    let now = tokio::time::Instant::now();
    let grace = worker.shared.runner.settings.release_grace;
    // `None` stands for a time beyond the clock's range.
    let Some(end) = worker.leaves_at.or_else(|| now.checked_add(grace)) else { return Duration::MAX };
    worker.leaves_at = Some(end);
    end.saturating_duration_since(now)
}

/// Aborts the effects in flight, as a crash does; outcomes that have arrived are recorded.
async fn abandon(worker: &mut Worker) -> Result<(), ResumeError> {
    for (path, flight) in std::mem::take(&mut worker.flights) {
        tracing::warn!(run = %worker.shared.run, %path, "abandoned: it did not end in time");
        flight.task.abort();
    }
    record_held(worker).await?;
    record_drafted(worker).await
}

/// Waits for a report, for another writer's append, or for the next due time. Returns `false` after `linger`
/// without any.
async fn wait(worker: &mut Worker, wake: Option<Timestamp>, linger: Duration) -> Result<bool, ResumeError> {
    let (shared, lease) = (Arc::clone(&worker.shared), Arc::clone(&worker.lease));
    tokio::select! {
        biased;
        Some(report) = worker.incoming.recv() => take_all(worker, report).await?,
        () = lease.lost() => return Err(lost(&lease)),
        () = shared.bell.notified() => Box::pin(worker.catch_up()).await?,
        Ok(()) = worker.leaves.changed() => {}
        () = sleep_until(&*shared.runner.clock, wake) => {}
        () = sleep(linger) => return Ok(false),
    }
    if worker.state.has_ended() {
        for (_, flight) in std::mem::take(&mut worker.flights) {
            flight.task.abort();
        }
    }
    Ok(true)
}

/// Records a report together with those that have arrived after it. There is one call of `take`, since each adds its future to the
/// task of the run.
async fn take_all(worker: &mut Worker, first: Box<Report>) -> Result<(), ResumeError> {
    let (mut next, mut count) = (Some(first), 0);
    while let Some(report) = next {
        take(worker, report).await?;
        count += 1;
        let waits = count < TOGETHER && !worker.incoming.is_empty() && !worker.draft.is_full();
        next = if waits { worker.incoming.try_recv().ok() } else { None };
    }
    record_drafted(worker).await
}

async fn take(worker: &mut Worker, report: Box<Report>) -> Result<(), ResumeError> {
    let is_awaited = |path: &Path| worker.flights.get(path).is_none_or(|flight| flight.awaited);
    if let Some(report) = worker.held.pass(report, is_awaited) {
        record(worker, report).await?;
    }
    // A settled question may have stopped the last effect that lockstep waits for.
    if worker.held.is_empty() { Ok(()) } else { Box::pin(record_held(worker)).await }
}

/// Records the outcomes held back in lockstep, once no awaited effect is in flight.
async fn record_held(worker: &mut Worker) -> Result<(), ResumeError> {
    let awaited = worker.flights.iter().filter(|(_, flight)| flight.awaited).map(|(path, _)| path);
    for report in worker.held.take_complete(awaited) {
        if worker.draft.is_full() {
            record_drafted(worker).await?;
        }
        record(worker, Box::new(report)).await?;
    }
    Ok(())
}

/// Appends what reports have added to the draft.
async fn record_drafted(worker: &mut Worker) -> Result<(), ResumeError> {
    worker.commit().await?;
    worker.unrecorded.clear();
    start_announced(worker);
    if worker.mail_unread {
        // The webhook may have arrived before. After a crash right here, the next worker reads the mailbox.
        Box::pin(take_early_webhooks(worker)).await?;
    }
    Ok(())
}

/// Adds a report's events to the draft. The reply to a question or a value is sent when its event is in the log.
async fn record(worker: &mut Worker, report: Box<Report>) -> Result<(), ResumeError> {
    match *report {
        Report::Output { path, id, output } => {
            let new_events = vec![NewEvent::new(path.clone(), EventKind::LoopOutput { id, output })];
            worker.draft_outcome(&path, new_events)?;
        }
        Report::Question { path, question, reply, turn } => {
            let answering = async {
                record_drafted(worker).await?;
                answer_question(worker, path, question, reply, turn).await
            };
            Box::pin(answering).await?;
            start_announced(worker);
        }
        Report::Value { path, name, value, reply, turn } => {
            let recording = async {
                record_drafted(worker).await?;
                keep_value(worker, &path, name, value, reply).await
            };
            Box::pin(recording).await?;
            drop(turn);
            start_announced(worker);
        }
        Report::Child { path, child, reply } => {
            let recording = async {
                record_drafted(worker).await?;
                record_child(worker, &path, child, reply).await
            };
            Box::pin(recording).await?;
            start_announced(worker);
        }
        Report::Done { path, outcome } => {
            worker.flights.remove(&path);
            worker.unrecorded.push(path.clone());
            // What has asked the question goes on under its own path, which can be that of the question.
            let is_question = matches!(outcome, report::EffectOutcome::Question { .. });
            record_outcome(worker, &path, outcome).await?;
            if !is_question && !worker.is_in_flight(&path) {
                worker.used_answers.remove(&path);
                worker.link.forget(&path);
            }
        }
    }
    Ok(())
}
