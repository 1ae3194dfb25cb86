//! The step: a function from the state to the next one.

use std::sync::Arc;

use crate::definition::{StageBody, encode_state};
use crate::dsl::brain_builder::{BrainBuilder, Phase, TakesStages};
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
    pub fn step<S2, F, Fut>(self, name: &str, step: F) -> BrainBuilder<O, S2, V, P::Next>
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
