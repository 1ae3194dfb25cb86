//! Work that blocks, on threads that may.

use std::panic::resume_unwind;

/// Does work that blocks, such as reading a file. Dropping the future does not end the work.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is being shut down, and so is whoever waits here.
            Err(_) => std::future::pending().await,
        },
    }
}
