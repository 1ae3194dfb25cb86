//! The numbers of runs by their status.

use crate::record::Status;

/// The numbers of runs by their status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunCounts([u64; Status::ALL.len()]);

impl RunCounts {
    /// Adds runs with a status.
    pub fn add(&mut self, status: Status, runs: u64) {
        if let Some((_, count)) = Status::ALL.iter().zip(&mut self.0).find(|(known, _)| **known == status) {
            *count = count.saturating_add(runs);
        }
    }

    /// Returns the number of runs with a status.
    #[must_use]
    pub fn of(&self, status: Status) -> u64 {
        Status::ALL.iter().zip(self.0).find(|(known, _)| **known == status).map_or(0, |(_, count)| count)
    }

    /// Returns the number of all runs.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |total, count| total.saturating_add(*count))
    }
}
