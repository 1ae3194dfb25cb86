//! What a tick does while runs of its schedule are open: it starts beside them, waits, is skipped, or cancels them.

use super::policy::Overlap;
use super::record::ScheduleRecord;
use super::state::{MAX_QUEUED, QueuedTick};
use super::tick_outcome::{Tick, TickOutcome, TickReason};
use crate::record::{RunId, TickCause, Timestamp};

impl ScheduleRecord {
    /// Lets a tick start, wait or be skipped.
    pub(super) fn enqueue(&mut self, nominal: Timestamp, cause: TickCause, overlap: Overlap, now: Timestamp) -> Tick {
        let is_busy = !self.running.is_empty() || !self.queue.is_empty();
        // The first tick of the queue does not wait if no run is in its way.
        let waiting = self.queue.len().saturating_sub(usize::from(self.running.is_empty()));
        let skipped = match overlap {
            Overlap::Skip if is_busy => Some(self.running_reason()),
            Overlap::BufferOne if is_busy && waiting >= 1 => Some(TickReason::BufferFull),
            Overlap::BufferAll if is_busy && waiting >= MAX_QUEUED => Some(TickReason::BufferFull),
            Overlap::Allow if self.queue.len() >= MAX_QUEUED => Some(TickReason::BufferFull),
            Overlap::CancelOther => {
                let reason = TickReason::Replaced { by: nominal };
                self.empty_queue(
                    now,
                    |tick| tick.overlap == Overlap::CancelOther,
                    |_| TickOutcome::Skipped { reason: reason.clone() },
                );
                None
            }
            Overlap::Skip | Overlap::BufferOne | Overlap::BufferAll | Overlap::Allow => None,
        };
        if let Some(reason) = skipped {
            return self.record(nominal, cause, now, TickOutcome::Skipped { reason });
        }
        self.queue.push(QueuedTick { nominal, cause, overlap, ready: None, by: None });
        let outcome = if self.is_ready(self.queue.len() - 1) { TickOutcome::Due } else { TickOutcome::Buffered };
        self.record(nominal, cause, now, outcome)
    }

    fn running_reason(&self) -> TickReason {
        TickReason::Running { run: self.running.last().map(|tick| tick.run.clone()) }
    }

    /// Returns whether a queued tick may start now.
    pub(super) fn is_ready(&self, place: usize) -> bool {
        let waits = |tick: &QueuedTick| tick.overlap != Overlap::Allow;
        self.queue
            .get(place)
            .is_some_and(|tick| !waits(tick) || (self.running.is_empty() && !self.queue.iter().take(place).any(waits)))
    }

    /// Returns the runs that a waiting tick cancels.
    pub fn cancels(&self) -> impl Iterator<Item = &RunId> {
        let cancels = self.queue.iter().any(|tick| tick.overlap == Overlap::CancelOther);
        self.running.iter().filter(move |_| cancels).map(|tick| &tick.run)
    }
}
