//! What people change in a schedule's record.

use super::due::{MAX_DUE, latest};
use super::next_time::Times;
use super::policy::{Overlap, Schedule};
use super::record::ScheduleRecord;
use super::spec::SpecError;
use super::state::{BackfillError, MAX_QUEUED, PausedSchedule, QueuedTick};
use super::tick_outcome::{Tick, TickOutcome, TickReason};
use crate::record::{TickCause, Timestamp};

impl ScheduleRecord {
    /// Replaces what a person has set. If the times change, only those after `now` count.
    ///
    /// # Errors
    ///
    /// [`SpecError`], also if the times change and none is in the future.
    pub fn set(&mut self, schedule: Schedule, now: Timestamp) -> Result<(), SpecError> {
        // One that was set while the clock was ahead begins now, too.
        let changes = self.schedule.when != schedule.when || self.since() > now;
        if changes {
            let times = Times::of(&schedule.when)?;
            times.next(now).ok_or(SpecError::Over)?;
            let reason = if self.paused.is_some() { TickReason::Paused } else { TickReason::Changed };
            self.skip_until(now, &reason)?;
            (self.since, self.decided) = (Some(now), now);
            self.drop_scheduled(now, &TickReason::Changed);
        }
        self.schedule = schedule;
        self.broken = None;
        self.version += 1;
        self.next_check = None;
        self.plan(now)
    }

    /// Records all undecided times up to now as missed.
    fn skip_until(&mut self, now: Timestamp, reason: &TickReason) -> Result<(), SpecError> {
        let from = self.decided.min(now).max(self.since());
        let (unlisted, times) = latest(&Times::of(&self.schedule.when)?, from, now);
        if let Some((since, until)) = unlisted {
            self.record_unlisted(since, until, reason, now);
        }
        for nominal in times {
            self.record(nominal, TickCause::Scheduled, now, TickOutcome::Missed { reason: reason.clone() });
        }
        self.decided = now.max(self.since());
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

    pub(super) fn begin_pause(&mut self, pause: PausedSchedule) {
        self.drop_scheduled(pause.at, &TickReason::Paused);
        self.next_check = None;
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
        (self.since, self.decided) = (Some(now), now);
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

    /// Notes who has asked for ticks of a cause that wait to start.
    pub(crate) fn note_asker(&mut self, times: &[Timestamp], cause: TickCause, by: Option<&str>) {
        for tick in self.queue.iter_mut().filter(|tick| tick.cause == cause && times.contains(&tick.nominal)) {
            // A tick that waits already is that of an earlier request.
            tick.by = tick.by.take().or_else(|| by.map(str::to_owned));
        }
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
        let times = Times::of(&self.schedule.when)?.between(after, until.min(now), MAX_DUE);
        times.ok_or(BackfillError::TooMany { most: MAX_QUEUED })
    }

    /// Adds ticks for times of the past, except those that wait already.
    ///
    /// # Errors
    ///
    /// [`BackfillError`]; nothing is changed then.
    pub fn backfill(&mut self, times: &[Timestamp], overlap: Overlap, now: Timestamp) -> Result<(), BackfillError> {
        let waits = |time: &&Timestamp| !self.queue.iter().any(|tick| tick.is(**time, TickCause::Scheduled));
        let new: Vec<Timestamp> = times.iter().filter(waits).copied().collect();
        let most = MAX_QUEUED.saturating_sub(self.queue.len());
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
