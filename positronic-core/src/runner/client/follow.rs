//! Following a run: its events, its live deltas and how it settles, as one stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::stream::{BoxStream, StreamExt as _, unfold};
use tokio::sync::watch;

use super::follower::{Followed, Follower};
use super::shared_log::SettledAt;
use crate::record::{Delta, Event, RunId, Seq, Status};
use crate::runner::worker::load;
use crate::runner::worker::shared::{Shared, WorkerPhase};
use crate::runner::{Client, RunHandle, Settled};
use crate::store::{EventStore, StoreError};

/// An update of a followed run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RunUpdate {
    /// An event of the log. Events arrive in order, each once, without gaps.
    Event(Arc<Event>),
    /// A piece of a streaming answer, before the event with the whole answer. Deltas are live: they exist only in
    /// the process that works on the run, are not stored, and are dropped for a reader that is more than 1024
    /// deltas behind. [`Delta::n`] counts them, so a reader sees a gap; the event fills it.
    Delta(Delta),
    /// The run has ended, waits, is paused, or its worker stopped, as of the events before. A run that has ended
    /// has no later update; any other may continue and settle again.
    Settled(Settled),
}

impl<R> RunHandle<R> {
    /// Follows the run from an event's number on: every event in order and without gaps, the live deltas, and
    /// each time that the run settles. The stream ends after the [`RunUpdate::Settled`] of a run that has ended.
    ///
    /// Events are read from the store on demand, so a slow reader delays neither the run nor other readers.
    /// Deltas are those of this runner and its clones from now on; there are none while another process works on
    /// the run. The stream keeps the run loaded, as a handle does.
    ///
    /// ```
    /// # use positronic_core::record::Seq;
    /// # use positronic_core::runner::{RunHandle, RunUpdate};
    /// # use positronic_core::store::StoreError;
    /// use futures::StreamExt as _;
    ///
    /// # async fn example(run: RunHandle<()>) -> Result<(), StoreError> {
    /// let mut updates = run.follow(Seq(0));
    /// while let Some(update) = updates.next().await {
    ///     match update? {
    ///         RunUpdate::Event(event) => println!("{} {}", event.seq, event.kind.name()),
    ///         RunUpdate::Delta(delta) => print!("{}", delta.text),
    ///         RunUpdate::Settled(settled) => println!("{settled:?}"),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The stream yields a [`StoreError`] and ends if the store still cannot be read after retries for 45
    /// seconds. Follow the run again from the next number then.
    #[must_use]
    pub fn follow(&self, from: Seq) -> BoxStream<'static, Result<RunUpdate, StoreError>> {
        let (shared, sent) = (Arc::clone(self.shared()), Arc::clone(self.sent()));
        let follower = Follower::new(&shared.runner.store, &shared.runner.state.live, &shared.run, from);
        let phase = shared.settled.subscribe();
        updates(follower, Source::Handle { shared, sent, phase })
    }
}

/// Follows a run of any process by its log.
pub(super) fn follow_log(client: &Client, run: &RunId, from: Seq) -> BoxStream<'static, Result<RunUpdate, StoreError>> {
    let store = client.shared_store();
    let follower = Follower::new(&store, client.live(), run, from);
    updates(follower, Source::Log { store, run: run.clone(), asked: None })
}

fn updates(follower: Follower, source: Source) -> BoxStream<'static, Result<RunUpdate, StoreError>> {
    let updates = Updates { follower, source, settled: None, is_over: false };
    unfold(updates, async |mut updates| Some((updates.next().await?, updates))).fuse().boxed()
}

struct Updates {
    follower: Follower,
    source: Source,
    /// The last settled state, unless an event has followed.
    settled: Option<Settled>,
    is_over: bool,
}

/// The source of the settled state.
enum Source {
    /// The run's task in this process.
    Handle {
        shared: Arc<Shared>,
        /// The number after the last signal that the handle sent.
        sent: Arc<AtomicU64>,
        phase: watch::Receiver<(WorkerPhase, Seq)>,
    },
    /// The run's row.
    Log {
        store: Arc<dyn EventStore>,
        run: RunId,
        /// The event number at which the row was read.
        asked: Option<Seq>,
    },
}

impl Updates {
    async fn next(&mut self) -> Option<Result<RunUpdate, StoreError>> {
        while !self.is_over {
            match self.step().await {
                Ok(None) => {}
                Ok(Some(update)) => return Some(Ok(update)),
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    async fn step(&mut self) -> Result<Option<RunUpdate>, StoreError> {
        match self.follower.next().await? {
            Some(Followed::Delta(delta)) => return Ok(Some(RunUpdate::Delta(delta))),
            Some(Followed::Event(event)) => {
                if !event.kind.is_about_workers() {
                    self.settled = None;
                }
                return Ok(Some(RunUpdate::Event(event)));
            }
            None => {}
        }
        let settled = match self.source.settled(&self.follower).await? {
            SettledAt::Settled(settled) if self.settled.as_ref() != Some(&settled) => settled,
            SettledAt::Settled(_) | SettledAt::Not { .. } => {
                self.wait().await;
                return Ok(None);
            }
            // It is read first.
            SettledAt::Grown(next) => {
                self.follower.bell().ring(next);
                return Ok(None);
            }
        };
        self.is_over = matches!(settled, Settled::Completed(_) | Settled::Failed(_) | Settled::Cancelled);
        self.settled = Some(settled.clone());
        Ok(Some(RunUpdate::Settled(settled)))
    }

    async fn wait(&mut self) {
        match &mut self.source {
            Source::Handle { phase, .. } => tokio::select! {
                () = self.follower.more() => {}
                // The sender lives as long as the shared part.
                _ = phase.changed() => {}
            },
            Source::Log { .. } => self.follower.more().await,
        }
    }
}

impl Source {
    /// Returns whether the run has settled as of the follower's position.
    async fn settled(&mut self, follower: &Follower) -> Result<SettledAt, StoreError> {
        let position = follower.position();
        match self {
            Self::Handle { shared, sent, phase } => {
                let (phase, at) = phase.borrow_and_update().clone();
                let state = shared.state();
                if state.next > position {
                    return Ok(SettledAt::Grown(state.next));
                }
                let is_current = at == state.next && at.0 >= sent.load(Ordering::Acquire);
                Ok(match phase {
                    WorkerPhase::Stopped(reason) => SettledAt::Settled(Settled::Stopped(reason)),
                    WorkerPhase::Ended => SettledAt::Settled(Settled::of(&state)),
                    WorkerPhase::Suspended if is_current && Settled::is_settled(&state, position) => {
                        SettledAt::Settled(Settled::of(&state))
                    }
                    WorkerPhase::Suspended | WorkerPhase::Working => SettledAt::Not { is_final: false },
                })
            }
            Self::Log { store, run, asked } => {
                if *asked == Some(position) {
                    return Ok(SettledAt::Not { is_final: true });
                }
                let ask = || settled_at(Arc::clone(store), run.clone(), position);
                let found = match follower.shared() {
                    Some(shared) => shared.settled(position, ask).await?,
                    None => ask().await?,
                };
                *asked = found.is_final().then_some(position);
                Ok(found)
            }
        }
    }
}

/// Returns whether a run has settled for a reader at a position of its log.
async fn settled_at(store: Arc<dyn EventStore>, run: RunId, position: Seq) -> Result<SettledAt, StoreError> {
    let row = store.run(&run).await?;
    if row.next > position {
        return Ok(SettledAt::Grown(row.next));
    }
    if row.status == Status::Running || (row.next < position && !row.status.is_over()) {
        return Ok(SettledAt::Not { is_final: row.next == position });
    }
    let state = load::state(&*store, &run).await?;
    if state.next > row.next {
        return Ok(SettledAt::Grown(state.next));
    }
    let is_settled = Settled::is_settled(&state, state.next);
    Ok(if is_settled { SettledAt::Settled(Settled::of(&state)) } else { SettledAt::Not { is_final: true } })
}
