//! Release of all runs of a runner, as before its process ends.

use std::time::Duration;

use crate::runner::{Release, Runner};

/// How long a worker may take to record the release of its run after the grace period. A failed append would be retried
/// for longer, but a container kills a process ten seconds after the signal to stop.
const RECORDING_TIME: Duration = Duration::from_secs(1);

impl Runner {
    /// Releases all runs, so that other workers can claim them at once. No new work begins; work in flight is
    /// recorded if it ends within the builder's `release_grace`, and abandoned otherwise. Plugins that prepare an
    /// iteration are not waited for. From now on, neither this runner nor a clone of it starts or resumes a run.
    ///
    /// It returns when the last run is released, at the latest a second after the grace period, even if code
    /// blocks its thread or the store cannot be written. [`Release`] says which runs are released. A process that ends
    /// earlier leaves its work as a crash does.
    pub async fn release(&self) -> Release {
        let release = self.state.registry.release(self.settings.release_grace.saturating_add(RECORDING_TIME)).await;
        if !release.kept.is_empty() {
            tracing::warn!(runs = ?release.kept, "not all runs could be released");
        }
        release
    }
}
