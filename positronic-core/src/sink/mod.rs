//! Where events go as they happen.
//!
//! A sink gets the events of every run of its runner; [`RunHandle::follow`](crate::runner::RunHandle::follow) reads one run
//! as a stream. A sink sees every event of a run in order, once and without a gap. Each sink of a run is fed by a task of
//! its own that reads the store from the sink's position, so a slow one delays nobody and needs no queue; one that fails is
//! tried again at the same event, and given up after a while without harm to the run, until the run is claimed again.
//! Deltas are shown live and may be lost.
//!
//! A sink that fails, panics or never answers stops no run, in any of its methods. One that blocks its thread delays what
//! shares that thread: a part of the work on a runtime of several threads, and everything on a runtime of one. Blocking work
//! belongs into `spawn_blocking` there, as [`JsonLines`] does it.

mod json_lines;
mod log;
mod recorder;

use futures::future::BoxFuture;

use crate::record::{Delta, Event, RunId, Seq};

pub use json_lines::JsonLines;
pub use log::TracingSink;
pub use recorder::Recorder;

/// Takes a run's events as they happen.
pub trait EventSink: Send + Sync + 'static {
    /// Names the sink in warnings.
    fn name(&self) -> &str;

    /// Returns the number of the event that the sink wants next of a run that exists already, as after a restart. Where it
    /// says nothing, it gets what comes after the last event that the runner or a clone of it has shown it, and of a run
    /// that is new to them what happens from then on. Nothing is shown before it returns; one that panics is given up.
    fn position(&self, _run: &RunId) -> Option<Seq> {
        None
    }

    /// Takes the next event of a run.
    ///
    /// # Errors
    ///
    /// [`SinkError`] when the event could not be taken; it is offered again.
    fn event<'a>(&'a self, run: &'a RunId, event: &'a std::sync::Arc<Event>) -> BoxFuture<'a, Result<(), SinkError>>;

    /// Takes a piece of an answer while it streams. It must not block.
    fn delta(&self, _run: &RunId, _delta: &Delta) {}
}

/// Says why a sink could not take an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub String);
