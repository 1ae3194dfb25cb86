//! The nested brain, with the maps of its options and its result.

use std::marker::PhantomData;
use std::sync::Arc;

use derive_where::derive_where;
use serde_json::Value;

use super::tries::Tried;
use crate::definition::{NestedDefinition, StageBody, StateValue, decode, encode, encode_state};
use crate::dsl::brain::IntoBrain;
use crate::dsl::brain_builder::{BrainBuilder, Phase, Staged, TakesStages};
use crate::dsl::services::{Requirement, Within};
use crate::dsl::trait_bounds::{Options, State};

/// Builds a stage that runs a brain with options `O2` and result `R`, in a brain with options `O`, state `S` and services `V`.
/// `I` says whether the options have a map, and `P` is the phase of the outer builder.
#[must_use = "a nested brain becomes a stage with `map_output`"]
#[derive_where(Debug)]
pub struct BrainStage<O, S, V: ?Sized, O2, R, I = Unmapped, P = Staged> {
    outer: BrainBuilder<O, S, V, P>,
    inner: PhantomData<fn(O2, R, I)>,
}

/// Marks a nested brain whose options have no map.
#[derive(Debug)]
pub struct Unmapped(());

/// Marks a nested brain with a map of its options.
#[derive(Debug)]
pub struct Mapped(());

/// Ensures that a nested brain gets its options.
#[diagnostic::on_unimplemented(
    message = "the nested brain has options, `{O2}`, which `map_input` computes from the state",
    label = "the options of the nested brain are missing",
    note = "add `.map_input(|state| …)` before `.map_output(…)`"
)]
pub trait NestedOptions<O2> {}

impl NestedOptions<()> for Unmapped {}
impl<O2> NestedOptions<O2> for Mapped {}

impl<O: Options, S: State, V: Requirement + ?Sized, P: Phase> BrainBuilder<O, S, V, P> {
    /// Adds a nested brain: [`map_input`](BrainStage::map_input) computes its options from the state,
    /// [`map_output`](BrainStage::map_output) the next state from its result. A brain without options needs no `map_input`.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    ///
    /// let double = brain("Double").options::<u32>().step("Double", async |cx| Ok(*cx.options * 2));
    /// let sum = brain("Sum")
    ///     .state(20)
    ///     .brain("Double", double)
    ///     .map_input(|sum| *sum)
    ///     .map_output(|sum, doubled| sum + doubled);
    /// # let _ = sum;
    /// ```
    ///
    /// # Panics
    ///
    /// If the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    #[expect(clippy::type_complexity, reason = "each parameter has its reading at the type")]
    pub fn brain<B>(self, name: &str, brain: B) -> BrainStage<O, S, V, B::Options, B::Result, Unmapped, P::Next<Tried>>
    where
        B: IntoBrain<Services: Within<V::Services>>,
        P: TakesStages,
    {
        let nested = NestedDefinition {
            definition: brain.into_brain().into_definition(),
            input: Arc::new(|_, _| Ok(Value::Null)),
            output: None,
        };
        BrainStage { outer: self.stage(name, StageBody::Brain(nested)), inner: PhantomData }
    }
}

impl<O: Options, S: State, V: Requirement + ?Sized, O2: Options, R, I, P> BrainStage<O, S, V, O2, R, I, P>
where
    R: serde::de::DeserializeOwned + 'static,
{
    /// Computes the brain's options from the state.
    pub fn map_input(self, map: impl Fn(&S) -> O2 + Send + Sync + 'static) -> BrainStage<O, S, V, O2, R, Mapped, P> {
        let outer = self.outer.with_nested(|nested| {
            nested.input = Arc::new(move |state, _| encode(&map(&*state.shared::<S>()?), state.max_bytes()));
        });
        BrainStage { outer, inner: PhantomData }
    }

    /// Adds the stage, which computes the next state from the state and the brain's result.
    pub fn map_output<S2: State>(self, map: impl Fn(S, R) -> S2 + Send + Sync + 'static) -> BrainBuilder<O, S2, V, P>
    where
        I: NestedOptions<O2>,
    {
        self.outer.with_nested(|nested| {
            nested.output = Some(Arc::new(move |state: &StateValue, result: &Value| {
                encode_state(&map(state.owned()?, decode("the brain's result", result)?), state.max_bytes())
            }));
        })
    }
}
