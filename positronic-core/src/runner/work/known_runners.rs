//! The runners of a server.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::record::RunId;
use crate::runner::Runner;
use crate::store::StoreError;

/// The runners of a server, by the names under which they claim runs.
#[derive(Clone, Default)]
pub(super) struct KnownRunners(Arc<Mutex<HashMap<String, Runner>>>);

impl KnownRunners {
    pub(super) async fn add(&self, runner: &Runner) -> Result<(), StoreError> {
        let name = runner.worker().await?;
        self.0.lock().entry(name).or_insert_with(|| runner.clone());
        Ok(())
    }

    /// Returns the name of the runner if there is exactly one.
    pub(super) fn only(&self) -> Option<String> {
        let all = self.0.lock();
        all.keys().next().filter(|_| all.len() == 1).cloned()
    }

    /// Returns whether a worker of one of them works on a run.
    pub(super) fn have(&self, run: &RunId) -> bool {
        self.0.lock().values().any(|runner| runner.state.registry.has(run))
    }

    pub(super) fn get(&self, name: &str) -> Option<Runner> {
        self.0.lock().get(name).cloned()
    }

    pub(super) fn all(&self) -> Vec<Runner> {
        self.0.lock().values().cloned().collect()
    }
}
