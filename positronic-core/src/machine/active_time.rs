//! Active time: what counts for limits of time.
//!
//! The time between two events of one worker counts for the frames that were active all that time, measured by the clock of
//! that worker. Signals come from machines with other clocks, and come between these events:
//!
//! - A frame that was not active before the first signal counts nothing: it is unknown when the signal came.
//! - A frame that was not active all the time counts by the times of the signals, and never more than the worker's clock says.
//!
//! The time after a worker's last event does not count if another worker continues the run.

use super::active_frame::ActiveFrame;
use super::stages::Frame as _;
use super::state::RunState;
use crate::record::encoding::micros::micros;
use crate::record::{Event, Path};

impl RunState {
    /// Returns the frames with a time limit that are active until an event.
    pub(super) fn active_before(&self, event: &Event) -> Vec<Path> {
        let mut active = Vec::new();
        let counts = event.epoch.is_none() || event.clock() > self.worker_at;
        if let Some(root) = self.root.as_deref().filter(|_| counts && self.paused.is_none()) {
            root.collect_active(false, &mut active);
        }
        active
    }

    /// Counts the time before an event. `active` are the frames that were active until then; `None` without a worker.
    pub(super) fn count_active(&mut self, event: &Event, active: Option<&[Path]>) {
        let known = self.since_worker.take();
        let logged = micros(event.at.since(self.at));
        let before = match (known, active) {
            (Some(known), Some(active)) => known.into_iter().map(|frame| frame.until(active, logged)).collect(),
            (None, Some(active)) => active.iter().map(|path| ActiveFrame::new(path.clone(), logged)).collect(),
            (_, None) => Vec::new(),
        };
        if event.epoch.is_none() {
            self.since_worker = active.is_some().then_some(before);
            return;
        }
        let passed = micros(event.clock().since(self.worker_at));
        for ActiveFrame { path, logged, throughout } in before {
            self.add_active(&path, if throughout { passed } else { logged.min(passed) });
        }
        self.worker_at = event.clock();
    }
}
