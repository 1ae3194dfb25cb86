//! The positions of durable sinks.

use super::{BoxFuture, StoreError};
use crate::record::{RunId, Seq};

/// Keeps the positions of durable sinks in the logs.
#[diagnostic::on_unimplemented(note = "a store around another one gets this trait by implementing `StoreWrapper`")]
pub trait SinkStore: Send + Sync + 'static {
    /// Returns the number of the next event of a run for a durable sink; `None` if no claim has named the sink
    /// ([`Append::sinks`](super::Append::sinks)).
    fn sink_position<'a>(&'a self, run: &'a RunId, sink: &'a str) -> BoxFuture<'a, Result<Option<Seq>, StoreError>>;

    /// Sets the next event of a run for a durable sink that the run has, unless it is further already. With `done`, that
    /// worker stops feeding the sink, if it has all events of the run now.
    fn set_sink_position<'a>(
        &'a self,
        run: &'a RunId,
        sink: &'a str,
        next: Seq,
        done: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Finds up to `limit` runs whose events a worker without a live lease fed to a durable sink, and makes `owner` the
    /// one that feeds them.
    fn take_sink<'a>(
        &'a self,
        sink: &'a str,
        owner: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunId>, StoreError>>;
}
