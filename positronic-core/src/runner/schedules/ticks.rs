//! What a server does with schedules: it decides what is due, and starts the runs of ticks.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::BoxFuture;
use serde_json::Value;

use super::{ScheduleError, Schedules};
use crate::record::{
    Actor, EventKind, RunId, Scheduled, Seq, Signal, SignalId, SignalKind, Start, Status, TickCause, Timer, Timestamp,
    Trigger, TriggerId, UserMessage,
};
use crate::runner::serve::triggers::may_retry;
use crate::runner::worker::load;
use crate::runner::{ConversationError, FireError, Firing, RunHandle, Runner, SignalError, StartError};
use crate::schedule::{Observed, ScheduleRecord, time_key};
use crate::store::{EventStore, StoreError};

/// Who starts and cancels runs of a schedule.
const CHANNEL: &str = "schedule";

impl Schedules {
    /// Decides what is due now, and returns the ticks whose runs are to be started, as timers for
    /// [`Runner::fire`]. A server of the store calls this once a second.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the schedules cannot be listed. One that cannot be read is logged.
    pub async fn due(&self) -> Result<Vec<Timer>, StoreError> {
        let mut timers = Vec::new();
        for (time, id) in self.due_checks(self.client.now()).await? {
            match self.check(&id).await {
                Ok(Some((record, due))) => {
                    timers.extend(due);
                    if record.next_check.map(time_key).as_ref() != Some(&time) {
                        self.remove_check(&time, &id).await?;
                    }
                }
                Ok(None) => self.remove_check(&time, &id).await?,
                Err(error) => self.note_unevaluated(&id, error).await,
            }
        }
        Ok(timers)
    }

    /// As [`Schedules::due`], but reads every schedule. A server calls this first and then once a minute, to notice
    /// a clock that went back, and what a crashed process did not note.
    ///
    /// # Errors
    ///
    /// As [`Schedules::due`].
    pub async fn due_of_all(&self) -> Result<Vec<Timer>, StoreError> {
        let mut timers = Vec::new();
        let now = self.client.now();
        for (id, record) in self.records().await? {
            let checked = match record {
                Ok(record) if is_quiet(&record, now) => continue,
                Ok(_) => self.check(&id).await,
                Err(error) => Err(error.into()),
            };
            match checked {
                Ok(checked) => timers.extend(checked.into_iter().flat_map(|(_, due)| due)),
                Err(error) => self.note_unevaluated(&id, error).await,
            }
        }
        Ok(timers)
    }

    /// Notes in a schedule why its times cannot be computed, and logs it once.
    async fn note_unevaluated(&self, id: &str, error: ScheduleError) {
        let is_known = match &error {
            ScheduleError::Spec(reason) => {
                let noted = self.change(id, |record, now| Ok(record.failed_to_evaluate(reason, now))).await;
                noted.is_ok_and(|(_, is_new)| !is_new)
            }
            _ => false,
        };
        if !is_known {
            tracing::warn!(schedule = %id, %error, "cannot evaluate the schedule");
        }
    }

    /// Decides what is due in a schedule. Returns its record, and the ticks whose runs are to be started.
    async fn check(&self, id: &str) -> Result<Option<(ScheduleRecord, Vec<Timer>)>, ScheduleError> {
        let record = loop {
            let mut change = match self.begin(id).await {
                Err(ScheduleError::NotFound { .. }) => return Ok(None),
                begun => begun?,
            };
            let known = self.known(&change.before, change.now).await?;
            let observed = Observed { known, ..self.observe(&change.before).await? };
            let unchanged = change.new.clone();
            change.new.advance(change.now, &observed)?;
            if change.new == unchanged {
                break change.before;
            }
            if self.commit(&change).await? {
                break change.new;
            }
        };
        self.cancel_others(&record).await?;
        let timers = record.ready().map(|tick| timer(&record, tick)).collect();
        Ok(Some((record, timers)))
    }

    /// Returns what the store knows of the runs of a schedule.
    pub(super) async fn observe(&self, record: &ScheduleRecord) -> Result<Observed, StoreError> {
        let begun = self.begun(record).await?;
        let running = record.running.iter().map(|tick| tick.run.clone());
        let ended = self.ended(running.chain(begun.iter().map(Scheduled::run)).collect()).await?;
        Ok(Observed { ended, begun, ..Observed::default() })
    }

    /// Returns which runs have ended, and how.
    async fn ended(&self, runs: Vec<RunId>) -> Result<BTreeMap<RunId, Status>, StoreError> {
        let mut ended = BTreeMap::new();
        for run in runs {
            let end = match self.client.store().run(&run).await {
                Ok(row) if row.status.is_over() => row.status,
                Ok(_) => continue,
                Err(StoreError::NoSuchRun { .. }) => Status::Cancelled,
                Err(error) => return Err(error),
            };
            ended.insert(run, end);
        }
        Ok(ended)
    }

    /// Returns which ready ticks of a schedule have a run already.
    async fn begun(&self, record: &ScheduleRecord) -> Result<Vec<Scheduled>, StoreError> {
        let mut begun = Vec::new();
        for tick in record.ready() {
            if is_run_of(self.client.store(), &tick).await? {
                begun.push(tick);
            }
        }
        Ok(begun)
    }

    /// Returns the nominal times after the last decided one that have a tick: times that were filled in, and after the clock went
    /// back all of them that have a run. What was skipped or missed while the clock was ahead is decided when its time comes.
    async fn known(&self, record: &ScheduleRecord, now: Timestamp) -> Result<BTreeSet<Timestamp>, StoreError> {
        let from = record.decided.min(now);
        if record.decided <= now && record.next.is_none_or(|next| next > now) {
            return Ok(BTreeSet::new());
        }
        let ticks = self.ticks_between(record, from, Timestamp(i64::MAX)).await?;
        let own = ticks.into_values().filter(|tick| tick.cause != TickCause::Manual && !tick.is_premature(now));
        Ok(own.map(|tick| tick.nominal).collect())
    }

    /// Cancels the runs in the way of a tick that does not wait for them.
    async fn cancel_others(&self, record: &ScheduleRecord) -> Result<(), StoreError> {
        for run in record.cancels() {
            let actor = Actor::builder().channel(CHANNEL).build();
            let reason = Some(format!("the next run of the schedule `{}` is due", record.id));
            // Each check sends the same signal, which counts once.
            let id = SignalId::of_engine(&format!("cancelled-by-schedule:{run}"));
            match self.client.send(run, Signal { id, actor, kind: SignalKind::Cancel { reason } }).await {
                Ok(_) | Err(SignalError::Refused(_) | SignalError::Store(StoreError::NoSuchRun { .. })) => {}
                Err(SignalError::Store(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Notes that a tick has started its run. Returns `false` if that is known.
    async fn note_started(&self, tick: &Scheduled) -> Result<bool, ScheduleError> {
        match self.change(&tick.schedule, |record, now| record.started(tick, now)).await {
            Ok((_, noted)) => Ok(noted),
            Err(ScheduleError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Notes why a tick could not start its run. It stays due.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn note_broken(&self, tick: &Scheduled, reason: &str) -> Result<(), StoreError> {
        match self.change(&tick.schedule, |record, now| Ok(record.failed_to_start(reason, now))).await {
            Err(ScheduleError::Store(error)) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Returns whether a check of a schedule would change nothing.
fn is_quiet(record: &ScheduleRecord, now: Timestamp) -> bool {
    let is_noted = record.broken.as_ref().is_some_and(|broken| broken.times);
    let is_invalid = record.schedule.when.check().is_err();
    is_invalid == is_noted
        && (is_invalid || (record.next_check.is_none_or(|check| check > now) && record.decided <= now))
}

/// Returns the timer of a tick. It is not stored: the schedule's record is.
fn timer(record: &ScheduleRecord, tick: Scheduled) -> Timer {
    let (run, schedule) = (tick.run(), &record.schedule);
    let what = schedule.message.clone().unwrap_or_default();
    Timer {
        trigger: Trigger::once(TriggerId::new(run.as_str()), what, tick.nominal),
        brain: schedule.brain.as_str().into(),
        options: schedule.options.clone(),
        user: schedule.user.clone(),
        conversation: None,
        budget: schedule.budget.clone(),
        origin: run,
        starter: None,
        fired: 0,
        scheduled: Some(Box::new(tick)),
    }
}

/// Starts the run of a schedule's tick. Its id consists of the schedule and the nominal time, so only one append
/// begins it.
///
/// The future is boxed here, so that firing a trigger needs no more of the stack.
pub(in crate::runner) fn fire<'a>(
    runner: &'a Runner,
    timer: &'a Timer,
    tick: &'a Scheduled,
) -> BoxFuture<'a, Result<RunHandle<Value>, FireError>> {
    Box::pin(fire_now(runner, timer, tick))
}

async fn fire_now(runner: &Runner, timer: &Timer, tick: &Scheduled) -> Result<RunHandle<Value>, FireError> {
    let schedules = runner.client().schedules();
    let failed = |reason: ConversationError| FireError::Start { firing: Firing::of(timer), reason: Box::new(reason) };
    match start_tick(runner, timer, tick).await {
        Ok(run) => {
            if let Err(error) = schedules.note_started(tick).await {
                // The next check finds the run.
                tracing::warn!(%error, "cannot record the start of a scheduled run");
            }
            // Of servers that start the same run at once, one has begun it.
            match has_begun(runner, run.id()).await {
                Ok(false) => Err(FireError::Gone { firing: Firing::of(timer) }),
                Ok(true) | Err(_) => Ok(run),
            }
        }
        Err(FireError::Gone { firing }) => match schedules.note_started(tick).await {
            Ok(_) => Err(FireError::Gone { firing }),
            Err(ScheduleError::Store(error)) => Err(failed(ConversationError::Store(error))),
            Err(error) => {
                tracing::warn!(%error, "cannot record the start of a scheduled run");
                Err(FireError::Gone { firing })
            }
        },
        Err(error) => {
            if !may_retry(&error) {
                schedules.note_broken(tick, &reason(&error)).await.map_err(|error| failed(error.into()))?;
            }
            Err(error)
        }
    }
}

/// Returns whether a runner made the first claim of a run.
async fn has_begun(runner: &Runner, run: &RunId) -> Result<bool, StoreError> {
    let claim = runner.store.read(run, Seq(1), 1).await?;
    let lease = runner.lease().await?;
    Ok(claim.first().is_some_and(|event| match &event.kind {
        EventKind::RunClaimed { owner, .. } => owner == lease.owner(),
        _ => false,
    }))
}

async fn start_tick(runner: &Runner, timer: &Timer, tick: &Scheduled) -> Result<RunHandle<Value>, FireError> {
    let firing = || Firing::of(timer);
    let failed =
        |error: StartError| FireError::Start { firing: firing(), reason: Box::new(ConversationError::Start(error)) };
    // Another server has started it, or this one before it crashed.
    if is_run_of(&*runner.store, tick).await.map_err(|error| failed(error.into()))? {
        return Err(FireError::Gone { firing: firing() });
    }
    let definition = runner
        .definition_of(&timer.brain)
        .ok_or_else(|| FireError::NoBrain { firing: firing(), brain: timer.brain.to_string() })?;
    let record = runner.client().schedules().get(&tick.schedule).await.map_err(|error| failed(error.into()))?;
    let by = record.as_ref().and_then(|record| record.starter(tick)).map(str::to_owned);
    let start = Start {
        id: Some(SignalId::new(tick.run().as_str())),
        user: timer.user.clone(),
        actor: Actor { by, ..Actor::builder().channel(CHANNEL).build() },
        message: Some(&timer.trigger.what).filter(|what| !what.is_empty()).map(UserMessage::new),
        budget: timer.budget.as_deref().cloned(),
        scheduled: Some(tick.clone()),
        ..Start::default()
    };
    match runner.start_definition(definition, timer.options.clone(), start).await {
        // Another server began it meanwhile, with what the schedule said before or says now.
        Err(error @ StartError::Started { .. }) => match is_run_of(&*runner.store, tick).await {
            Ok(true) => Err(FireError::Gone { firing: firing() }),
            Ok(false) | Err(_) => Err(failed(error)),
        },
        started => started.map_err(failed),
    }
}

/// Returns whether a tick has a run.
async fn is_run_of(store: &dyn EventStore, tick: &Scheduled) -> Result<bool, StoreError> {
    let run = tick.run();
    match store.run(&run).await {
        Ok(_) => {}
        Err(StoreError::NoSuchRun { .. }) => return Ok(false),
        Err(error) => return Err(error),
    }
    let state = load::state(store, &run).await?;
    let same = |started: &Scheduled| (&started.schedule, started.nominal) == (&tick.schedule, tick.nominal);
    Ok(state.start.scheduled.as_ref().is_some_and(same))
}

/// Returns the error of a start without its trigger, which is named after the tick.
fn reason(error: &FireError) -> String {
    match error {
        FireError::NoBrain { brain, .. } => format!("no server knows the brain `{brain}`"),
        FireError::Start { reason, .. } => reason.to_string(),
        error => error.to_string(),
    }
}
