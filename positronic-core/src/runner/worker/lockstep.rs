//! Lockstep: outcomes are recorded when nothing is in flight any more, in the order of their paths, so that a log does not depend on
//! how long work takes. Otherwise each is recorded when it arrives.
//!
//! Only tests switch it on ([`Lockstep`](crate::testing::Lockstep)), and yet the worker has it. What a test replaces from outside (the model,
//! the store, the clock, the author's code) sees one effect each, and neither what else is in flight nor the order of the reports. A second work
//! loop for tests would test itself.

use crate::record::Path;
use crate::runner::effects::report::Report;

/// The reports that a worker holds back.
pub(super) struct HeldReports {
    is_lockstep: bool,
    held: Vec<Report>,
}

impl HeldReports {
    pub(super) const fn new(is_lockstep: bool) -> Self {
        Self { is_lockstep, held: Vec::new() }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns a report that is recorded at once, and holds back another one. What waits for its answer cannot wait for others.
    pub(super) fn pass(&mut self, report: Box<Report>, is_awaited: impl Fn(&Path) -> bool) -> Option<Box<Report>> {
        let waits = match &*report {
            _ if !self.is_lockstep => false,
            Report::Question { .. } | Report::Value { .. } | Report::Child { .. } => false,
            Report::Done { path, .. } => is_awaited(path),
            Report::Output { .. } => true,
        };
        if !waits {
            return Some(report);
        }
        self.held.push(*report);
        None
    }

    /// Takes all reports in the order of their paths once the awaited effects have ended, those in flight.
    pub(super) fn take_complete<'p>(&mut self, mut awaited: impl Iterator<Item = &'p Path>) -> Vec<Report> {
        let is_done =
            |at: &Path| self.held.iter().any(|report| matches!(report, Report::Done { path, .. } if path == at));
        if !awaited.all(is_done) {
            return Vec::new();
        }
        self.held.sort_by_key(|report| report.path().sort_key());
        std::mem::take(&mut self.held)
    }
}
