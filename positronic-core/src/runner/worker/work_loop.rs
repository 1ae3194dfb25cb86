//! The loop of a worker: it begins what the machine asks for, waits for reports, and records outcomes.

use std::sync::Arc;
use std::time::Duration;

use super::early_webhooks::take_early_webhooks;
use super::leave::LeaveReason;
use super::release::release;
use super::shared::WorkerPhase;
use super::stop::Stop;
use super::worker::{Worker, lost};
use crate::error::Error;
use crate::machine::{Effect, Outcome, detached, next, status};
use crate::record::{EventKind, NewEvent, Path, Status, Timestamp};
use crate::runner::clock::{sleep, sleep_until};
use crate::runner::effects::perform::perform;
use crate::runner::effects::prepare::preparing;
use crate::runner::effects::questions::{answer_question, keep_value, record_child};
use crate::runner::effects::record_outcome::record_outcome;
use crate::runner::effects::report::{self, Report};
use crate::runner::effects::start::{start_announced, start_effect};

/// The maximum number of reports in an append.
const TOGETHER: usize = 64;

impl Worker {
    pub(super) async fn drive(&mut self) -> Result<LeaveReason, Stop> {
        Box::pin(self.end_broken()).await?;
        let calls = detached(&self.state);
        for (path, attempt) in calls {
            start_effect(self, &Effect::Execute { path, attempt });
        }
        loop {
            let leaves = self.leaves();
            start_announced(self);
            if leaves {
                Box::pin(self.give_up_iterations()).await?;
            }
            let wake = if leaves { None } else { self.begin_effects().await? };
            // Lockstep may have waited for an effect that a cancelled brain has dropped.
            if !self.held.is_empty() {
                Box::pin(self.record_held()).await?;
                if self.held.is_empty() {
                    Box::pin(self.record_drafted()).await?;
                    continue;
                }
            }
            if self.state.has_ended() {
                return Ok(LeaveReason::Ended);
            }
            if leaves && self.flights.is_empty() {
                if Box::pin(release(self, "its worker releases its runs".to_owned())).await? {
                    return Ok(LeaveReason::Released);
                }
                continue;
            }
            let idle = self.flights.is_empty() && status(&self.state) != Status::Running;
            self.shared.publish(if idle { WorkerPhase::Suspended } else { WorkerPhase::Working });
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
                Box::pin(self.abandon()).await?;
            } else if Box::pin(release(self, "nothing to do".to_owned())).await? {
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
            Box::pin(self.begin(fresh)).await?;
        }
    }

    /// Begins effects together: first one append with the events that follow from the state and the intents, then
    /// the effects in flight, then those that the worker performs itself, whose outcomes are appended together.
    async fn begin(&mut self, mut effects: Vec<Effect>) -> Result<(), Stop> {
        let at = self.state.next;
        if self.draft_announced(&mut effects)? {
            if !self.append_draft().await? {
                // Another writer was first: decide again.
                return Ok(());
            }
            start_announced(self);
        }
        for effect in effects {
            // The events since then may have made this effect obsolete.
            let stale = self.state.next != at && !self.is_due(&effect);
            if stale || !perform(self, effect).await? {
                break;
            }
        }
        self.append_drafted().await.map(drop)
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
            () = shared.bell.notified() => Box::pin(self.catch_up()).await?,
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

    /// Records a report together with those that have arrived after it. There is one call of `take`, since each adds its future to the
    /// task of the run.
    async fn take_all(&mut self, first: Box<Report>) -> Result<(), Stop> {
        let (mut next, mut count) = (Some(first), 0);
        while let Some(report) = next {
            self.take(report).await?;
            count += 1;
            let waits = count < TOGETHER && !self.incoming.is_empty() && !self.draft.is_full();
            next = if waits { self.incoming.try_recv().ok() } else { None };
        }
        self.record_drafted().await
    }

    async fn take(&mut self, report: Box<Report>) -> Result<(), Stop> {
        let is_lockstep = self.shared.runner.settings.lockstep;
        let at_once = match &*report {
            _ if !is_lockstep => true,
            Report::Question { .. } | Report::Value { .. } | Report::Child { .. } => true,
            Report::Done { path, .. } => self.flights.get(path).is_some_and(|flight| !flight.awaited),
            Report::Output { .. } => false,
        };
        // A settled question may have stopped the last effect that lockstep waits for.
        if at_once {
            self.record(report).await?;
        } else {
            self.held.push(*report);
        }
        if is_lockstep { Box::pin(self.record_held()).await } else { Ok(()) }
    }

    /// Settles the outcomes held back in lockstep, once no awaited effect is in flight.
    async fn record_held(&mut self) -> Result<(), Stop> {
        let done = |held: &[Report], path: &Path| {
            held.iter().any(|report| matches!(report, Report::Done { path: done, .. } if done == path))
        };
        if self.flights.iter().all(|(path, flight)| !flight.awaited || done(&self.held, path)) {
            let mut held = std::mem::take(&mut self.held);
            held.sort_by_key(|report| report.path().sort_key());
            for report in held {
                if self.draft.is_full() {
                    self.record_drafted().await?;
                }
                self.record(Box::new(report)).await?;
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
            Box::pin(take_early_webhooks(self)).await?;
        }
        Ok(())
    }

    /// Adds a report's events to the draft. The reply to a question or a value is sent when its event is in the log.
    async fn record(&mut self, report: Box<Report>) -> Result<(), Stop> {
        match *report {
            Report::Output { path, id, output } => {
                let new_events = vec![NewEvent::new(path.clone(), EventKind::LoopOutput { id, output })];
                self.draft_outcome(&path, new_events)?;
            }
            Report::Question { path, question, reply, turn } => {
                let answering = async {
                    self.record_drafted().await?;
                    answer_question(self, path, question, reply, turn).await
                };
                Box::pin(answering).await?;
                start_announced(self);
            }
            Report::Value { path, name, value, reply, turn } => {
                let recording = async {
                    self.record_drafted().await?;
                    keep_value(self, &path, name, value, reply).await
                };
                Box::pin(recording).await?;
                drop(turn);
                start_announced(self);
            }
            Report::Child { path, child, reply } => {
                let recording = async {
                    self.record_drafted().await?;
                    record_child(self, &path, child, reply).await
                };
                Box::pin(recording).await?;
                start_announced(self);
            }
            Report::Done { path, outcome } => {
                self.flights.remove(&path);
                self.unrecorded.push(path.clone());
                // What has asked the question goes on under its own path, which can be that of the question.
                let is_question = matches!(outcome, report::EffectOutcome::Question { .. });
                record_outcome(self, &path, outcome).await?;
                if !is_question && !self.is_in_flight(&path) {
                    self.used_answers.remove(&path);
                    self.link.forget(&path);
                }
            }
        }
        Ok(())
    }
}
