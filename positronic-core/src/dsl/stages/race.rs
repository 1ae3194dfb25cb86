//! The stage `race`: brains that run at the same time, of which the first that completes wins.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;

use super::all::{InputOf, input_of, items_of, member, result};
use super::alternatives::Alternatives;
use super::event::SameEvent;
use super::tries::Tried;
use crate::definition::{
    ArmBody, ArmDefinition, GroupBrains, GroupResults, GroupStage, StageBody, StateValue, encode_state,
};
use crate::dsl::brain::IntoBrain;
use crate::dsl::brain_builder::{BrainBuilder, Phase, TakesStages};
use crate::dsl::services::{Requirement, Services, Within};
use crate::dsl::trait_bounds::{Options, State};
use crate::dsl::usage_panic::usage_panic;
use crate::error::Error;
use crate::record::StageKind;

/// Begins a race from the state `S`, in a brain with the services `V`: with a brain, which [`Race::or`] puts together with others.
#[derive_where(Clone, Copy, Debug)]
pub struct RaceOf<S, V>(PhantomData<fn(S, V)>);

/// Brains that race from the state `S`, in a brain with the services `V`. The first that completes, or the end of the time, becomes an
/// `E`: the brain's result, or what [`to`](Self::to) makes of it.
#[must_use = "the first closure of `race` returns it"]
#[derive_where(Debug)]
pub struct Race<S, E, V> {
    brains: Alternatives<Racer<S>, Duration, E>,
    services: PhantomData<fn(V)>,
}

#[derive_where(Debug)]
struct Racer<S> {
    arm: ArmDefinition,
    #[derive_where(skip)]
    input: InputOf<S>,
}

const ONE_TIME: &str = "a race has one time; remove `.within(…)` or `.after(…)` until one is left";

impl<S: State, V: Services> RaceOf<S, V> {
    /// Runs a brain; `input` computes its options from the state.
    pub fn run<B: IntoBrain<Services: Within<V>>>(
        self,
        name: &str,
        brain: B,
        input: impl Fn(&S) -> B::Options + Send + Sync + 'static,
    ) -> Race<S, B::Result, V> {
        let arm = ArmDefinition { name: name.to_owned(), body: ArmBody::Brain(member(brain)), may_fail: true };
        Race { brains: Alternatives::one(Racer { arm, input: input_of(input) }, result), services: PhantomData }
    }
}

impl<S: State, E: 'static, V: Services> Race<S, E, V> {
    /// Makes another event of each result and of the end of the time, such as a variant of an enum.
    pub fn to<E2: 'static>(self, event: impl Fn(E) -> E2 + Send + Sync + 'static) -> Race<S, E2, V> {
        Race { brains: self.brains.to(event), services: PhantomData }
    }

    /// Runs these brains, too; the first of all that completes wins.
    ///
    /// # Panics
    ///
    /// If two brains have one name, or both have a time.
    #[track_caller]
    pub fn or<E2: SameEvent<E>>(self, other: Race<S, E2, V>) -> Self {
        for Racer { arm: ArmDefinition { name, .. }, .. } in &other.brains.members {
            if self.brains.members.iter().any(|known| known.arm.name == *name) {
                usage_panic(&format!("two brains of a stage are named `{name}`; give one of them another name"));
            }
        }
        Self { brains: self.brains.or(other.brains.to(E2::same), ONE_TIME), ..self }
    }

    /// Ends the race after this time without a winner, as `None`; a result becomes `Some`. See [`after`](Self::after).
    ///
    /// # Panics
    ///
    /// If the race has a time.
    #[track_caller]
    pub fn within(self, time: Duration) -> Race<S, Option<E>, V> {
        self.to(Some).after(time, || None)
    }

    /// Ends the race after this time without a winner, with an event: all brains are cancelled. Pausing the run does not move that time.
    ///
    /// # Panics
    ///
    /// If the race has a time.
    #[track_caller]
    pub fn after(self, time: Duration, event: impl Fn() -> E + Send + Sync + 'static) -> Self {
        Self { brains: self.brains.end(time, event, ONE_TIME), ..self }
    }
}

impl<O: Options, S: State, V: Requirement + ?Sized, P: Phase> BrainBuilder<O, S, V, P> {
    /// Adds a race: brains run at the same time, the first that completes wins, and `next` computes the next state from its event.
    ///
    /// The others are cancelled, with what runs in them: calls that have begun are recorded as interrupted, waits leave the inbox, and
    /// what they cost counts. A brain that fails has lost; if all fail, the stage fails.
    ///
    /// ```
    /// use std::time::Duration;
    /// use positronic_core::prelude::*;
    /// # use positronic_core::model::scripted::ScriptedModel;
    ///
    /// let slow = brain("Slow").sleep("Think", |()| Duration::from_hours(1)).step("Quote", async |_| Ok(10));
    /// let fast = brain("Fast").step("Quote", async |_| Ok(12));
    ///
    /// let shop = brain("Shop").race(
    ///     "Quotes",
    ///     |r| r.run("Slow", slow, |()| ()).or(r.run("Fast", fast, |()| ())).within(Duration::from_mins(5)),
    ///     |(), price| price,
    /// );
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// # let runner = Runner::new(ScriptedModel::new([]));
    /// assert_eq!(runner.start(&shop, ()).await?.result().await?, Some(12));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Results of several types become variants of an enum, as the answers of a [`wait`](Self::wait) do:
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use positronic_core::prelude::*;
    /// # let letter = brain("Letter").step("Write", async |_| Ok("by post".to_owned()));
    /// # let mail = brain("Mail").step("Send", async |_| Ok(7_u32));
    /// enum Sent { Letter(String), Mail(u32), Neither }
    ///
    /// let desk = brain("Desk").race(
    ///     "First",
    ///     |r| {
    ///         let letter = r.run("Letter", letter, |()| ()).to(Sent::Letter);
    ///         let mail = r.run("Mail", mail, |()| ()).to(Sent::Mail);
    ///         letter.or(mail).after(Duration::from_hours(24), || Sent::Neither)
    ///     },
    ///     |(), sent| match sent {
    ///         Sent::Letter(how) => how,
    ///         Sent::Mail(number) => format!("mail {number}"),
    ///         Sent::Neither => "not sent".to_owned(),
    ///     },
    /// );
    /// # let _ = desk;
    /// ```
    ///
    /// # Panics
    ///
    /// If the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    pub fn race<E: 'static, S2: State>(
        self,
        name: &str,
        brains: impl FnOnce(RaceOf<S, V::Services>) -> Race<S, E, V::Services>,
        next: impl Fn(S, E) -> S2 + Send + Sync + 'static,
    ) -> BrainBuilder<O, S2, V, P::Next<Tried>>
    where
        P: TakesStages,
    {
        let Race { mut brains, .. } = brains(RaceOf(PhantomData));
        let racers = std::mem::take(&mut brains.members).into_iter();
        let (arms, inputs): (Vec<_>, Vec<_>) = racers.map(|Racer { arm, input }| (arm, input)).unzip();
        let time = brains.time().copied();
        let event = move |results| {
            let event = match &results {
                GroupResults::Won(index, won) => brains.event(Some((*index, won))),
                GroupResults::Expired => brains.event(None),
                GroupResults::All(_) => return Err(Error::new("the race has no winner")),
            };
            event.ok_or_else(|| Error::new("the brain's code has no such brain"))?
        };
        self.stage(
            name,
            StageBody::Group(GroupStage {
                kind: StageKind::Race,
                limit: u32::try_from(arms.len()).unwrap_or(u32::MAX),
                brains: GroupBrains::Named(arms),
                begin: Arc::new(move |state, now| Ok((items_of(&inputs, state)?, time.map(|time| now.after(time))))),
                finish: Arc::new(move |state: &StateValue, results| {
                    encode_state(&next(state.owned()?, event(results)?), state.max_bytes())
                }),
            }),
        )
    }
}
