//! The loop of a worker: it begins what the machine asks for, waits for reports, and records outcomes.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;

use super::early_webhooks::take_mail;
use super::registry::Departure;
use super::release::{fail, give_up, release};
use super::shared::Phase;
use super::stop::Stop;
use super::worker::{Worker, lost};
use crate::error::Error;
use crate::machine::{Effect, Outcome, detached, next, status};
use crate::record::{EventKind, NewEvent, Path, Segment, Status, Timestamp};
use crate::runner::catch::panicked;
use crate::runner::clock::{sleep, sleep_until};
use crate::runner::detached::attach::is_detached;
use crate::runner::effects::async_effects::{start_announced, start_effect};
use crate::runner::effects::prepare::preparing;
use crate::runner::effects::questions::{answer_question, keep_value, record_child};
use crate::runner::effects::record_outcome::record_outcome;
use crate::runner::effects::report::{self, Report};
use crate::runner::effects::sync_effects::perform;
use crate::store::StoreError;

/// The maximum number of reports in an append.
const TOGETHER: usize = 64;

/// The reason why a worker has left its run.
pub(in crate::runner) enum LeaveReason {
    /// The run has ended.
    Ended,
    /// The run was idle for a while, or the runner releases its runs.
    Released,
    /// Another worker has claimed the run.
    Lost,
    /// It failed.
    Failed(Stop),
}

impl Worker {
    /// Works on the run until it ends or has been idle for a while.
    pub(in crate::runner) async fn work(mut self: Box<Self>) -> LeaveReason {
        // A panic must not leave the handle's waiters without an answer.
        let driven = AssertUnwindSafe(self.drive()).catch_unwind().await;
        // Of a panic: what it was decided with is not appended with the release.
        self.drop_draft();
        let unrecorded = self.flights.keys().chain(&self.unrecorded);
        let mut in_flight: Vec<_> = unrecorded.filter(|path| !is_detached(&self, path)).cloned().collect();
        in_flight.sort_by_key(order);
        for (_, flight) in std::mem::take(&mut self.flights) {
            flight.task.abort();
        }
        let stop = match driven.unwrap_or_else(|panic| Err(Stop::Panicked(panicked(&*panic).to_string()))) {
            Ok(left) => {
                if matches!(left, LeaveReason::Released) {
                    self.guard.departs(Departure::Released);
                }
                return left;
            }
            Err(Stop::Lost) if in_flight.is_empty() || self.lease.ttl().is_none() => {
                tracing::warn!(run = %self.shared.run, ?in_flight, "another worker has claimed the run");
                return LeaveReason::Lost;
            }
            // Another worker may claim the run from now on, so this one writes nothing more. If one has, then the lease has
            // lapsed, although this worker's clock has not shown it yet.
            Err(Stop::LeaseLost { .. } | Stop::Lost) => {
                let stop = Stop::LeaseLost { owner: self.lease.owner().to_owned(), in_flight };
                tracing::error!(run = %self.shared.run, reason = %stop, "the run's worker stops");
                return LeaveReason::Failed(stop);
            }
            Err(stop) => stop,
        };
        if let Stop::Store(refused @ StoreError::Unrecordable { .. }) = &stop
            && fail(&mut self, refused).await
        {
            return LeaveReason::Ended;
        }
        tracing::error!(run = %self.shared.run, reason = %stop, "the run's worker stops");
        let next = self.shared.state().next;
        // Before the release wakes other tasks of this runner.
        let paused = self.shared.runner.state.backoffs.add(&self.shared.run, next, Some(stop.clone().into()));
        give_up(&mut self, &stop).await;
        self.shared.defer(&paused).await;
        LeaveReason::Failed(stop)
    }

    async fn drive(&mut self) -> Result<LeaveReason, Stop> {
        self.end_broken().await?;
        let calls = detached(&self.state);
        for (path, attempt) in calls {
            start_effect(self, &Effect::Execute { path, attempt });
        }
        loop {
            let leaves = self.leaves();
            start_announced(self);
            if leaves {
                self.give_up_iterations().await?;
            }
            let wake = if leaves { None } else { self.begin_effects().await? };
            // Lockstep may have waited for an effect that a cancelled brain has dropped.
            if !self.held.is_empty() {
                self.record_held().await?;
                if self.held.is_empty() {
                    self.record_drafted().await?;
                    continue;
                }
            }
            if self.state.has_ended() {
                return Ok(LeaveReason::Ended);
            }
            if leaves && self.flights.is_empty() {
                if release(self, "its worker releases its runs".to_owned()).await? {
                    return Ok(LeaveReason::Released);
                }
                continue;
            }
            let idle = self.flights.is_empty() && status(&self.state) != Status::Running;
            self.shared.publish(if idle { Phase::Suspended } else { Phase::Working });
            let patience = match (leaves, idle) {
                (true, _) => self.grace(),
                // Other suspects may work while this one waits.
                (false, true) if self.quarantined.is_some() => Duration::ZERO,
                (false, true) => self.shared.runner.settings.linger,
                (false, false) => Duration::MAX,
            };
            if self.wait(wake, patience).await? {
                continue;
            }
            if leaves {
                self.abandon().await?;
            } else if release(self, "nothing to do".to_owned()).await? {
                return Ok(LeaveReason::Released);
            }
        }
    }

    /// Ends the loops whose configuration failed during the restore, as when it fails the first time.
    async fn end_broken(&mut self) -> Result<(), Stop> {
        let broken = std::mem::take(&mut self.frames.broken);
        loop {
            let is_open = |path: &Path| self.state.loop_at(path).is_some_and(|frame| frame.path == *path);
            let open = broken.iter().filter(|(path, _)| is_open(path));
            let ends = |(path, error): &(Path, String)| self.settled(path, Outcome::NotConfigured(Error::new(error)));
            let new_events: Vec<NewEvent> = open.flat_map(ends).collect();
            if new_events.is_empty() || self.append(new_events).await? {
                return Ok(());
            }
        }
    }

    /// Begins all due effects and returns the time of the next one.
    async fn begin_effects(&mut self) -> Result<Option<Timestamp>, Stop> {
        loop {
            start_announced(self);
            let next = next(&self.state, self.shared.now().max(self.state.at));
            let fresh = self.fresh(next.effects);
            if fresh.is_empty() {
                return Ok(next.wake);
            }
            self.begin(fresh).await?;
        }
    }

    /// Begins effects together: first one append with the events that follow from the state and the intents, then
    /// the effects in flight, then those that are performed at once.
    async fn begin(&mut self, mut effects: Vec<Effect>) -> Result<(), Stop> {
        let decided = self.state.next;
        if self.draft_announced(&mut effects)? {
            if !self.append_draft().await? {
                // Another writer was first: decide again.
                return Ok(());
            }
            start_announced(self);
        }
        for effect in effects {
            // The appends since then may have made this effect obsolete.
            let stale = self.state.next != decided && !self.is_due(&effect);
            if stale || !perform(self, effect).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Aborts the preparation of iterations by plugins, which may take any time and are not in the log. Only the
    /// answer to a plugin's question is awaited.
    async fn give_up_iterations(&mut self) -> Result<(), Stop> {
        let is_idle = |path: &&Path| {
            preparing(self, path).is_some_and(|iteration| !self.is_in_flight(&path.iteration(iteration)))
        };
        let paths: Vec<Path> = self.flights.keys().filter(is_idle).cloned().collect();
        for path in &paths {
            self.drop_flight(path);
        }
        self.record_held().await?;
        self.record_drafted().await
    }

    /// Returns how long effects in flight may still take when the runner releases its runs.
    fn grace(&mut self) -> Duration {
        let now = tokio::time::Instant::now();
        let grace = self.shared.runner.settings.release_grace;
        // `None` stands for a time beyond the clock's range.
        let Some(end) = self.leaves_at.or_else(|| now.checked_add(grace)) else { return Duration::MAX };
        self.leaves_at = Some(end);
        end.saturating_duration_since(now)
    }

    /// Aborts the effects in flight, as a crash does; outcomes that have arrived are recorded.
    async fn abandon(&mut self) -> Result<(), Stop> {
        for (path, flight) in std::mem::take(&mut self.flights) {
            tracing::warn!(run = %self.shared.run, %path, "abandoned: it did not end in time");
            flight.task.abort();
        }
        self.record_held().await?;
        self.record_drafted().await
    }

    /// Waits for a report, for another writer's append, or for the next due time. Returns `false` after `linger`
    /// without any.
    async fn wait(&mut self, wake: Option<Timestamp>, linger: Duration) -> Result<bool, Stop> {
        let (shared, lease) = (Arc::clone(&self.shared), Arc::clone(&self.lease));
        tokio::select! {
            biased;
            Some(report) = self.incoming.recv() => self.take_all(report).await?,
            () = lease.lost() => return Err(lost(&lease)),
            () = shared.bell.notified() => self.catch_up().await?,
            Ok(()) = self.leaves.changed() => {}
            () = sleep_until(&*shared.runner.clock, wake) => {}
            () = sleep(linger) => return Ok(false),
        }
        if self.state.has_ended() {
            for (_, flight) in std::mem::take(&mut self.flights) {
                flight.task.abort();
            }
        }
        Ok(true)
    }

    /// Records a report together with those that have arrived after it.
    async fn take_all(&mut self, first: Box<Report>) -> Result<(), Stop> {
        self.take(*first).await?;
        for _ in 1..TOGETHER {
            let Ok(report) = self.incoming.try_recv() else { break };
            self.take(*report).await?;
        }
        self.record_drafted().await
    }

    async fn take(&mut self, report: Report) -> Result<(), Stop> {
        if !self.shared.runner.settings.lockstep {
            return self.record(report).await;
        }
        let at_once = match &report {
            Report::Question { .. } | Report::Value { .. } | Report::Child { .. } => true,
            Report::Done { path, .. } => self.flights.get(path).is_some_and(|flight| !flight.awaited),
            Report::Output { .. } => false,
        };
        // A settled question may have stopped the last effect that lockstep waits for.
        if at_once {
            self.record(report).await?;
        } else {
            self.held.push(report);
        }
        self.record_held().await
    }

    /// Settles the outcomes held back in lockstep, once no awaited effect is in flight.
    async fn record_held(&mut self) -> Result<(), Stop> {
        let done = |held: &[Report], path: &Path| {
            held.iter().any(|report| matches!(report, Report::Done { path: done, .. } if done == path))
        };
        if self.flights.iter().all(|(path, flight)| !flight.awaited || done(&self.held, path)) {
            let mut held = std::mem::take(&mut self.held);
            held.sort_by_key(|report| order(report.path()));
            for report in held {
                self.record(report).await?;
            }
        }
        Ok(())
    }

    /// Appends what reports have added to the draft.
    async fn record_drafted(&mut self) -> Result<(), Stop> {
        self.commit().await?;
        self.unrecorded.clear();
        start_announced(self);
        if self.mail_unread {
            // The webhook may have arrived before. After a crash right here, the next worker reads the mailbox.
            take_mail(self).await?;
        }
        Ok(())
    }

    /// Adds a report's events to the draft. The reply to a question or a value is sent when its event is in the log.
    async fn record(&mut self, report: Report) -> Result<(), Stop> {
        match report {
            Report::Output { path, id, output } => {
                let new_events = vec![NewEvent::new(path.clone(), EventKind::LoopOutput { id, output })];
                self.draft_outcome(&path, new_events)?;
            }
            Report::Question { path, question, reply, turn } => {
                self.record_drafted().await?;
                answer_question(self, path, question, reply, turn).await?;
                start_announced(self);
            }
            Report::Value { path, name, value, reply, turn } => {
                self.record_drafted().await?;
                keep_value(self, &path, name, value, reply).await?;
                drop(turn);
                start_announced(self);
            }
            Report::Child { path, child, reply } => {
                self.record_drafted().await?;
                record_child(self, &path, child, reply).await?;
                start_announced(self);
            }
            Report::Done { path, outcome } => {
                self.flights.remove(&path);
                self.unrecorded.push(path.clone());
                // What prepares the iteration has asked it, and goes on.
                let is_of_preparation = matches!(outcome, report::Outcome::Question { .. })
                    && matches!(path.last(), Some(Segment::Iteration(_)));
                record_outcome(self, &path, outcome).await?;
                // A question that is sent again is in flight under the same path.
                if !self.is_in_flight(&path) && !is_of_preparation {
                    self.used_answers.remove(&path);
                    self.link.forget(&path);
                }
            }
        }
        Ok(())
    }
}
/// Orders paths numerically: call 2 before call 10.
fn order(path: &Path) -> Vec<(u8, u32, u32, String)> {
    path.segments()
        .map(|segment| match segment {
            Segment::Iteration(iteration) => (0, iteration, 0, String::new()),
            Segment::Call(iteration, index) => (1, iteration, index, String::new()),
            Segment::Question(iteration, index) => (2, iteration, index, String::new()),
            Segment::Stage(name) => (3, 0, 0, name.to_owned()),
        })
        .collect()
}
