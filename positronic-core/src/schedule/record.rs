//! The stored record of a schedule, and every decision about it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::catch_up::catch_up;
use super::due::{MOST_DUE, due, jitter, latest};
use super::policy::{CatchUp, Overlap, Schedule};
use super::spec::SpecError;
use super::tick::{Tick, TickOutcome, TickReason};
use super::times::Times;
use crate::record::skip::is_default;
use crate::record::{RunId, Scheduled, TickCause, Timestamp};

/// The most ticks that wait for an earlier run.
pub const MOST_QUEUED: usize = 100;
/// The most runs whose end is awaited; with [`Overlap::Allow`] there may be more.
const MOST_RUNNING: usize = 100;

/// What a store has of a schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScheduleRecord {
    /// Its id.
    pub id: String,
    /// Counts the changes by people: 1 when it is created, more with each change, pause and resumption.
    pub version: u64,
    /// What a person has set.
    pub schedule: Schedule,
    /// When it was created.
    pub created: Timestamp,
    /// Why it starts no runs at its times now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<PausedSchedule>,
    /// Why its last run could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<BrokenSchedule>,
    /// All nominal times up to this one are decided.
    pub decided: Timestamp,
    /// The next nominal time; `None` if there is none, or while it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// The ticks that have not started their run yet, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<QueuedTick>,
    /// The started runs that had not ended when a server last looked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<StartedTick>,
    /// How many of the last runs have failed in a row.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failures: u32,
    /// When a server must look at it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) look: Option<Timestamp>,
    /// Grows with each change. It begins with the time of creation, so that it also grows when a schedule is removed
    /// and created again.
    pub(crate) changes: u64,
    /// The ticks of the last change, which may not be in the list of ticks yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unlisted: Vec<Tick>,
}

/// A pause of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PausedSchedule {
    /// When it was paused.
    pub at: Timestamp,
    /// Who has paused it; `None` if failed runs did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why a schedule could not start its last run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BrokenSchedule {
    /// When a server last tried.
    pub at: Timestamp,
    /// The error.
    pub reason: String,
}

/// A tick that has not started its run yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueuedTick {
    /// The nominal time.
    pub nominal: Timestamp,
    /// The cause.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cause: TickCause,
    /// What it does while an earlier run has not ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub overlap: Overlap,
    /// Since when no earlier run is in its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Timestamp>,
}

/// A tick whose run has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StartedTick {
    /// The nominal time.
    pub nominal: Timestamp,
    /// The run.
    pub run: RunId,
}

/// How a run of a schedule ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunEnd {
    /// It completed.
    Completed,
    /// It failed.
    Failed,
    /// It was cancelled, or removed.
    Cancelled,
}

/// What a store knows of the runs and ticks of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observed {
    /// Which of the runs in [`ScheduleRecord::running`] have ended, and how.
    pub ended: BTreeMap<RunId, RunEnd>,
    /// Which ticks in [`ScheduleRecord::queue`] have a run, because a server crashed before it noted the start.
    pub begun: Vec<Scheduled>,
    /// The nominal times that have a tick.
    pub known: BTreeSet<Timestamp>,
}

/// The reason why a range of past times is not filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackfillError {
    /// The range has too many times, together with the ticks that wait already.
    #[error("the range has more than {most} times that may wait at once; fill in a smaller range")]
    TooMany {
        /// How many more ticks may wait.
        most: usize,
    },
    /// The range has no time that has not started a run.
    #[error("the range has no time in the past that has not started a run")]
    Nothing,
    /// The specification is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl ScheduleRecord {
    /// Creates the record of a new schedule. Only times after `now` count.
    ///
    /// # Errors
    ///
    /// [`SpecError`], also if no time is in the future.
    pub fn new(id: impl Into<String>, schedule: Schedule, now: Timestamp) -> Result<Self, SpecError> {
        let mut new = Self {
            id: id.into(),
            version: 1,
            schedule,
            created: now,
            paused: None,
            broken: None,
            decided: now,
            next: None,
            queue: Vec::new(),
            running: Vec::new(),
            failures: 0,
            look: None,
            changes: u64::try_from(now.0).unwrap_or_default(),
            unlisted: Vec::new(),
        };
        new.plan(now)?;
        new.next.map(|_| new).ok_or(SpecError::Over)
    }

    /// Begins a change: forgets the ticks of the last one, which are in the list of ticks by now.
    pub(crate) fn begin_change(&mut self) {
        self.changes += 1;
        self.unlisted.clear();
    }

    /// Decides what is due at `now`: which ticks start a run, wait, are skipped or missed.
    ///
    /// # Errors
    ///
    /// [`SpecError`] if the specification is invalid.
    pub fn advance(&mut self, now: Timestamp, observed: &Observed) -> Result<(), SpecError> {
        self.observe(now, observed)?;
        if self.paused.is_none() {
            // The clock went back: the times between have ticks already.
            self.decided = self.decided.min(now);
            let due = due(&self.id, &self.schedule.when, self.decided, now)?;
            if let Some((since, until)) = due.unlisted {
                self.record_unlisted(since, until, &TickReason::Late { error: None }, now);
            }
            self.decided = due.last().unwrap_or(self.decided);
            let is_new = |time: &Timestamp| {
                !observed.known.contains(time) && !self.queue.iter().any(|tick| tick.is(*time, TickCause::Scheduled))
            };
            let new: Vec<_> = due.times.into_iter().filter(is_new).collect();
            self.expire(now);
            self.decide(&new, now);
        }
        self.plan(now)
    }

    /// Notes which runs have begun and ended.
    pub(crate) fn observe(&mut self, now: Timestamp, observed: &Observed) -> Result<(), SpecError> {
        for tick in &observed.begun {
            self.started(tick, now)?;
        }
        self.note_ends(now, &observed.ended);
        Ok(())
    }

    /// Removes ended runs, and pauses the schedule after too many failures.
    fn note_ends(&mut self, now: Timestamp, ended: &BTreeMap<RunId, RunEnd>) {
        let (over, running) =
            std::mem::take(&mut self.running).into_iter().partition(|tick: &StartedTick| ended.contains_key(&tick.run));
        self.running = running;
        for StartedTick { run, .. } in Vec::<StartedTick>::from_iter(over) {
            match ended.get(&run) {
                Some(RunEnd::Completed) => self.failures = 0,
                Some(RunEnd::Failed) => self.failures = self.failures.saturating_add(1),
                Some(RunEnd::Cancelled) | None => continue,
            }
            if let Some(most) = self.schedule.pause_on_failure
                && self.failures >= most.max(1)
                && self.paused.is_none()
            {
                let reason = match self.failures {
                    1 => format!("the run {run} has failed"),
                    failures => format!("{failures} runs in a row have failed, the last one is {run}"),
                };
                self.begin_pause(PausedSchedule { at: now, by: None, reason: Some(reason) });
            }
        }
    }

    /// Decides new ticks of the schedule's own times.
    fn decide(&mut self, new: &[Timestamp], now: Timestamp) {
        let mut starts = Timestamp(i64::MIN);
        let due: Vec<_> = new
            .iter()
            .map(|nominal| {
                starts = starts.max(nominal.after(jitter(&self.id, *nominal, self.schedule.when.jitter)));
                (*nominal, starts)
            })
            .collect();
        let (starting, missed) = catch_up(self.schedule.catch_up, &due, now);
        for (nominal, reason) in missed {
            self.record(nominal, TickCause::Scheduled, now, TickOutcome::Missed { reason });
        }
        for nominal in starting {
            self.replace_unstarted(nominal, now);
            self.enqueue(nominal, TickCause::Scheduled, self.schedule.overlap, now);
        }
    }

    /// Lets a tick start, wait or be skipped.
    fn enqueue(&mut self, nominal: Timestamp, cause: TickCause, overlap: Overlap, now: Timestamp) -> Tick {
        let is_busy = !self.running.is_empty() || !self.queue.is_empty();
        // The first tick of the queue does not wait if no run is in its way.
        let waiting = self.queue.len().saturating_sub(usize::from(self.running.is_empty()));
        let skipped = match overlap {
            Overlap::Skip if is_busy => Some(self.running_reason()),
            Overlap::BufferOne if is_busy && waiting >= 1 => Some(TickReason::BufferFull),
            Overlap::BufferAll if is_busy && waiting >= MOST_QUEUED => Some(TickReason::BufferFull),
            Overlap::CancelOther => {
                let reason = TickReason::Replaced { by: nominal };
                self.empty_queue(
                    now,
                    |tick| tick.overlap == Overlap::CancelOther,
                    |_| TickOutcome::Skipped { reason: reason.clone() },
                );
                None
            }
            Overlap::Skip | Overlap::BufferOne | Overlap::BufferAll | Overlap::Allow => None,
        };
        if let Some(reason) = skipped {
            return self.record(nominal, cause, now, TickOutcome::Skipped { reason });
        }
        self.queue.push(QueuedTick { nominal, cause, overlap, ready: None });
        let outcome = if self.is_ready(self.queue.len() - 1) { TickOutcome::Due } else { TickOutcome::Buffered };
        self.record(nominal, cause, now, outcome)
    }

    fn running_reason(&self) -> TickReason {
        TickReason::Running { run: self.running.last().map(|tick| tick.run.clone()) }
    }

    /// Returns whether a queued tick may start now.
    fn is_ready(&self, place: usize) -> bool {
        let waits = |tick: &QueuedTick| tick.overlap != Overlap::Allow;
        self.queue
            .get(place)
            .is_some_and(|tick| !waits(tick) || (self.running.is_empty() && !self.queue.iter().take(place).any(waits)))
    }

    /// Removes ticks that no server could start, in favour of a later one, unless each of them is to be caught up.
    fn replace_unstarted(&mut self, by: Timestamp, now: Timestamp) {
        if matches!(self.schedule.catch_up, CatchUp::All { .. }) {
            return;
        }
        let is_unstarted = |tick: &QueuedTick| {
            tick.cause == TickCause::Scheduled && tick.ready.is_some_and(|ready| now.since(ready) > CatchUp::ON_TIME)
        };
        let reason = TickReason::Replaced { by };
        self.empty_queue(now, is_unstarted, |_| TickOutcome::Missed { reason: reason.clone() });
    }

    /// Removes ticks that no server has started in time.
    fn expire(&mut self, now: Timestamp) {
        let within = self.schedule.catch_up.within();
        let error = self.broken.as_ref().map(|broken| broken.reason.clone());
        let is_late = |tick: &QueuedTick| {
            tick.cause == TickCause::Scheduled && tick.ready.is_some_and(|ready| now.since(ready) > within)
        };
        self.empty_queue(now, is_late, |_| TickOutcome::Missed { reason: TickReason::Late { error: error.clone() } });
    }

    /// Removes ticks from the queue and records what became of them.
    fn empty_queue(
        &mut self,
        now: Timestamp,
        removed: impl Fn(&QueuedTick) -> bool,
        outcome: impl Fn(&QueuedTick) -> TickOutcome,
    ) {
        let (gone, queue): (Vec<_>, Vec<_>) = std::mem::take(&mut self.queue).into_iter().partition(removed);
        self.queue = queue;
        for tick in gone {
            let outcome = outcome(&tick);
            self.record(tick.nominal, tick.cause, now, outcome);
        }
    }

    fn record(&mut self, nominal: Timestamp, cause: TickCause, now: Timestamp, outcome: TickOutcome) -> Tick {
        let tick = Tick { nominal, cause, at: now, outcome, since: None, change: self.changes };
        self.unlisted.retain(|other| other.key() != tick.key());
        self.unlisted.push(tick.clone());
        tick
    }

    fn record_unlisted(&mut self, since: Timestamp, until: Timestamp, reason: &TickReason, now: Timestamp) {
        self.record(until, TickCause::Scheduled, now, TickOutcome::Missed { reason: reason.clone() });
        if let Some(tick) = self.unlisted.last_mut() {
            tick.since = Some(since);
        }
    }

    /// Computes the next time, and when a server must look again.
    fn plan(&mut self, now: Timestamp) -> Result<(), SpecError> {
        let next = Times::of(&self.schedule.when)?.next(self.decided);
        self.next = next.filter(|_| self.paused.is_none());
        for place in 0..self.queue.len() {
            let ready = self.is_ready(place);
            if let Some(tick) = self.queue.get_mut(place) {
                tick.ready = if ready { tick.ready.or(Some(now)) } else { None };
            }
        }
        let starts = self.next.map(|next| next.after(jitter(&self.id, next, self.schedule.when.jitter)));
        let awaits = !self.queue.is_empty() || (self.schedule.pause_on_failure.is_some() && !self.running.is_empty());
        self.look = match self.look {
            // A look that is due stays where it is, so that looking changes nothing while runs go on.
            Some(look) if awaits && look <= now => Some(look),
            _ if awaits => Some(now),
            _ => starts,
        };
        Ok(())
    }

    /// Returns the ticks whose runs may start now.
    pub fn ready(&self) -> impl Iterator<Item = Scheduled> {
        let ready = self.queue.iter().filter(|tick| tick.ready.is_some());
        ready.map(|QueuedTick { nominal, cause, .. }| Scheduled {
            schedule: self.id.clone(),
            nominal: *nominal,
            cause: *cause,
        })
    }

    /// Returns the runs that a waiting tick cancels.
    pub fn cancels(&self) -> impl Iterator<Item = &RunId> {
        let cancels = self.queue.iter().any(|tick| tick.overlap == Overlap::CancelOther);
        self.running.iter().filter(move |_| cancels).map(|tick| &tick.run)
    }

    /// Notes that a tick has started its run. Returns `false` if that is known.
    ///
    /// # Errors
    ///
    /// [`SpecError`] if the specification is invalid.
    pub fn started(&mut self, tick: &Scheduled, now: Timestamp) -> Result<bool, SpecError> {
        let Some(place) = self.queue.iter().position(|queued| queued.is(tick.nominal, tick.cause)) else {
            return Ok(false);
        };
        self.queue.remove(place);
        let run = tick.run();
        self.running.push(StartedTick { nominal: tick.nominal, run: run.clone() });
        self.running.drain(..self.running.len().saturating_sub(MOST_RUNNING));
        self.broken = None;
        self.record(tick.nominal, tick.cause, now, TickOutcome::Started { run });
        self.plan(now)?;
        Ok(true)
    }

    /// Notes that a tick could not start its run. The tick waits for a server that can, as long as the catch-up allows.
    /// Returns `false` if that is known.
    pub fn failed_to_start(&mut self, reason: &str, now: Timestamp) -> bool {
        let is_known = self.broken.as_ref().is_some_and(|broken| broken.reason == reason);
        if !is_known {
            self.broken = Some(BrokenSchedule { at: now, reason: reason.to_owned() });
        }
        !is_known
    }

    /// Replaces what a person has set. If the times change, only those after `now` count.
    ///
    /// # Errors
    ///
    /// [`SpecError`], also if the times change and none is in the future.
    pub fn set(&mut self, schedule: Schedule, now: Timestamp) -> Result<(), SpecError> {
        let changes = self.schedule.when != schedule.when;
        if changes {
            let times = Times::of(&schedule.when)?;
            times.next(now).ok_or(SpecError::Over)?;
            let reason = if self.paused.is_some() { TickReason::Paused } else { TickReason::Changed };
            self.skip_until(now, &reason)?;
            self.drop_scheduled(now, &TickReason::Changed);
        }
        self.schedule = schedule;
        self.broken = None;
        self.version += 1;
        self.look = None;
        self.plan(now)
    }

    /// Records all undecided times up to now as missed.
    fn skip_until(&mut self, now: Timestamp, reason: &TickReason) -> Result<(), SpecError> {
        let (unlisted, times) = latest(&Times::of(&self.schedule.when)?, self.decided.min(now), now);
        if let Some((since, until)) = unlisted {
            self.record_unlisted(since, until, reason, now);
        }
        for nominal in times {
            self.record(nominal, TickCause::Scheduled, now, TickOutcome::Missed { reason: reason.clone() });
        }
        self.decided = now;
        Ok(())
    }

    fn drop_scheduled(&mut self, now: Timestamp, reason: &TickReason) {
        let is_scheduled = |tick: &QueuedTick| tick.cause == TickCause::Scheduled;
        self.empty_queue(now, is_scheduled, |_| TickOutcome::Missed { reason: reason.clone() });
    }

    /// Pauses it: none of its times starts a run. Returns `false` if it is paused.
    ///
    /// # Errors
    ///
    /// [`SpecError`] if the specification is invalid.
    pub fn pause(&mut self, now: Timestamp, by: Option<String>, reason: Option<String>) -> Result<bool, SpecError> {
        if self.paused.is_some() {
            return Ok(false);
        }
        self.skip_until(now, &TickReason::Paused)?;
        self.begin_pause(PausedSchedule { at: now, by, reason });
        self.version += 1;
        self.plan(now)?;
        Ok(true)
    }

    fn begin_pause(&mut self, pause: PausedSchedule) {
        self.drop_scheduled(pause.at, &TickReason::Paused);
        self.look = None;
        self.paused = Some(pause);
    }

    /// Ends a pause. The times during the pause are missed. Returns `false` if it is not paused.
    ///
    /// # Errors
    ///
    /// [`SpecError`] if the specification is invalid.
    pub fn resume(&mut self, now: Timestamp) -> Result<bool, SpecError> {
        if self.paused.is_none() {
            return Ok(false);
        }
        self.skip_until(now, &TickReason::Paused)?;
        self.paused = None;
        self.failures = 0;
        self.version += 1;
        self.plan(now)?;
        Ok(true)
    }

    /// Adds a tick at a person's request, also while the schedule is paused. `nominal` is the time of the request, or
    /// slightly later if that has a tick.
    ///
    /// # Errors
    ///
    /// [`SpecError`] if the specification is invalid.
    pub fn trigger(&mut self, nominal: Timestamp, overlap: Option<Overlap>, now: Timestamp) -> Result<Tick, SpecError> {
        let outcome = self.enqueue(nominal, TickCause::Manual, overlap.unwrap_or(self.schedule.overlap), now);
        self.plan(now)?;
        Ok(outcome)
    }

    /// Returns the nominal times in a range of the past, both ends included.
    ///
    /// # Errors
    ///
    /// [`BackfillError`].
    pub fn past_times(
        &self,
        from: Timestamp,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, BackfillError> {
        let after = Timestamp(from.0.saturating_sub(1));
        let times = Times::of(&self.schedule.when)?.between(after, until.min(now), MOST_DUE);
        times.ok_or(BackfillError::TooMany { most: MOST_QUEUED })
    }

    /// Adds ticks for times of the past, except those that wait already.
    ///
    /// # Errors
    ///
    /// [`BackfillError`]; nothing is changed then.
    pub fn backfill(&mut self, times: &[Timestamp], overlap: Overlap, now: Timestamp) -> Result<(), BackfillError> {
        let waits = |time: &&Timestamp| !self.queue.iter().any(|tick| tick.is(**time, TickCause::Scheduled));
        let new: Vec<Timestamp> = times.iter().filter(waits).copied().collect();
        let most = MOST_QUEUED.saturating_sub(self.queue.len());
        if new.is_empty() {
            return Err(BackfillError::Nothing);
        }
        if new.len() > most {
            return Err(BackfillError::TooMany { most });
        }
        for nominal in new {
            self.enqueue(nominal, TickCause::Backfill, overlap, now);
        }
        Ok(self.plan(now)?)
    }
}

impl QueuedTick {
    /// Returns whether it is the tick of a nominal time. A time that is filled in is the same tick.
    fn is(&self, nominal: Timestamp, cause: TickCause) -> bool {
        let is_manual = |cause| cause == TickCause::Manual;
        self.nominal == nominal && is_manual(self.cause) == is_manual(cause)
    }
}
