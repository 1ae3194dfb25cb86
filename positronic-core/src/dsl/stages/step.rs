//! The step: a function from the state to the next one.

use std::sync::Arc;

use super::tries::Tried;
use crate::definition::{StageBody, StepFn, encode_state};
use crate::dsl::brain_builder::{BrainBuilder, HasStages, Phase, TakesStages};
use crate::dsl::context::StepContext;
use crate::dsl::services::Requirement;
use crate::dsl::trait_bounds::{Options, State};
use crate::error::Result;

impl<O: Options, S: State, V: Requirement + ?Sized, P: Phase> BrainBuilder<O, S, V, P> {
    /// Adds a step: a function from the state to the next one.
    ///
    /// A closure without captures is `async |cx| …`. One with captures clones them for every
    /// future:
    ///
    /// ```
    /// use positronic_core::prelude::*;
    ///
    /// let greeting = "Hello".to_owned();
    /// let greeter = brain("Greeter").step("Greet", move |_| {
    ///     let greeting = greeting.clone();
    ///     async move { Ok(greeting) }
    /// });
    /// # let _ = greeter;
    /// ```
    ///
    /// # Panics
    ///
    /// If the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    pub fn step<S2, F, Fut>(self, name: &str, step: F) -> BrainBuilder<O, S2, V, P::Next<Tried>>
    where
        S2: State,
        F: Fn(StepContext<O, S, V::Services>) -> Fut + Send + Sync + 'static, // captures? move |cx| { let x = x.clone(); async move { … } }
        Fut: Future<Output = Result<S2>> + Send + 'static,
        P: TakesStages,
    {
        let step = Arc::new(step);
        self.stage(
            name,
            StageBody::Step(Arc::new(move |scope| {
                let step = Arc::clone(&step);
                Box::pin(async move {
                    let max_bytes = scope.max_bytes();
                    encode_state(&step(StepContext::new(scope)?).await?, max_bytes)
                })
            })),
        )
    }
}

impl<O: Options, S: State, V: Requirement + ?Sized, P: HasStages> BrainBuilder<O, S, V, P> {
    /// Sets what undoes the stage before it, after it has completed. `cx.state` is the state after that stage.
    ///
    /// When the brain fails for good or is cancelled, or a brain around it does, the completed stages are undone one after the other, the last
    /// one first, and then it ends. An undo is tried again as a step is; if it fails for good, that is recorded, and the others run. What it does to
    /// the outside world can happen twice if the process ends meanwhile: [`StepContext::once`] and
    /// [`StepContext::idempotency_key`] are for that.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    ///
    /// # async fn charge() -> Result<String> { Ok("payment-7".to_owned()) }
    /// # async fn pay_back(_: &str) -> Result<()> { Ok(()) }
    /// # async fn ship() -> Result<()> { Ok(()) }
    /// let order = brain("Order")
    ///     .step("Charge", async |_| charge().await)
    ///     .compensate(async |cx| pay_back(&cx.state).await)
    ///     .step("Ship", async |_| ship().await);
    /// # let _ = order;
    /// ```
    ///
    /// After a nested brain, it takes the place of what the brain's own stages have.
    pub fn compensate<F, Fut>(self, undo: F) -> Self
    where
        F: Fn(StepContext<O, S, V::Services>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        let undo = Arc::new(undo);
        let undo: StepFn = Arc::new(move |scope| {
            let undo = Arc::clone(&undo);
            Box::pin(async move {
                undo(StepContext::new(scope)?).await?;
                Ok(serde_json::Value::Null)
            })
        });
        self.with_last(|last| last.undo = Some(undo))
    }
}
