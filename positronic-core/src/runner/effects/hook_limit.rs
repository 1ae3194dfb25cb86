//! Time limit of the guards of a loop and of the hooks of its plugins: the runner's.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, FusedFuture as _};

use crate::definition::Scope;
use crate::error::{Error, Result, caught};
use crate::machine::Overdue;
use crate::record::Path;
use crate::runner::Clock;

/// Awaits a guard or a hook, which asks its questions at a path. A panic is an error, and so is more time than it has.
pub(in crate::runner) async fn in_time<T: Send>(
    scope: &Scope,
    at: &Path,
    name: &str,
    hook: impl Future<Output = Result<T>> + Send,
) -> Result<T> {
    let mut result = None;
    let limited = scope.link.limit(at, Box::pin(async { result = Some(caught(hook).await) })).await;
    let late = |limit| Error::permanent(Overdue(format!("{name} took longer than {limit:?}")));
    limited.map_err(late)?;
    result.unwrap_or_else(|| Err(Error::new(format!("{name} has not ended"))))
}

/// Awaits a hook within a limit of time, which does not count while a question that it has asked is open. `questions` returns how many it has asked,
/// and whether one is open. Without a clock the run has ended, and its worker drops the hook.
///
/// # Errors
///
/// The limit if it takes longer.
pub(super) async fn limit_hook(
    clock: Option<Arc<dyn Clock>>,
    limit: Duration,
    questions: impl Fn() -> (u32, bool) + Send,
    hook: BoxFuture<'_, ()>,
) -> Result<(), Duration> {
    let Some(clock) = clock else {
        hook.await;
        return Ok(());
    };
    let mut hook = hook.fuse();
    loop {
        let (before, was_open) = questions();
        if clock.limit(limit, Box::pin(&mut hook)).await {
            return Ok(());
        }
        // A hook that has asked something meanwhile has the time again.
        if !was_open && (before, false) == questions() {
            return Err(limit);
        }
        // It has completed after the limit of a clock that does not interrupt.
        if hook.is_terminated() {
            return Ok(());
        }
    }
}
