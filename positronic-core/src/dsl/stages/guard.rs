//! The guard: a check of the state, which ends the brain if it does not pass.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::definition::{StageBody, StateValue, encode, read_value};
use crate::dsl::brain::Brain;
use crate::dsl::brain_builder::{BrainBuilder, Phase, TakesGuard};
use crate::dsl::services::Requirement;
use crate::dsl::trait_bounds::{Options, State};
use crate::dsl::usage_panic::usage_panic;
use crate::error::Error;

/// The reason of a guard that returns a `bool`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, thiserror::Error)]
#[error("a guard did not pass")]
pub struct Skipped;

/// The return value of a guard's closure: a `bool`, or a `Result` with the reason.
#[diagnostic::on_unimplemented(
    message = "a guard returns whether it passes, not `{Self}`",
    label = "this is neither a `bool` nor a `Result<(), E>`",
    note = "the reason `E` needs `serde::Serialize` and `serde::Deserialize`"
)]
pub trait GuardCheck {
    /// The reason if it does not pass.
    type Reason: Serialize + DeserializeOwned + 'static;

    /// Returns the check as a result.
    ///
    /// # Errors
    ///
    /// The reason, if it does not pass.
    fn into_result(self) -> Result<(), Self::Reason>;
}

impl GuardCheck for bool {
    type Reason = Skipped;

    fn into_result(self) -> Result<(), Skipped> {
        if self { Ok(()) } else { Err(Skipped) }
    }
}

impl<E: Serialize + DeserializeOwned + 'static> GuardCheck for Result<(), E> {
    type Reason = E;

    fn into_result(self) -> Self {
        self
    }
}

impl<O: Options, S: State, V: Requirement + ?Sized, P: Phase> BrainBuilder<O, S, V, P> {
    /// Adds a guard. If it does not pass, the rest of this brain is skipped, and its callers get the reason: a brain with guards
    /// has the result `Result<R, E>`, or `Result<R, Skipped>` for a guard that returns a `bool`. [`Brain::otherwise`] computes a
    /// result from the reason.
    ///
    /// That is a completion, and not a failure. A guard of a nested brain ends only that brain. The closure must be pure: until its
    /// outcome is in the log, a crash lets it run again.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    /// # use positronic_core::model::scripted::ScriptedModel;
    ///
    /// let refund = brain("Refund")
    ///     .state(500)
    ///     .guard("Small enough", |amount| if *amount < 200 { Ok(()) } else { Err(format!("{amount} is too much")) })
    ///     .step("Pay", async |cx| Ok(format!("paid {}", cx.state)))
    ///     .build();
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// # let runner = Runner::new(ScriptedModel::new([]));
    /// let paid: std::result::Result<String, String> = runner.start(&refund, ()).await?.result().await?;
    /// assert_eq!(paid, Err("500 is too much".to_owned()));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    pub fn guard<G: GuardCheck>(
        self,
        name: &str,
        check: impl Fn(&S) -> G + Send + Sync + 'static,
    ) -> BrainBuilder<O, S, V, P::Guarded>
    where
        P: TakesGuard<G::Reason>,
    {
        let checked = move |state: &StateValue| match check(&*state.shared::<S>()?).into_result() {
            Ok(()) => Ok(None),
            Err(reason) => encode(&reason, state.max_bytes()).map(Some),
        };
        self.stage(name, StageBody::Guard(Arc::new(checked)))
    }
}

impl<O, R, E, V: ?Sized> Brain<O, Result<R, E>, V>
where
    R: Serialize + 'static,
    E: DeserializeOwned + 'static,
{
    /// Computes the result from the reason of a guard that did not pass.
    ///
    /// # Panics
    ///
    /// If the brain has no guard.
    #[track_caller]
    pub fn otherwise(self, result: impl Fn(E) -> R + Send + Sync + 'static) -> Brain<O, R, V> {
        self.with(|definition| {
            if !definition.is_guarded() {
                usage_panic(&format!("`{}` has no guard, so `otherwise` would never run", definition.title));
            }
            definition.otherwise = Some(Arc::new(move |reason, max_bytes| {
                let reason = read_value(reason).map_err(|error| Error::new(error.to_string()))?;
                encode(&result(reason), max_bytes)
            }));
        })
    }
}
