//! The runtime of a command.

use std::time::Duration;

/// Runs a command, and returns its outcome. A thread that still blocks a second later, such as one with an open question, does
/// not delay the exit.
pub(crate) fn block_on<T, E: From<std::io::Error>>(command: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(command);
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}
