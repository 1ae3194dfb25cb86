//! Blocking work on dedicated threads.

use std::panic::resume_unwind;

/// Runs blocking work, such as reading a file. Dropping the future does not cancel it.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is shutting down, and so is the caller.
            Err(_) => std::future::pending().await,
        },
    }
}
