//! Where a command waits for a store's answers.

use crate::app::failure::Failure;

/// Waits for an answer; no other thread is needed for it.
pub(crate) fn block_on<T, E: Into<Failure>>(future: impl Future<Output = Result<T, E>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(future).map_err(Into::into)
}
