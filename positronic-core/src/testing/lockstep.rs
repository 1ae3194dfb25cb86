//! Runners that write the same log on every machine.

use crate::runner::Runner;

/// Makes the order of a runner's log independent of how long its work takes.
pub trait Lockstep: Sized {
    /// Sets whether it awaits everything in flight and then appends the outcomes in path order. Otherwise it appends them in
    /// the order of completion.
    #[must_use]
    fn lockstep(self, lockstep: bool) -> Self;
}

impl Lockstep for Runner {
    fn lockstep(mut self, lockstep: bool) -> Self {
        self.settings.lockstep = lockstep;
        self
    }
}
