//! The nested brain, with the maps of its options and its result.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::definition::{NestedDefinition, StageBody, StateValue, decode, encode, encode_state};
use crate::dsl::brain::Brain;
use crate::dsl::services::{Requirement, Within};
use crate::dsl::trait_bounds::{Options, State};

impl<O: Options, S: State, N: Requirement> Brain<O, S, N> {
    /// Adds a nested brain. `input` computes its options from the state, `output` the next state from its result.
    ///
    /// # Panics
    ///
    /// If the name is empty, a number, contains a `/`, or is taken, or the nested brain has no stages.
    #[track_caller]
    pub fn brain<O2, S2, N2, R2, S3>(
        self,
        name: &str,
        brain: Brain<O2, S2, N2, R2>,
        input: impl Fn(&S) -> O2 + Send + Sync + 'static,
        output: impl Fn(S, R2) -> S3 + Send + Sync + 'static,
    ) -> Brain<O, S3, N>
    where
        O2: Options,
        N2: Within<N::Services>,
        R2: DeserializeOwned,
        S3: State,
    {
        let nested = NestedDefinition {
            definition: brain.complete(),
            input: Arc::new(move |state, _| encode(&input(&*state.shared::<S>()?), state.max_bytes())),
            output: Some(Arc::new(move |state: &StateValue, result: &Value| {
                encode_state(&output(state.owned()?, decode("the brain's result", result)?), state.max_bytes())
            })),
        };
        self.stage(name, StageBody::Brain(nested))
    }
}
