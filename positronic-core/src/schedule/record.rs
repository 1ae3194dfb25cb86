//! The stored record of a schedule, and every decision about it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::catch_up::catch_up;
use super::due::{due, jitter};
use super::next_time::Times;
use super::policy::{CatchUp, Overlap, Schedule};
use super::spec::SpecError;
use super::state::{BrokenSchedule, Observed, PausedSchedule, QueuedTick, StartedTick};
use super::tick_outcome::{Tick, TickOutcome, TickReason};
use crate::record::encoding::skip::is_default;
use crate::record::{RunId, Scheduled, Status, TickCause, Timestamp};

/// The most runs whose end is awaited; with [`Overlap::Allow`] there may be more.
const MAX_RUNNING: usize = 100;

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
    /// Who has set it last: the runs of its times are started in this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it was created.
    pub created: Timestamp,
    /// Why it starts no runs at its times now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<PausedSchedule>,
    /// Why it starts no runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<BrokenSchedule>,
    /// Since when its times count: when they were set, or the last pause ended. It never starts a run for an earlier
    /// one, also if the clock goes back. A record without it counts since its creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// All nominal times up to this one are decided.
    pub decided: Timestamp,
    /// The next nominal time; `None` if there is none, or while it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// Later times that have their runs already, because the clock was ahead when they started.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) begun_ahead: BTreeSet<Timestamp>,
    /// The ticks that have not started their run yet, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<QueuedTick>,
    /// The started runs that had not ended at the last check by a server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<StartedTick>,
    /// How many of the last runs have failed in a row.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failures: u32,
    /// When a server must check it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next_check: Option<Timestamp>,
    /// Grows with each change. It begins with the time of creation, so that it also grows when a schedule is removed
    /// and created again.
    pub(crate) changes: u64,
    /// The ticks of the last change, which may not be in the list of ticks yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unlisted: Vec<Tick>,
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
            by: None,
            created: now,
            paused: None,
            broken: None,
            since: Some(now),
            decided: now,
            next: None,
            begun_ahead: BTreeSet::new(),
            queue: Vec::new(),
            running: Vec::new(),
            failures: 0,
            next_check: None,
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
        // Its times can be computed again.
        self.broken.take_if(|broken| broken.times && Times::of(&self.schedule.when).is_ok());
        if self.paused.is_none() {
            // The clock went back: the times between have ticks already, and times before `since` do not count.
            self.decided = self.decided.min(now).max(self.since());
            let due = due(&self.id, &self.schedule.when, self.decided, now)?;
            if let Some((since, until)) = due.unlisted {
                self.record_unlisted(since, until, &TickReason::Late { error: None }, now);
            }
            self.decided = due.last().unwrap_or(self.decided);
            self.begun_ahead.extend(&observed.known);
            self.begun_ahead.retain(|time| *time > self.decided);
            let is_new = |time: &Timestamp| {
                !observed.known.contains(time) && !self.queue.iter().any(|tick| tick.is(*time, TickCause::Scheduled))
            };
            let new: Vec<_> = due.times.into_iter().filter(is_new).collect();
            self.expire(now);
            self.decide(&new, now);
        }
        self.plan(now)
    }

    /// Returns since when its times count.
    pub(super) fn since(&self) -> Timestamp {
        self.since.unwrap_or(self.created)
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
    fn note_ends(&mut self, now: Timestamp, ended: &BTreeMap<RunId, Status>) {
        let (over, running) =
            std::mem::take(&mut self.running).into_iter().partition(|tick: &StartedTick| ended.contains_key(&tick.run));
        self.running = running;
        for StartedTick { run, .. } in Vec::<StartedTick>::from_iter(over) {
            match ended.get(&run) {
                Some(Status::Completed) => self.failures = 0,
                Some(Status::Failed) => self.failures = self.failures.saturating_add(1),
                _ => continue,
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
        let is_late = |(_, starts): &&(Timestamp, Timestamp)| now.since(*starts) > CatchUp::ON_TIME;
        let catches_up = due.iter().filter(is_late).any(|(nominal, _)| starting.contains(nominal));
        let overlap = match (self.schedule.catch_up, self.schedule.overlap) {
            // Each of the missed times starts a run: they wait for each other.
            (CatchUp::All { .. }, Overlap::Skip | Overlap::BufferOne) if catches_up => Overlap::BufferAll,
            (_, overlap) => overlap,
        };
        for nominal in starting {
            self.replace_unstarted(nominal, now);
            self.enqueue(nominal, TickCause::Scheduled, overlap, now);
        }
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
    pub(super) fn empty_queue(
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

    pub(super) fn record(
        &mut self,
        nominal: Timestamp,
        cause: TickCause,
        now: Timestamp,
        outcome: TickOutcome,
    ) -> Tick {
        let tick = Tick { nominal, cause, at: now, outcome, since: None, change: self.changes };
        self.unlisted.retain(|other| other.key() != tick.key());
        self.unlisted.push(tick.clone());
        tick
    }

    pub(super) fn record_unlisted(&mut self, since: Timestamp, until: Timestamp, reason: &TickReason, now: Timestamp) {
        self.record(until, TickCause::Scheduled, now, TickOutcome::Missed { reason: reason.clone() });
        if let Some(tick) = self.unlisted.last_mut() {
            tick.since = Some(since);
        }
    }

    /// Computes the next time, and when a server must check it again.
    pub(super) fn plan(&mut self, now: Timestamp) -> Result<(), SpecError> {
        let times = Times::of(&self.schedule.when)?;
        let next = times.after(self.decided).find(|time| !self.begun_ahead.contains(time));
        self.next = next.filter(|_| self.paused.is_none());
        for place in 0..self.queue.len() {
            let ready = self.is_ready(place);
            if let Some(tick) = self.queue.get_mut(place) {
                tick.ready = if ready { tick.ready.or(Some(now)) } else { None };
            }
        }
        let starts = self.next.map(|next| next.after(jitter(&self.id, next, self.schedule.when.jitter)));
        let awaits = !self.queue.is_empty() || (self.schedule.pause_on_failure.is_some() && !self.running.is_empty());
        self.next_check = match self.next_check {
            // A check that is due stays where it is, so that checking changes nothing while runs go on.
            Some(check) if awaits && check <= now => Some(check),
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
            by: self.by.clone(),
        })
    }

    /// Returns in whose name a tick starts its run: who has asked for the tick, or who has set the schedule.
    #[must_use]
    pub fn starter(&self, tick: &Scheduled) -> Option<&str> {
        let queued = self.queue.iter().find(|queued| queued.is(tick.nominal, tick.cause));
        queued.and_then(|queued| queued.by.as_deref()).or(self.by.as_deref())
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
        self.running.drain(..self.running.len().saturating_sub(MAX_RUNNING));
        self.broken = None;
        self.record(tick.nominal, tick.cause, now, TickOutcome::Started { run });
        self.plan(now)?;
        Ok(true)
    }

    /// Notes that a tick could not start its run. The tick waits for a server that can, as long as the catch-up allows.
    /// Returns `false` if that is known.
    pub fn failed_to_start(&mut self, reason: &str, now: Timestamp) -> bool {
        self.breaks(BrokenSchedule { at: now, reason: reason.to_owned(), times: false })
    }

    /// Notes that its times cannot be computed, until they can. Returns `false` if that is known.
    pub fn failed_to_evaluate(&mut self, error: &SpecError, now: Timestamp) -> bool {
        self.breaks(BrokenSchedule { at: now, reason: error.to_string(), times: true })
    }

    fn breaks(&mut self, new: BrokenSchedule) -> bool {
        let is_known = self.broken.as_ref().is_some_and(|known| known.reason == new.reason);
        if !is_known {
            self.broken = Some(new);
        }
        !is_known
    }
}
