//! The nested brain, with the maps of its options and its result.

use std::sync::Arc;

use serde_json::Value;

use crate::definition::{NestedDefinition, StageBody, StateValue, decode, encode, encode_state};
use crate::dsl::brain::IntoBrain;
use crate::dsl::brain_builder::{BrainBuilder, TakesStages};
use crate::dsl::services::{Requirement, Within};
use crate::dsl::trait_bounds::{Options, State};

impl<O: Options, S: State, V: Requirement + ?Sized, P> BrainBuilder<O, S, V, P> {
    /// Adds a nested brain. `input` computes its options from the state, `output` the next state from its result.
    ///
    /// # Panics
    ///
    /// If the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    pub fn brain<B, S2>(
        self,
        name: &str,
        brain: B,
        input: impl Fn(&S) -> B::Options + Send + Sync + 'static,
        output: impl Fn(S, B::Result) -> S2 + Send + Sync + 'static,
    ) -> BrainBuilder<O, S2, V>
    where
        B: IntoBrain<Services: Within<V::Services>>,
        S2: State,
        P: TakesStages,
    {
        let nested = NestedDefinition {
            definition: brain.into_brain().into_definition(),
            input: Arc::new(move |state, _| encode(&input(&*state.shared::<S>()?), state.max_bytes())),
            output: Some(Arc::new(move |state: &StateValue, result: &Value| {
                encode_state(&output(state.owned()?, decode("the brain's result", result)?), state.max_bytes())
            })),
        };
        self.stage(name, StageBody::Brain(nested))
    }
}
