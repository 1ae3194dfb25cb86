//! Event sinks: receivers of events as they happen.
//!
//! This module is for user interfaces and other readers of runs; an author of brains does not need it.
//!
//! A sink gets the events of every run of its runner; [`RunHandle::follow`](crate::runner::RunHandle::follow) reads one
//! run. It gets every event of a run in order, once and without gaps. Each sink of a run has a task that reads the
//! store from the sink's position, so a slow sink delays no other and needs no queue. After a failure the sink gets
//! the same event again; after 45 seconds of failures it is given up, without effect on the run, until a worker
//! claims the run again. The position is lost with the process, unless the sink is [durable](EventSink::is_durable).
//! Deltas are live only and may be lost.
//!
//! A sink that fails, panics or hangs never stops a run. One that blocks its thread delays the other work of that
//! thread: all of it on a current-thread runtime. Blocking work belongs in `spawn_blocking`, as in [`JsonLines`].

mod json_lines;
mod log;
mod recorder;

use futures::future::BoxFuture;

use crate::record::{Delta, Event, RunId, Seq};

pub use json_lines::JsonLines;
pub use log::TracingSink;
pub use recorder::Recorder;

/// Receives a run's events as they happen.
pub trait EventSink: Send + Sync + 'static {
    /// Returns the sink's name, for warnings.
    fn name(&self) -> &str;

    /// Returns the number of the next event that the sink wants of an existing run, for instance after a restart.
    /// With `None`, it gets the events after the last one that this runner or a clone of it delivered to it, and
    /// of a run that is new to them only later events. No event is delivered before it returns; a sink that
    /// panics here is given up.
    fn position(&self, _run: &RunId) -> Option<Seq> {
        None
    }

    /// Returns whether the store keeps the sink's position in each run, by the sink's name, which must then be unique and
    /// stay the same. Such a sink gets every event of a run that a runner with it begins or claims, from the first one on,
    /// also those that a machine appended before it died: from the worker that claims the run next, or from a
    /// [`Server`](crate::runner::Server) with the sink. It gets some events again after a crash, mostly those of the last
    /// second, and where several machines have opened a run.
    ///
    /// A [`position`](Self::position) of the sink's own takes precedence.
    fn is_durable(&self) -> bool {
        false
    }

    /// Receives the next event of a run.
    ///
    /// # Errors
    ///
    /// [`SinkError`] if the event was not received; it is sent again.
    fn event<'a>(&'a self, run: &'a RunId, event: &'a std::sync::Arc<Event>) -> BoxFuture<'a, Result<(), SinkError>>;

    /// Receives a piece of a streaming answer. It must not block.
    fn delta(&self, _run: &RunId, _delta: &Delta) {}
}

/// The reason why a sink did not receive an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub String);
