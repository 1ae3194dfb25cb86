//! The run of a session on its screen: its updates, and the text of answers that another process gets.

use std::time::Duration;

use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use positronic_core::record::Seq;
use positronic_core::runner::{Clock as _, RunHandle, RunUpdate, Runner, Settled, SystemClock};
use positronic_core::store::StoreError;
use serde_json::Value;
use tokio::time::{Interval, MissedTickBehavior};

use crate::app::{Failure, LiveReader, LiveText};
use crate::session::{Screen, images};

/// Time between two repaints.
const TICK: Duration = Duration::from_millis(80);
/// Maximum wait for the last events.
const PATIENCE: Duration = Duration::from_secs(5);

/// A run and its screen.
pub(super) struct SessionScreen<'a> {
    runner: &'a Runner,
    run: RunHandle<Value>,
    updates: BoxStream<'static, Result<RunUpdate, StoreError>>,
    pub(super) screen: Screen<'a>,
    ticks: Interval,
    live: Option<LiveReader>,
    /// The number of the next event for the screen.
    seen: Seq,
}

/// What is shown next.
pub(super) enum ScreenUpdate {
    Tick,
    Update(Result<RunUpdate, StoreError>),
}

impl<'a> SessionScreen<'a> {
    /// Shows a run from its first event on. `live` has the text of answers that another process gets.
    pub(super) fn new(runner: &'a Runner, run: &RunHandle<Value>, screen: Screen<'a>, live: Option<&LiveText>) -> Self {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (updates, live) = (run.follow(Seq(0)), live.map(|live| live.reader(run.id())));
        Self { runner, run: run.clone(), updates, screen, ticks, live, seen: Seq(0) }
    }

    /// Waits for what is to be shown next. It is cancel safe: what it returns is not shown yet.
    pub(super) async fn next(&mut self) -> ScreenUpdate {
        tokio::select! {
            biased;
            _ = self.ticks.tick() => ScreenUpdate::Tick,
            Some(update) = self.updates.next(), if self.screen.has_room() => ScreenUpdate::Update(update),
        }
    }

    /// Shows it, and returns how the run has settled if it has.
    pub(super) async fn show(&mut self, update: ScreenUpdate) -> Result<Option<Settled>, Failure> {
        let settled = match update {
            ScreenUpdate::Tick => {
                let deltas = self.live.as_mut().map(LiveReader::read).unwrap_or_default();
                deltas.iter().for_each(|delta| self.screen.delta(delta));
                None
            }
            ScreenUpdate::Update(update) => match self.update(update).await? {
                None => return Ok(None),
                settled => settled,
            },
        };
        self.screen.tick(SystemClock.now())?;
        Ok(settled)
    }

    /// Shows an update. If the log cannot be read, the run continues without its display, which resumes where it was.
    async fn update(&mut self, update: Result<RunUpdate, StoreError>) -> Result<Option<Settled>, Failure> {
        let error = match update {
            Ok(update) => return self.show_update(update).await,
            Err(error @ StoreError::Failed { .. }) => error,
            Err(error) => return Err(error.into()),
        };
        // Its worker may have given up for the same reason.
        if let Some(settled) =
            self.run.settled().now_or_never().filter(|settled| matches!(settled, Settled::Stopped(_)))
        {
            return Ok(Some(settled));
        }
        self.screen.say(&format!("cannot show the run, trying again: {error}"))?;
        self.updates = self.run.follow(self.seen);
        Ok(None)
    }

    /// Shows an update, and returns how the run has settled if it has.
    async fn show_update(&mut self, update: RunUpdate) -> Result<Option<Settled>, Failure> {
        match update {
            RunUpdate::Event(event) => {
                self.seen = event.seq.next();
                self.screen.event(&event)?;
                if self.screen.has_images() {
                    let images = images(&self.runner.client(), &event).await;
                    images.iter().for_each(|image| self.screen.image(&event, image));
                }
            }
            RunUpdate::Delta(delta) => self.screen.delta(&delta),
            RunUpdate::Settled(settled) => return Ok(Some(settled)),
            _ => {}
        }
        Ok(None)
    }

    /// Shows the remaining events of the log.
    pub(super) async fn catch_up(&mut self) -> Result<(), Failure> {
        let next = self.run.state().next;
        while self.seen < next {
            match tokio::time::timeout(PATIENCE, self.updates.next()).await {
                Ok(Some(update)) => _ = self.update(update).await?,
                Ok(None) | Err(_) => break,
            }
        }
        self.screen.tick(SystemClock.now())?;
        Ok(())
    }
}
