//! A frame whose active time is not counted yet.

use serde::{Deserialize, Serialize};

use crate::record::Path;

/// A frame that was active before the first signal since the worker's last event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveFrame {
    pub(super) path: Path,
    /// How long it was active by the times of the signals, in microseconds.
    pub(super) logged: u64,
    /// Whether it was active all the time.
    pub(super) throughout: bool,
}

impl ActiveFrame {
    pub(super) const fn new(path: Path, logged: u64) -> Self {
        Self { path, logged, throughout: true }
    }

    /// Continues it until the next event.
    pub(super) fn until(mut self, active: &[Path], logged: u64) -> Self {
        if active.contains(&self.path) {
            self.logged = self.logged.saturating_add(logged);
        } else {
            self.throughout = false;
        }
        self
    }
}
