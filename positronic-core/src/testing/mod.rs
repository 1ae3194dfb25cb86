//! Tests of brains: scripted replies, a fixed clock and fixed ids, and runs as snapshots.
//!
//! A [`Test`] runs brains in lockstep: it awaits everything in flight and then records it in path order, so the same
//! test gives the same log on every machine. [`Lockstep`] does that for any runner. Its clock is tokio's: under
//! `start_paused = true` it stands still while code runs and jumps over pauses, so no test sleeps.
//!
//! A single tool is tested without a model: [`ToolTest`] calls it with a state, options and services.
//!
//! A paused clock also jumps while a tool waits for real input or output, because tokio sees only idle tasks. A
//! `Test` therefore sets no timer for a tool ([`TestClock::without_timers`]): a tool times out by the clock after it has
//! ended, or in real time before. A client's own timeout is a timer, though: test a tool that asks a real server without
//! `start_paused`, or without the client's timeout.
//!
//! ```
//! use positronic_core::model::scripted::{Reply, ScriptedModel};
//! use positronic_core::prelude::*;
//! use positronic_core::testing::Test;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let greeter = brain("Greeter").r#loop("Greet", |cx| cx.system("Greet.").input("Hello!"));
//! let test = Test::new(ScriptedModel::new([Reply::text("Good morning.")]));
//!
//! let story = test.run(&greeter, ()).await;
//!
//! assert_eq!(story.transcript(), "# Greet\nuser: Hello!\nassistant: Good morning.\n= {\"type\":\"answered\"}\n");
//! # }
//! ```

mod clock;
mod lockstep;
mod play;
mod story;
mod tool_test;

use serde::de::DeserializeOwned;

use crate::dsl::Runnable;
use crate::model::Model;
use crate::record::Start;
use crate::runner::{RunHandle, Runner};

pub use clock::{CountedIds, TestClock};
pub use lockstep::Lockstep;
pub use story::Story;
pub use tool_test::{Called, ToolTest};

/// Runs brains so that their logs are the same on every machine.
#[derive(Debug, Clone)]
pub struct Test {
    runner: Runner,
}

impl Test {
    /// Creates a test whose loops are answered by `model`.
    pub fn new(model: impl Model) -> Self {
        Self::with(
            Runner::new(model)
                .clock(TestClock::default().without_timers())
                .ids(CountedIds::default())
                .lockstep(true)
                .linger(std::time::Duration::MAX),
        )
    }

    /// Creates a test of another runner.
    #[must_use]
    pub const fn with(runner: Runner) -> Self {
        Self { runner }
    }

    /// Returns the runner, to do more than run one brain.
    #[must_use]
    pub const fn runner(&self) -> &Runner {
        &self.runner
    }

    /// Changes the runner, for instance to add a sink.
    #[must_use]
    pub fn map(self, change: impl FnOnce(Runner) -> Runner) -> Self {
        Self { runner: change(self.runner) }
    }

    /// Starts a brain.
    ///
    /// # Panics
    ///
    /// If the run cannot start, with the reason.
    #[track_caller]
    pub fn start<B: Runnable>(&self, brain: B, options: B::Options) -> impl Future<Output = RunHandle<B::Result>> {
        let place = std::panic::Location::caller();
        async move {
            match self.runner.start_with(brain, options, Start::default()).await {
                Ok(run) => run,
                Err(error) => fail(place, &error),
            }
        }
    }

    /// Runs a brain until it has ended or waits.
    ///
    /// # Panics
    ///
    /// If the run cannot start, with the reason.
    #[track_caller]
    pub fn run<B: Runnable>(&self, brain: B, options: B::Options) -> impl Future<Output = Story> {
        let started = self.start(brain, options);
        async move { Story::of(&started.await).await }
    }
}

#[expect(clippy::panic, reason = "a test that cannot go on says why at its own line")]
fn fail(place: &std::panic::Location<'_>, error: &dyn std::error::Error) -> ! {
    panic!("{place}: {error}")
}

impl Story {
    /// Waits until a run has ended or waits, and reads it.
    pub async fn of<R: DeserializeOwned>(run: &RunHandle<R>) -> Self {
        let settled = run.settled().await;
        run.flushed(std::time::Duration::from_secs(5)).await;
        let events = run.events(crate::record::Seq(0)).await.unwrap_or_default();
        Self::new(settled, events, run.document())
    }
}
