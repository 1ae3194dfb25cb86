//! The tries of a stage: how often, after which errors, and how long each may take.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::definition::RetriedFn;
use crate::dsl::brain_builder::{BrainBuilder, Guarded, HasStages, Staged};
use crate::dsl::trait_bounds::State;
use crate::error::Error;

/// Marks a last stage that takes `retry` and `timeout`: a step, a prompt, or one that runs brains.
#[derive(Debug)]
pub struct Tried(());

/// Marks a last stage that takes `timeout` alone: a loop, whose tools see the state `S`.
#[derive_where(Debug)]
pub struct Timed<S = ()>(PhantomData<fn(S)>);

/// Marks a last stage that takes neither `retry` nor `timeout`: a guard or a wait.
#[derive(Debug)]
pub struct Untried(());

/// A phase of a builder whose last stage can be tried again.
#[diagnostic::on_unimplemented(
    message = "`retry` follows a step, a prompt, or a stage that runs brains",
    label = "the last stage of this brain is none of these",
    note = "a loop repeats requests, answers and calls by itself; to run a whole loop again, nest it: `.brain(…).map_output(…).retry(…)`",
    note = "a wait or a guard does nothing that could be tried again"
)]
pub trait EndsInTried: HasStages {}

/// A phase of a builder whose last stage can have a timeout.
#[diagnostic::on_unimplemented(
    message = "`timeout` follows a step, a prompt, a loop, or a stage that runs brains",
    label = "the last stage of this brain is none of these",
    note = "a wait and a question to a person have their time in `.within(…)`",
    note = "to limit the wait for a child run, nest it: `.brain(…).map_output(…).timeout(…)`"
)]
pub trait EndsInTimed: HasStages {}

/// A phase of a builder whose last stage is a loop.
#[diagnostic::on_unimplemented(
    message = "`tools`, `plugin`, `exit_on`, `caller_tools` and `waits_for` follow a loop",
    label = "the last stage of this brain is not a loop",
    note = "write it right after the `loop` that it is about"
)]
pub trait EndsInLoop: HasStages {
    /// The state that the loop's tools see.
    type State: State;
}

impl EndsInTried for Staged<Tried> {}
impl<E: Serialize + DeserializeOwned + 'static> EndsInTried for Guarded<E, Tried> {}
impl<S: State> EndsInLoop for Staged<Timed<S>> {
    type State = S;
}
impl<E: Serialize + DeserializeOwned + 'static, S: State> EndsInLoop for Guarded<E, Timed<S>> {
    type State = S;
}
impl EndsInTimed for Staged<Tried> {}
impl<S> EndsInTimed for Staged<Timed<S>> {}
impl<E: Serialize + DeserializeOwned + 'static> EndsInTimed for Guarded<E, Tried> {}
impl<E: Serialize + DeserializeOwned + 'static, S> EndsInTimed for Guarded<E, Timed<S>> {}

/// How a stage is tried again after an error.
#[must_use = "`retry` takes it"]
#[derive_where(Debug)]
pub struct Retry {
    times: u32,
    #[derive_where(skip)]
    retried: RetriedFn,
}

impl Retry {
    /// Tries again so often after a transient error, with the runner's pauses.
    pub fn times(times: u32) -> Self {
        Self { times, retried: Arc::new(Error::is_transient) }
    }

    /// Chooses the errors after which it is tried again. That of a brain has its [`Failure`](crate::record::Failure) as the source.
    pub fn on(mut self, retried: impl Fn(&Error) -> bool + Send + Sync + 'static) -> Self {
        self.retried = Arc::new(retried);
        self
    }
}

impl<O, S, V: ?Sized, P> BrainBuilder<O, S, V, P> {
    /// Sets how the stage before it is tried again after an error: a step or a prompt, which is tried three times after a transient error
    /// without it, or each brain that a stage runs, which is not tried again without it.
    ///
    /// A failed brain first undoes what it has to undo; then another one begins, with the same options and a path of its own, as
    /// `Research/1.0`, and so with new idempotency keys. It sees nothing of the one before. The log has each try and when the next one
    /// begins, so a restart changes neither.
    ///
    /// ```
    /// use std::time::Duration;
    /// use positronic_core::dsl::Retry;
    /// use positronic_core::prelude::*;
    ///
    /// let summary = brain("Summary")
    ///     .options::<String>()
    ///     .step("Ask", async |cx| cx.model().ask(format!("Sum up: {}", *cx.options)).await)
    ///     .retry(Retry::times(5).on(|error| error.is_transient() || error.to_string().contains("busy")));
    /// let digest = brain("Digest")
    ///     .state(vec!["one".to_owned(), "two".to_owned()])
    ///     .map("Summaries", Vec::clone, summary, |_, all| all.join(" "))
    ///     .retry(Retry::times(1))
    ///     .timeout(Duration::from_mins(10));
    /// # let _ = digest;
    /// ```
    pub fn retry(self, Retry { times, retried }: Retry) -> Self
    where
        P: EndsInTried,
    {
        self.with_last(|last| (last.tries.retries, last.tries.retried) = (times, retried))
    }

    /// Sets how long the stage before it may take: each try of a step or a prompt, each try of each brain that a stage runs, or a loop.
    ///
    /// A step is dropped where it waits, and that is a transient error: what it has begun may have had its effect. The time of a loop or a
    /// brain begins with its first event, and goes on while it waits, while the run is paused, and without a worker. When it is over, all
    /// that is open ends: calls get results, and waits leave the inbox. Then it fails with the code
    /// [`timeout`](crate::record::EndReason::Timeout), a transient failure.
    pub fn timeout(self, time: Duration) -> Self
    where
        P: EndsInTimed,
    {
        self.with_last(|last| last.tries.timeout = Some(time))
    }
}
