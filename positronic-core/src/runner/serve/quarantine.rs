//! Quarantine of suspects: runs during whose work the process ended repeatedly.
//!
//! When a process ends, all of its runs count a crash, although only one of them may have caused it. A run becomes a suspect after
//! its second crash without progress. A process works on at most [`MAX_SUSPECTS`] suspects at once, and from the third crash on
//! only on one: the other runs then make progress, which ends their counts, and the one that ends the process does so alone until
//! it is parked. So any other run counts at most three crashes, which the retries of a tool allow by default. A suspect makes
//! room for the next one when its work has an outcome, or when it waits. Several suspects work at once at first, since many runs
//! that wait for each other take long. Runs that are not suspects are not delayed.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::machine::{RunState, SUSPECT};
use crate::record::RunId;

/// The maximum number of suspects that work at once, as long as none has more than [`SUSPECT`] crashes.
const MAX_SUSPECTS: usize = 16;
/// A suspect that works this long has survived; the next one may start.
const SURVIVED_AFTER: Duration = Duration::from_mins(5);

/// The suspects that a process works on now. Clones share them.
#[derive(Clone, Default)]
pub(in crate::runner) struct Quarantine(Arc<Mutex<Vec<Suspect>>>);

struct Suspect {
    run: RunId,
    crashes: u32,
    since: Instant,
}

/// The permit of a suspect to work, until it is dropped.
pub(in crate::runner) struct QuarantinePermit {
    quarantine: Quarantine,
    run: RunId,
}

impl Drop for QuarantinePermit {
    fn drop(&mut self) {
        self.quarantine.0.lock().retain(|suspect| suspect.run != self.run);
    }
}

/// The refusal of a permit: enough other suspects work.
pub(in crate::runner) struct QuarantineFull;

/// Returns the largest number of consecutive crashes during one piece of a run's work.
pub(in crate::runner) fn crashes_of(state: &RunState) -> u32 {
    state.crashes().map_or(0, |crashes| crashes.count)
}

/// Returns how many suspects may work at once beside one with this many crashes.
const fn at_once(crashes: u32) -> usize {
    if crashes <= SUSPECT { MAX_SUSPECTS } else { 1 }
}

impl Quarantine {
    /// Lets a run with this many crashes work. It needs a permit only if it is a suspect.
    pub(in crate::runner) fn enter(
        &self,
        run: &RunId,
        crashes: u32,
    ) -> Result<Option<QuarantinePermit>, QuarantineFull> {
        if crashes < SUSPECT {
            return Ok(None);
        }
        let mut suspects = self.0.lock();
        if !fits(&suspects, crashes) {
            return Err(QuarantineFull);
        }
        suspects.push(Suspect { run: run.clone(), crashes, since: Instant::now() });
        Ok(Some(QuarantinePermit { quarantine: self.clone(), run: run.clone() }))
    }

    /// Returns whether a run with this many crashes could work now.
    pub(super) fn has_room(&self, crashes: u32) -> bool {
        crashes < SUSPECT || fits(&self.0.lock(), crashes)
    }
}

fn fits(suspects: &[Suspect], crashes: u32) -> bool {
    let fresh = || suspects.iter().filter(|suspect| suspect.since.elapsed() < SURVIVED_AFTER);
    let worst = fresh().map(|suspect| suspect.crashes).fold(crashes, u32::max);
    fresh().count() < at_once(worst)
}

#[cfg(test)]
mod tests {
    use super::{MAX_SUSPECTS, Quarantine, SURVIVED_AFTER};
    use crate::record::RunId;

    fn run(number: usize) -> RunId {
        RunId::new(format!("run-{number}"))
    }

    #[tokio::test(start_paused = true)]
    async fn the_worst_suspect_limits_how_many_work_at_once() {
        for (crashes, most) in [(2, MAX_SUSPECTS), (3, 1), (9, 1)] {
            let quarantine = Quarantine::default();
            let permits: Vec<_> =
                (0..most).map(|n| quarantine.enter(&run(n), crashes).ok().flatten().unwrap()).collect();

            assert!(!quarantine.has_room(crashes), "{crashes}");
            assert!(!quarantine.has_room(2), "not even one with fewer crashes");
            assert!(quarantine.has_room(1), "other runs need no permit");
            drop(permits);
            assert!(quarantine.has_room(crashes));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn suspect_with_many_crashes_waits_until_all_others_are_done() {
        let quarantine = Quarantine::default();
        let first = quarantine.enter(&run(1), 2).ok().flatten();

        assert!(quarantine.enter(&run(2), 3).is_err());
        drop(first);
        assert!(quarantine.enter(&run(2), 3).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn suspect_that_works_on_for_long_delays_no_other() {
        let quarantine = Quarantine::default();
        let _long = quarantine.enter(&run(1), 7).ok().flatten();

        tokio::time::advance(SURVIVED_AFTER).await;

        assert!(quarantine.has_room(7));
    }
}
