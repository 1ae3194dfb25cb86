//! The stage `all`: brains that run at the same time, all of which must end.

use std::marker::PhantomData;
use std::sync::Arc;

use derive_where::derive_where;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::tries::Tried;
use crate::definition::{
    ArmBody, ArmDefinition, GroupBrains, GroupResults, GroupStage, NestedDefinition, StageBody, StateValue, decode,
    encode, encode_state,
};
use crate::dsl::brain::IntoBrain;
use crate::dsl::brain_builder::{BrainBuilder, Phase, TakesStages};
use crate::dsl::services::{Requirement, Services, Within};
use crate::dsl::trait_bounds::{Options, State};
use crate::dsl::usage_panic::usage_panic;
use crate::error::{Error, Result};
use crate::record::{Failure, StageKind};

/// Collects the brains of an `all`, from the state `S`, in a brain with the services `V`.
#[derive_where(Debug)]
pub struct All<S, V> {
    arms: Vec<ArmDefinition>,
    #[derive_where(skip)]
    inputs: Vec<InputOf<S>>,
    types: PhantomData<fn(V)>,
}

/// Computes the options of one brain from the state; the second argument is the size limit of documents in bytes.
pub(super) type InputOf<S> = Arc<dyn Fn(&S, usize) -> Result<Value> + Send + Sync>;

/// The end of a brain that runs at the same time as others.
pub(super) type MemberEnd = std::result::Result<Value, Failure>;

/// One of the brains that run at the same time. It becomes a `T` for the closure that gets the results.
#[must_use = "the first closure of `all` returns it"]
#[derive_where(Debug)]
pub struct Member<T> {
    index: usize,
    read: fn(&MemberEnd) -> Result<T>,
}

/// What the first closure of an `all` returns: a [`Member`], a tuple of at most twelve, or a `Vec`.
#[diagnostic::on_unimplemented(
    message = "the first closure of `all` returns the brains that it runs: a tuple of at most twelve, or a `Vec`",
    label = "this is not what `run` and `attempt` return"
)]
pub trait Members {
    /// The results.
    type Results;

    /// Decodes the results of these brains from those of all.
    #[doc(hidden)]
    fn results(&self, all: &[MemberEnd]) -> Result<Self::Results>;
}

impl<T> Members for Member<T> {
    type Results = T;

    fn results(&self, all: &[MemberEnd]) -> Result<T> {
        (self.read)(all.get(self.index).ok_or_else(|| Error::new("one of the brains has no result"))?)
    }
}

impl<M: Members> Members for Vec<M> {
    type Results = Vec<M::Results>;

    fn results(&self, all: &[MemberEnd]) -> Result<Self::Results> {
        self.iter().map(|member| member.results(all)).collect()
    }
}

macro_rules! tuple_of_members {
    ($($member:ident),+) => {
        impl<$($member: Members),+> Members for ($($member,)+) {
            type Results = ($($member::Results,)+);

            fn results(&self, all: &[MemberEnd]) -> Result<Self::Results> {
                #[expect(non_snake_case, reason = "the members of a tuple are named by their types")]
                let ($($member,)+) = self;
                Ok(($($member.results(all)?,)+))
            }
        }
    };
}

tuple_of_members!(A);
tuple_of_members!(A, B);
tuple_of_members!(A, B, C);
tuple_of_members!(A, B, C, D);
tuple_of_members!(A, B, C, D, E);
tuple_of_members!(A, B, C, D, E, F);
tuple_of_members!(A, B, C, D, E, F, G);
tuple_of_members!(A, B, C, D, E, F, G, H);
tuple_of_members!(A, B, C, D, E, F, G, H, I);
tuple_of_members!(A, B, C, D, E, F, G, H, I, J);
tuple_of_members!(A, B, C, D, E, F, G, H, I, J, K);
tuple_of_members!(A, B, C, D, E, F, G, H, I, J, K, L);

impl<S: State, V: Services> All<S, V> {
    const fn new() -> Self {
        Self { arms: Vec::new(), inputs: Vec::new(), types: PhantomData }
    }

    /// Adds a brain; `input` computes its options from the state. If it fails, the others are cancelled, and the stage fails.
    ///
    /// # Panics
    ///
    /// If another brain of the stage has this name.
    #[track_caller]
    pub fn run<B: IntoBrain<Services: Within<V>>>(
        &mut self,
        name: &str,
        brain: B,
        input: impl Fn(&S) -> B::Options + Send + Sync + 'static,
    ) -> Member<B::Result> {
        let index = self.add(name, brain, input, false);
        Member { index, read: |end| result(end.as_ref().map_err(|failure| Error::new(&failure.message))?) }
    }

    /// Adds a brain whose failure is a value.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn attempt<B: IntoBrain<Services: Within<V>>>(
        &mut self,
        name: &str,
        brain: B,
        input: impl Fn(&S) -> B::Options + Send + Sync + 'static,
    ) -> Member<std::result::Result<B::Result, Failure>> {
        let index = self.add(name, brain, input, true);
        Member { index, read: attempted }
    }

    #[track_caller]
    fn add<B: IntoBrain<Services: Within<V>>>(
        &mut self,
        name: &str,
        brain: B,
        input: impl Fn(&S) -> B::Options + Send + Sync + 'static,
        may_fail: bool,
    ) -> usize {
        if self.arms.iter().any(|arm| arm.name == name) {
            usage_panic(&format!("two brains of a stage are named `{name}`; give one of them another name"));
        }
        let body = ArmBody::Brain(member(brain));
        self.arms.push(ArmDefinition { name: name.to_owned(), body, may_fail });
        self.inputs.push(input_of(input));
        self.arms.len() - 1
    }
}

pub(super) fn input_of<S: 'static, O2: Options>(input: impl Fn(&S) -> O2 + Send + Sync + 'static) -> InputOf<S> {
    Arc::new(move |state, max_bytes| encode(&input(state), max_bytes))
}

/// Returns a brain whose options come from its group.
pub(super) fn member(brain: impl IntoBrain) -> NestedDefinition {
    let input = |_: &StateValue, item: &Value| Ok(item.clone());
    NestedDefinition { definition: brain.into_brain().into_definition(), input: Arc::new(input), output: None }
}

pub(super) fn result<R: DeserializeOwned>(result: &Value) -> Result<R> {
    decode("the brain's result", result)
}

pub(super) fn attempted<R: DeserializeOwned>(end: &MemberEnd) -> Result<std::result::Result<R, Failure>> {
    end.as_ref().map_or_else(|failure| Ok(Err(failure.clone())), |end| result(end).map(Ok))
}

/// Computes the options of all brains from the state.
pub(super) fn items_of<S: State>(inputs: &[InputOf<S>], state: &StateValue) -> Result<Vec<Value>> {
    let (typed, max_bytes) = (state.shared::<S>()?, state.max_bytes());
    inputs.iter().map(|input| input(&typed, max_bytes)).collect()
}

impl<O: Options, S: State, V: Requirement + ?Sized, P: Phase> BrainBuilder<O, S, V, P> {
    /// Adds brains that run at the same time. The stage is done when all of them are, and `next` computes the next state from their
    /// results, each of its own type.
    ///
    /// The options of the brains are computed together, before the first one begins; until they are in the log, a crash lets them be
    /// computed again. If a brain of [`run`](All::run) fails, the others are cancelled and the stage fails;
    /// [`attempt`](All::attempt) makes a failure a value. Approvals and waits inside of them are answered in any order.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    /// # use positronic_core::model::scripted::ScriptedModel;
    ///
    /// let length = brain("Length").options::<String>().step("Count", async |cx| Ok(cx.options.len()));
    /// let shout = brain("Shout").options::<String>().step("Shout", async |cx| Ok(cx.options.to_uppercase()));
    ///
    /// let both = brain("Both").state("hello".to_owned()).all(
    ///     "Both",
    ///     |g| (g.run("Length", length, String::clone), g.attempt("Shout", shout, String::clone)),
    ///     |word, (length, loud)| format!("{word}: {length}, {}", loud.unwrap_or_default()),
    /// );
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// # let runner = Runner::new(ScriptedModel::new([]));
    /// assert_eq!(runner.start(&both, ()).await?.result().await?, "hello: 5, HELLO");
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no brain; or if the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    pub fn all<M: Members + Send + Sync + 'static, S2: State>(
        self,
        name: &str,
        brains: impl FnOnce(&mut All<S, V::Services>) -> M,
        next: impl Fn(S, M::Results) -> S2 + Send + Sync + 'static,
    ) -> BrainBuilder<O, S2, V, P::Next<Tried>>
    where
        P: TakesStages,
    {
        let mut group = All::new();
        let members = brains(&mut group);
        let All { arms, inputs, .. } = group;
        if arms.is_empty() {
            usage_panic(&format!("the stage `{name}` runs no brain; add one with `g.run(…)`"));
        }
        self.stage(
            name,
            StageBody::Group(GroupStage {
                kind: StageKind::All,
                limit: u32::try_from(arms.len()).unwrap_or(u32::MAX),
                brains: GroupBrains::Named(arms),
                begin: Arc::new(move |state, _| Ok((items_of(&inputs, state)?, None))),
                finish: Arc::new(move |state: &StateValue, results| {
                    let GroupResults::All(all) = results else {
                        return Err(Error::new("expected the results of all brains"));
                    };
                    encode_state(&next(state.owned()?, members.results(&all)?), state.max_bytes())
                }),
            }),
        )
    }
}
