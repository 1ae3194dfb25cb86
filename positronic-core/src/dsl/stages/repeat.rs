//! The stage `repeat`: a brain that runs again until the state is done.

use std::sync::Arc;

use serde_json::Value;

use super::tries::Tried;
use crate::definition::{NestedDefinition, RepeatStage, StageBody, StateValue, decode, encode, encode_state};
use crate::dsl::brain::IntoBrain;
use crate::dsl::brain_builder::{BrainBuilder, Phase, TakesStages};
use crate::dsl::services::{Requirement, Within};
use crate::dsl::trait_bounds::{Options, State};
use crate::dsl::usage_panic::usage_panic;

impl<O: Options, S: State, V: Requirement + ?Sized, P: Phase> BrainBuilder<O, S, V, P> {
    /// Runs a brain again and again, at most `rounds` times: `input` computes its options from the state, `output` the next state from
    /// its result, and `is_done` says whether that state is done. If it is not after the last round, the brain fails: what follows
    /// relies on it.
    ///
    /// Each round is a brain of its own: it sees no answer, wait or value of an earlier one, except through the state.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    /// # use positronic_core::model::scripted::ScriptedModel;
    ///
    /// let halve = brain("Halve").options::<u32>().step("Halve", async |cx| Ok(*cx.options / 2));
    /// let small = brain("Small").state(100).repeat("Halve", 10, halve, |n| *n, |_, half| half, |n| *n < 10);
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// # let runner = Runner::new(ScriptedModel::new([]));
    /// assert_eq!(runner.start(&small, ()).await?.result().await?, 6);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `rounds` is 0; or if the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    pub fn repeat<B: IntoBrain<Services: Within<V::Services>>>(
        self,
        name: &str,
        rounds: u32,
        brain: B,
        input: impl Fn(&S) -> B::Options + Send + Sync + 'static,
        output: impl Fn(S, B::Result) -> S + Send + Sync + 'static,
        is_done: impl Fn(&S) -> bool + Send + Sync + 'static,
    ) -> BrainBuilder<O, S, V, P::Next<Tried>>
    where
        P: TakesStages,
    {
        if rounds == 0 {
            usage_panic(&format!("the stage `{name}` has no rounds; give it at least one"));
        }
        let brain = NestedDefinition {
            definition: brain.into_brain().into_definition(),
            input: Arc::new(move |state, _| encode(&input(&*state.shared::<S>()?), state.max_bytes())),
            output: Some(Arc::new(move |state: &StateValue, result: &Value| {
                encode_state(&output(state.owned()?, decode("the brain's result", result)?), state.max_bytes())
            })),
        };
        let is_done = Arc::new(move |state: &StateValue| Ok(is_done(&*state.shared::<S>()?)));
        self.stage(name, StageBody::Repeat(RepeatStage { brain, rounds, is_done }))
    }
}
