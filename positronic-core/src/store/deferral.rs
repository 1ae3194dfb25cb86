//! Deferrals of runs with work: how long a run is hidden from workers after a failure or a refusal.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};

/// What a worker does with a reserved run that it does not claim, or with a run that it has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deferral {
    /// Ends the reservation or the pause. The count of failures stays.
    Released,
    /// Hides the run for a while after a failure.
    Paused {
        /// How often workers have failed at it in succession; 0 after a success.
        failures: u32,
        /// How long, on the store's clock.
        pause: Duration,
    },
    /// Hides the run from workers that cannot claim it as it is.
    Refused {
        /// Identifies their code, such as a hash of the brains' fingerprints, or is the owner of one worker's lease.
        code: String,
    },
}

impl Deferral {
    /// Hides a run after this many failures in succession: for one second after the first, doubled after each up to five minutes.
    #[must_use]
    pub fn after_failures(failures: u32) -> Self {
        Self::Paused { failures, pause: pause_after(failures) }
    }
}

/// The longest pause after a failure.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// Returns the pause after a number of failures in succession: one second, doubled up to five minutes.
pub(crate) fn pause_after(failures: u32) -> Duration {
    let pauses = ExponentialBuilder::new().with_min_delay(Duration::from_secs(1)).with_factor(2.0);
    let mut pauses = pauses.with_max_delay(LONGEST_PAUSE).without_max_times().build();
    pauses.nth(failures.clamp(1, 16) as usize - 1).unwrap_or(LONGEST_PAUSE)
}

/// How many refusals of a run a store keeps at least: those that came last.
pub const REFUSALS: usize = 16;
