//! Work that takes long, where it does not block other requests.

use crate::problem::{Problem, ProblemType};

/// From how many bytes on a body is not decoded where it would block other requests, and few bodies are in memory at once.
pub(crate) const LARGE: usize = 64 << 10;

/// Runs work that takes long where it does not block other requests.
pub(crate) async fn off_the_executor<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Problem::new(ProblemType::Internal).detail(error))
}
