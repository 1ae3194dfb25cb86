//! A leg: one attachment of a client to a run, from an event on until the run suspends or ends.
//!
//! ```text
//! history, events before `start` ──▶ projection ──▶ encoder          nothing is sent
//!                                                   encoder.begin() ──▶ what the client has missed, what is open
//! events from `start` on, deltas ──▶ projection ──▶ encoder.items() ──▶ frames
//! run settles ─────────────────────────────────────▶ encoder.end() ──▶ last frames
//! ```
//!
//! A run that waits only for a program or a time keeps its leg open for a while, since it may continue by itself. So does a run
//! whose questions the client has already seen: it watches what others decide.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{BoxStream, Stream, StreamExt as _, unfold};
use positronic_core::machine::{BrainEnd, RunState, pending};
use positronic_core::record::{EventKind, Failure, PendingKind, RunId, Seq};
use positronic_core::runner::{AnswerReader, RunUpdate, Settled};
use positronic_core::store::StoreError;
use positronic_server::extension::{OpenQuestion, Viewer};
use positronic_server::{Problem, ProblemType};
use serde_json::Value;
use tokio::time::Instant;

use crate::projection::{Placed, Projection, PublicState};

/// Translates items into the frames of a protocol.
pub(crate) trait Encoder: Send + 'static {
    /// What the leg sends: a [`Frame`](positronic_server::extension::Frame), if its protocol is a stream of events.
    type Sent: Send + 'static;

    /// Translates what happens.
    fn items(&mut self, items: Vec<Placed>) -> Vec<Self::Sent>;

    /// Begins the leg. `is_late` says whether the run has events that the leg does not send.
    fn begin(&mut self, projection: &Projection, is_late: bool) -> Vec<Self::Sent>;

    /// Ends the leg.
    fn end(&mut self, projection: &Projection, end: LegEnd) -> Vec<Self::Sent>;
}

/// How a leg ends.
#[derive(Debug, Clone)]
pub(crate) enum LegEnd {
    /// The run has completed. A result that is the brain's whole state is not for browsers.
    Completed {
        result: Value,
        is_state: bool,
    },
    Failed(Failure),
    Cancelled,
    /// The run waits for this.
    Waiting(Vec<OpenQuestion>),
    Paused,
    /// The leg cannot continue; the run may.
    Broken(Problem),
}

/// Returns whether an item asks the client: as a person, or for the result of one of its own tools.
fn is_asked(kind: &PendingKind, answers_calls: bool) -> bool {
    kind.is_for_person() || (answers_calls && kind.is_for_caller())
}

/// Returns how a run has settled as of a state; `None` if it works, or only a program or a time can continue it. `answers_calls` says
/// whether the client answers calls of its own tools.
pub(crate) fn settled(viewer: &Viewer, run: &RunId, state: &RunState, answers_calls: bool) -> Option<LegEnd> {
    if let Some((root, end)) = state.root.as_ref().and_then(|root| Some((root, root.end.as_ref()?))) {
        return Some(match end {
            BrainEnd::Completed(result) => {
                LegEnd::Completed { result: result.clone(), is_state: *root.state == *result }
            }
            BrainEnd::Failed(failure) => LegEnd::Failed(failure.clone()),
            BrainEnd::Cancelled => LegEnd::Cancelled,
        });
    }
    if state.paused.is_some() {
        return Some(LegEnd::Paused);
    }
    let items = pending(state);
    let is_asked = items.iter().any(|item| is_asked(&item.kind, answers_calls));
    let questions = items.iter().map(|item| viewer.question(run, state, item));
    is_asked.then(|| LegEnd::Waiting(questions.collect()))
}

/// What a leg attaches to.
#[derive(Debug)]
pub(crate) struct Leg {
    pub(crate) run: RunId,
    /// The first event that is sent.
    pub(crate) start: Seq,
    /// The questions that the client has seen and has not answered.
    pub(crate) seen: BTreeSet<String>,
    /// How long the leg stays open while the run can only be continued from elsewhere.
    pub(crate) hold: Duration,
    /// Whether the client answers calls of its own tools, so that such a call ends the leg.
    pub(crate) answers_calls: bool,
}

impl Leg {
    /// Attaches to the run.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the log cannot be read.
    pub(crate) async fn open<E: Encoder>(
        self,
        viewer: Viewer,
        public_state: Option<PublicState>,
        mut encoder: E,
    ) -> Result<impl Stream<Item = E::Sent> + Send + use<E>, Problem> {
        let (updates, stopping) = (viewer.client().follow(&self.run, self.start), viewer.stopping().boxed());
        let reader = viewer.client().answers(&self.run);
        let log = viewer.client().events(&self.run, Seq(0)).await?;
        let mut projection = Projection::new(&self.run, viewer, public_state);
        for event in log.iter().take_while(|event| event.seq < self.start) {
            let items = projection.event(event);
            encoder.items(items);
        }
        let mut frames: VecDeque<_> = encoder.begin(&projection, self.start > Seq(0)).into();
        frames.extend(encoder.items(projection.catch_up(&reader)));
        let state = Attached {
            leg: self,
            projection,
            encoder,
            updates,
            reader,
            stopping,
            frames,
            held_until: None,
            is_over: false,
        };
        Ok(unfold(state, |mut attached| async move { attached.next().await.map(|frame| (frame, attached)) }))
    }
}

/// An open leg.
struct Attached<E: Encoder> {
    leg: Leg,
    projection: Projection,
    encoder: E,
    updates: BoxStream<'static, Result<RunUpdate, StoreError>>,
    reader: AnswerReader,
    /// Until the server shuts down.
    stopping: BoxFuture<'static, ()>,
    frames: VecDeque<E::Sent>,
    /// Until when the leg waits for others.
    held_until: Option<Instant>,
    is_over: bool,
}

impl<E: Encoder> Attached<E> {
    async fn next(&mut self) -> Option<E::Sent> {
        while self.frames.is_empty() && !self.is_over {
            let held_until = self.held_until;
            let held = async {
                match held_until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                update = self.updates.next() => self.update(update),
                () = self.reader.more() => {
                    let items = self.projection.catch_up(&self.reader);
                    self.send(items);
                }
                () = held => self.release(),
                () = &mut self.stopping => self.end(LegEnd::Broken(ProblemType::Stopping.into())),
            }
        }
        self.frames.pop_front()
    }

    fn update(&mut self, update: Option<Result<RunUpdate, StoreError>>) {
        match update {
            Some(Ok(RunUpdate::Event(event))) => {
                // A worker that takes or releases the run changes nothing for those who wait.
                if !event.kind.is_about_workers() {
                    self.held_until = None;
                }
                let mut items = self.projection.event(&event);
                if matches!(event.kind, EventKind::LoopModelCall { .. }) {
                    items.extend(self.projection.catch_up(&self.reader));
                }
                self.send(items);
            }
            Some(Ok(RunUpdate::Delta(delta))) => {
                let items = self.projection.progress(&delta);
                self.send(items);
            }
            Some(Ok(RunUpdate::Settled(settled))) => self.settled(settled),
            Some(Ok(_)) => {}
            Some(Err(error)) => self.end(LegEnd::Broken(error.into())),
            None => self.is_over = true,
        }
    }

    fn send(&mut self, items: Vec<Placed>) {
        if !items.is_empty() {
            self.frames.extend(self.encoder.items(items));
        }
    }

    fn settled(&mut self, settled: Settled) {
        match settled {
            Settled::Completed(result) => {
                let is_state = self.projection.state().root.as_ref().is_some_and(|root| *root.state == result);
                self.end(LegEnd::Completed { result, is_state });
            }
            Settled::Failed(failure) => self.end(LegEnd::Failed(failure)),
            Settled::Cancelled => self.end(LegEnd::Cancelled),
            Settled::Waiting(_) => {
                let questions = self.questions();
                let asks = |OpenQuestion { id, pending, .. }: &OpenQuestion| {
                    let is_asked = is_asked(&pending.kind, self.leg.answers_calls);
                    is_asked && !self.leg.seen.contains(id)
                };
                if questions.iter().any(asks) {
                    self.end(LegEnd::Waiting(questions));
                } else {
                    self.hold();
                }
            }
            Settled::Paused if self.leg.seen.contains(PAUSED) => self.hold(),
            Settled::Paused => self.end(LegEnd::Paused),
            // Another worker continues the run.
            Settled::Stopped(_) => {}
        }
    }

    fn questions(&self) -> Vec<OpenQuestion> {
        let (viewer, state) = (self.projection.viewer(), self.projection.state());
        let items = pending(state);
        items.iter().map(|item| viewer.question(self.projection.run(), state, item)).collect()
    }

    fn hold(&mut self) {
        self.held_until.get_or_insert_with(|| Instant::now() + self.leg.hold);
    }

    /// Ends a leg for which nothing has happened.
    fn release(&mut self) {
        match self.projection.state().paused {
            Some(_) => self.end(LegEnd::Paused),
            None => self.end(LegEnd::Waiting(self.questions())),
        }
    }

    fn end(&mut self, end: LegEnd) {
        self.is_over = true;
        self.frames.extend(self.encoder.end(&self.projection, end));
    }
}

/// The id of the question that a paused run asks: whether it continues.
pub(crate) const PAUSED: &str = "paused";
