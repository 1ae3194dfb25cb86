//! The stage `race`: brains that run at the same time, of which the first that completes wins.

use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;
use serde_json::Value;

use super::all::{All, items_of, result};
use super::tries::Tried;
use crate::definition::{GroupBrains, GroupResults, GroupStage, StageBody, StateValue, encode_state};
use crate::dsl::brain::IntoBrain;
use crate::dsl::brain_builder::{BrainBuilder, Phase, TakesStages};
use crate::dsl::services::{Requirement, Services, Within};
use crate::dsl::trait_bounds::{Options, State};
use crate::dsl::usage_panic::usage_panic;
use crate::error::{Error, Result};
use crate::record::StageKind;

/// The brains of a race from the state `S`, in a brain with the services `V`. The winner's result becomes an `E`.
#[must_use = "the first closure of `race` returns it"]
#[derive_where(Debug)]
pub struct Race<S, E, V> {
    group: All<S, V>,
    #[derive_where(skip)]
    events: Vec<WonFn<E>>,
    #[derive_where(skip)]
    late: Option<(Duration, Box<dyn Fn() -> E + Send + Sync>)>,
}

/// Computes the event from the winner's result.
type WonFn<E> = Box<dyn Fn(&Value) -> Result<E> + Send + Sync>;

impl<S: State, E, V: Services> Race<S, E, V> {
    /// Adds a brain: `input` computes its options from the state, `event` the event from its result if it wins.
    ///
    /// # Panics
    ///
    /// If another brain of the stage has this name.
    #[track_caller]
    pub fn run<B: IntoBrain<Services: Within<V>>>(
        mut self,
        name: &str,
        brain: B,
        input: impl Fn(&S) -> B::Options + Send + Sync + 'static,
        event: impl Fn(B::Result) -> E + Send + Sync + 'static,
    ) -> Self {
        self.group.add(name, brain, input, true);
        self.events.push(Box::new(move |won| Ok(event(result(won)?))));
        self
    }

    /// Ends the race after a time without a winner: all brains are cancelled. Pausing the run does not move that time.
    pub fn after(mut self, time: Duration, event: impl Fn() -> E + Send + Sync + 'static) -> Self {
        self.late = Some((time, Box::new(event)));
        self
    }

    fn event(&self, results: &GroupResults) -> Result<E> {
        let missing = || Error::new("the brain's code has no such brain");
        match results {
            GroupResults::Won(index, won) => {
                let event = usize::try_from(*index).ok().and_then(|index| self.events.get(index));
                event.ok_or_else(missing)?(won)
            }
            GroupResults::Expired => Ok((self.late.as_ref().ok_or_else(missing)?.1)()),
            GroupResults::All(_) => Err(Error::new("the race has no winner")),
        }
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
    /// #[derive(Debug, PartialEq)]
    /// enum Quote { Carrier(u32), TimedOut }
    ///
    /// let slow = brain("Slow").sleep("Think", |()| Duration::from_hours(1)).step("Quote", async |_| Ok(10));
    /// let fast = brain("Fast").step("Quote", async |_| Ok(12));
    ///
    /// let shop = brain("Shop").race(
    ///     "Quotes",
    ///     |r| {
    ///         r.run("Slow", slow, |()| (), Quote::Carrier)
    ///             .run("Fast", fast, |()| (), Quote::Carrier)
    ///             .after(Duration::from_mins(5), || Quote::TimedOut)
    ///     },
    ///     |(), quote| match quote {
    ///         Quote::Carrier(price) => Some(price),
    ///         Quote::TimedOut => None,
    ///     },
    /// );
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// # let runner = Runner::new(ScriptedModel::new([]));
    /// assert_eq!(runner.start(&shop, ()).await?.result().await?, Some(12));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no brain; or if the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    pub fn race<E: 'static, S2: State>(
        self,
        name: &str,
        brains: impl FnOnce(Race<S, E, V::Services>) -> Race<S, E, V::Services>,
        next: impl Fn(S, E) -> S2 + Send + Sync + 'static,
    ) -> BrainBuilder<O, S2, V, P::Next<Tried>>
    where
        P: TakesStages,
    {
        let mut race = brains(Race { group: All::new(), events: Vec::new(), late: None });
        let (arms, inputs) = (std::mem::take(&mut race.group.arms), std::mem::take(&mut race.group.inputs));
        if arms.is_empty() {
            usage_panic(&format!("the race `{name}` runs no brain; add one with `.run(…)`"));
        }
        let time = race.late.as_ref().map(|(time, _)| *time);
        self.stage(
            name,
            StageBody::Group(GroupStage {
                kind: StageKind::Race,
                limit: u32::try_from(arms.len()).unwrap_or(u32::MAX),
                brains: GroupBrains::Named(arms),
                begin: Arc::new(move |state, now| Ok((items_of(&inputs, state)?, time.map(|time| now.after(time))))),
                finish: Arc::new(move |state: &StateValue, results| {
                    encode_state(&next(state.owned()?, race.event(&results)?), state.max_bytes())
                }),
            }),
        )
    }
}
