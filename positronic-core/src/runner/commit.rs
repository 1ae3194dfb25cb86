//! Appending: numbers and times for drafts, and what to do when somebody else was first.

use std::sync::Arc;

use super::worker::{Stop, Worker};
use crate::record::{Draft, Epoch, Event, Seq, Timestamp};
use crate::store::{Append, StoreError};

/// Gives drafts their numbers, one time and an epoch.
pub(super) fn stamp(drafts: Vec<Draft>, first: Seq, at: Timestamp, epoch: Option<Epoch>) -> Vec<Arc<Event>> {
    let mut seq = first;
    drafts
        .into_iter()
        .map(|Draft { path, body }| {
            let event = Event { seq, at, epoch, path, body };
            seq = seq.next();
            Arc::new(event)
        })
        .collect()
}

impl Worker {
    /// Appends drafts. Answers `false` when somebody else was first: then what they did is folded in, nothing was
    /// appended, and the caller has to decide again.
    pub(super) async fn append(&mut self, drafts: Vec<Draft>) -> Result<bool, Stop> {
        let (next, at) = {
            let state = self.shared.state();
            (state.next, self.shared.now().max(state.at))
        };
        let events = stamp(drafts, next, at, Some(self.epoch));
        let append = Append { expected: next, epoch: Some(self.epoch), events: events.clone() };
        match self.shared.runner.store.append(&self.shared.run, append).await {
            Ok(()) => {
                self.fold(&events)?;
                Ok(true)
            }
            Err(StoreError::Conflict { .. }) => {
                self.catch_up().await?;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Appends drafts that came of an effect, after whatever somebody else appended meanwhile, unless that has made
    /// them impossible: a call that was cancelled takes no result any more.
    pub(super) async fn append_if_fits(&mut self, drafts: Vec<Draft>) -> Result<bool, Stop> {
        loop {
            let fits = {
                let state = self.shared.state();
                let mut trial = state.clone();
                let at = state.at;
                stamp(drafts.clone(), trial.next, at, Some(self.epoch)).iter().try_for_each(|event| trial.apply(event))
            };
            if let Err(error) = fits {
                tracing::debug!(run = %self.shared.run, %error, "an outcome came too late");
                return Ok(false);
            }
            if self.append(drafts.clone()).await? {
                return Ok(true);
            }
        }
    }

    /// Folds in what others have appended.
    pub(super) async fn catch_up(&mut self) -> Result<(), Stop> {
        let next = self.shared.state().next;
        let events = self.shared.runner.store.read(&self.shared.run, next, usize::MAX).await?;
        self.fold(&events)
    }

    fn fold(&mut self, events: &[Arc<Event>]) -> Result<(), Stop> {
        let mut state = self.shared.state();
        let mut prompts = self.shared.prompts();
        for event in events {
            state.apply(event).map_err(|error| Stop(error.to_string()))?;
            prompts.apply(event);
        }
        drop(prompts);
        self.frames.forget_closed(&state);
        Ok(())
    }
}
