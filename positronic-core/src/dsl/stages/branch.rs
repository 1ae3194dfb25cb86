//! The branch: one of several arms, chosen once.

use std::marker::PhantomData;
use std::sync::Arc;

use derive_where::derive_where;
use serde_json::Value;

use super::tries::Tried;
use crate::definition::{
    ArmBody, ArmDefinition, BranchStage, ChooseFn, NestedDefinition, StageBody, StateValue, decode, encode,
    encode_state,
};
use crate::dsl::brain::IntoBrain;
use crate::dsl::brain_builder::{BrainBuilder, Phase, TakesStages};
use crate::dsl::services::{Requirement, Services, Within};
use crate::dsl::trait_bounds::{Options, State};
use crate::dsl::usage_panic::usage_panic;

/// The arms of a branch from the state `S` to the state `S2`, in a brain with the services `V`.
#[derive_where(Debug)]
pub struct Arms<S, S2, V> {
    arms: Vec<ArmDefinition>,
    types: PhantomData<fn(S, V) -> S2>,
}

/// An arm of a branch, which its choice returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arm(usize);

/// The arms of a branch with their choice.
#[must_use = "the closure of `branch` returns it"]
#[derive_where(Debug)]
pub struct Branch<S, S2> {
    arms: Vec<ArmDefinition>,
    #[derive_where(skip)]
    choose: ChooseFn,
    types: PhantomData<fn(S) -> S2>,
}

impl<S: State, S2: State, V: Services> Arms<S, S2, V> {
    /// Adds an arm that runs a brain: `input` computes its options from the state, `output` the next state from its result.
    ///
    /// # Panics
    ///
    /// If another arm has this name.
    #[track_caller]
    pub fn arm<B: IntoBrain<Services: Within<V>>>(
        &mut self,
        name: &str,
        brain: B,
        input: impl Fn(&S) -> B::Options + Send + Sync + 'static,
        output: impl Fn(S, B::Result) -> S2 + Send + Sync + 'static,
    ) -> Arm {
        let nested = NestedDefinition {
            definition: brain.into_brain().into_definition(),
            input: Arc::new(move |state, _| encode(&input(&*state.shared::<S>()?), state.max_bytes())),
            output: Some(Arc::new(move |state: &StateValue, result: &Value| {
                encode_state(&output(state.owned()?, decode("the brain's result", result)?), state.max_bytes())
            })),
        };
        self.add(name, ArmBody::Brain(nested))
    }

    /// Adds an arm without a brain, which computes the next state.
    ///
    /// # Panics
    ///
    /// If another arm has this name.
    #[track_caller]
    pub fn pass(&mut self, name: &str, next: impl Fn(S) -> S2 + Send + Sync + 'static) -> Arm {
        let next = move |state: &StateValue| encode_state(&next(state.owned()?), state.max_bytes());
        self.add(name, ArmBody::Pass(Arc::new(next)))
    }

    #[track_caller]
    fn add(&mut self, name: &str, body: ArmBody) -> Arm {
        if self.arms.iter().any(|arm| arm.name == name) {
            usage_panic(&format!("a branch has two arms named `{name}`; give one of them another name"));
        }
        self.arms.push(ArmDefinition { name: name.to_owned(), body, may_fail: false });
        Arm(self.arms.len() - 1)
    }

    /// Chooses an arm by the state: a `match` over an enum makes the choice exhaustive.
    pub fn choose(self, choose: impl Fn(&S) -> Arm + Send + Sync + 'static) -> Branch<S, S2> {
        let choose = Arc::new(move |state: &StateValue| Ok(choose(&*state.shared::<S>()?).0));
        Branch { arms: self.arms, choose, types: PhantomData }
    }
}

impl<O: Options, S: State, V: Requirement + ?Sized, P: Phase> BrainBuilder<O, S, V, P> {
    /// Adds a branch: one of several arms, each with a brain or without one. The choice is in the log before the arm begins, and is
    /// never made again. Its closure must be pure: until then, a crash lets it run again.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// enum Kind { Refund(u32), Question }
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Ticket { kind: Kind, paid: u32 }
    ///
    /// let refund = brain("Refund").options::<u32>().step("Pay", async |cx| Ok(*cx.options));
    /// let desk = brain("Desk").state(Ticket { kind: Kind::Refund(30), paid: 0 }).branch("By kind", |mut b| {
    ///     let amount = |ticket: &Ticket| match ticket.kind {
    ///         Kind::Refund(amount) => amount,
    ///         Kind::Question => 0,
    ///     };
    ///     let refund = b.arm("Refund", refund, amount, |ticket, paid| Ticket { paid, ..ticket });
    ///     let nothing = b.pass("Nothing", |ticket| ticket);
    ///     b.choose(move |ticket| match ticket.kind {
    ///         Kind::Refund(_) => refund,
    ///         Kind::Question => nothing,
    ///     })
    /// });
    /// # let _ = desk;
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no arm; or if the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    pub fn branch<S2: State>(
        self,
        name: &str,
        arms: impl FnOnce(Arms<S, S2, V::Services>) -> Branch<S, S2>,
    ) -> BrainBuilder<O, S2, V, P::Next<Tried>>
    where
        P: TakesStages,
    {
        let Branch { arms, choose, .. } = arms(Arms { arms: Vec::new(), types: PhantomData });
        if arms.is_empty() {
            usage_panic(&format!("the branch `{name}` has no arms; add one with `b.arm(…)` or `b.pass(…)`"));
        }
        self.stage(name, StageBody::Branch(BranchStage { arms, choose }))
    }
}
