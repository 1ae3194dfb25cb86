//! The sleep: a wait for a time alone.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::tries::Untried;
use crate::definition::{StageBody, StateValue, WaitStage};
use crate::dsl::brain_builder::{BrainBuilder, Phase, TakesStages};
use crate::dsl::services::Requirement;
use crate::dsl::trait_bounds::{Options, State};
use crate::record::{StageKind, Timestamp, WaitDeadline};

impl<O: Options, S: State, V: Requirement + ?Sized, P: Phase> BrainBuilder<O, S, V, P> {
    /// Adds a sleep for a time that follows from the state. The time at which it ends is computed once and is in the log, so a
    /// restart does not make it longer. No worker is needed meanwhile: the next one that looks for work after that time wakes the
    /// run. Pausing the run does not move the time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use positronic_core::prelude::*;
    ///
    /// let reminder = brain("Reminder")
    ///     .state(24)
    ///     .sleep("Wait a day", |hours| Duration::from_hours(*hours))
    ///     .step("Remind", async |cx| Ok(format!("It was {} hours ago.", cx.state)));
    /// # let _ = reminder;
    /// ```
    ///
    /// # Panics
    ///
    /// If the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    pub fn sleep(
        self,
        name: &str,
        time: impl Fn(&S) -> Duration + Send + Sync + 'static,
    ) -> BrainBuilder<O, S, V, P::Next<Untried>>
    where
        P: TakesStages,
    {
        self.sleeping(name, move |state, now| WaitDeadline::after(now, time(state)))
    }

    /// Adds a sleep until a time that follows from the state, as [`sleep`](Self::sleep). A time that is over ends it at once.
    ///
    /// # Panics
    ///
    /// As [`sleep`](Self::sleep).
    #[track_caller]
    pub fn sleep_until(
        self,
        name: &str,
        time: impl Fn(&S) -> Timestamp + Send + Sync + 'static,
    ) -> BrainBuilder<O, S, V, P::Next<Untried>>
    where
        P: TakesStages,
    {
        self.sleeping(name, move |state, _| WaitDeadline::at(time(state)))
    }

    #[track_caller]
    fn sleeping(
        self,
        name: &str,
        due: impl Fn(&S, Timestamp) -> WaitDeadline + Send + Sync + 'static,
    ) -> BrainBuilder<O, S, V, P::Next<Untried>>
    where
        P: TakesStages,
    {
        self.stage(
            name,
            StageBody::Wait(WaitStage {
                kind: StageKind::Sleep,
                webhooks: Vec::new(),
                begin: Arc::new(move |state, now| Ok((Vec::new(), Some(due(&*state.shared::<S>()?, now))))),
                finish: Arc::new(|state: &StateValue, _| Ok(Value::clone(state.json()))),
            }),
        )
    }
}
