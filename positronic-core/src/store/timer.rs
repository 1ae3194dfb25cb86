//! Timers, which outlive the runs that set them.

use super::{BoxFuture, StoreError, TimerFilter};
use crate::record::{Timer, TriggerId};

/// Keeps timers, which start runs.
#[diagnostic::on_unimplemented(note = "a store around another one gets this trait by implementing `StoreWrapper`")]
pub trait TimerStore: Send + Sync + 'static {
    /// Lists timers, earliest due time first. They outlive the runs that set them.
    fn timers<'a>(&'a self, filter: &'a TimerFilter) -> BoxFuture<'a, Result<Vec<Timer>, StoreError>>;

    /// Removes a timer and returns whether it existed. Timers that a tool cancels are removed by an append.
    fn remove_timer<'a>(&'a self, id: &'a TriggerId) -> BoxFuture<'a, Result<bool, StoreError>>;
}
