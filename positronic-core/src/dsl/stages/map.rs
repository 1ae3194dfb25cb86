//! One brain for each item of a list.

use std::marker::PhantomData;
use std::sync::Arc;

use derive_where::derive_where;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::all::{MemberEnd, attempted, member, result};
use super::tries::Tried;
use crate::definition::{
    GroupBrains, GroupResults, GroupStage, NestedDefinition, StageBody, StateValue, encode, encode_state,
};
use crate::dsl::brain::IntoBrain;
use crate::dsl::brain_builder::{BrainBuilder, Phase, TakesStages};
use crate::dsl::services::{Requirement, Within};
use crate::dsl::trait_bounds::{Options, State};
use crate::error::{Error, Result};
use crate::record::{Failure, StageKind};

/// How many items work at the same time, unless [`limit`](Each::limit) says otherwise.
const AT_ONCE: u32 = 8;

/// A brain that runs for each item of a list, with the options `O2`, the services `V2`, and the result `T` of an item; [`each`]
/// makes it.
#[must_use = "pass it to `map`"]
#[derive_where(Debug)]
pub struct Each<O2, T, V2: ?Sized> {
    brain: NestedDefinition,
    limit: u32,
    may_fail: bool,
    #[derive_where(skip)]
    read: ReadItems<T>,
    types: PhantomData<fn(O2, &V2)>,
}

/// Decodes the results of all items.
type ReadItems<T> = fn(&[MemberEnd]) -> Result<Vec<T>>;

/// Creates the settings of a brain that a [`map`](BrainBuilder::map) runs for each item: by default eight work at the same time, and a
/// failure fails the stage.
pub fn each<B: IntoBrain>(brain: B) -> Each<B::Options, B::Result, B::Services> {
    Each { brain: member(brain), limit: AT_ONCE, may_fail: false, read: all, types: PhantomData }
}

impl<O2, T, V2: ?Sized> Each<O2, T, V2> {
    /// Sets how many items work at the same time, at least one. An item that only waits for input gives its place to the next one.
    pub fn limit(mut self, items: u32) -> Self {
        self.limit = items.max(1);
        self
    }
}

impl<O2, R: DeserializeOwned + 'static, V2: ?Sized> Each<O2, R, V2> {
    /// Makes the failure of an item a value: the result of an item is a `Result`.
    pub fn collect_failures(self) -> Each<O2, std::result::Result<R, Failure>, V2> {
        let Self { brain, limit, .. } = self;
        let read: ReadItems<_> = |ends| ends.iter().map(attempted).collect();
        Each { brain, limit, may_fail: true, read, types: PhantomData }
    }

    /// Leaves items out that fail: the result of an item comes with its index in the list.
    pub fn skip_failures(self) -> Each<O2, (usize, R), V2> {
        let Self { brain, limit, .. } = self;
        let read: ReadItems<_> = |ends| {
            let done = ends.iter().enumerate().filter_map(|(index, end)| Some((index, end.as_ref().ok()?)));
            done.map(|(index, end)| Ok((index, result(end)?))).collect()
        };
        Each { brain, limit, may_fail: true, read, types: PhantomData }
    }
}

fn all<R: DeserializeOwned>(ends: &[MemberEnd]) -> Result<Vec<R>> {
    let ok = |end: &MemberEnd| result(end.as_ref().map_err(|failure| Error::new(&failure.message))?);
    ends.iter().map(ok).collect()
}

/// A brain that runs for each item: a brain, or one with settings ([`each`]).
pub trait IntoEach {
    /// An item: the options of the brain.
    type Item: Options;
    /// The result of an item.
    type Result: 'static;
    /// The services that the brain needs.
    type Services: Requirement + ?Sized;

    /// Returns the brain with its settings.
    fn into_each(self) -> Each<Self::Item, Self::Result, Self::Services>;
}

impl<B: IntoBrain> IntoEach for B {
    type Item = B::Options;
    type Result = B::Result;
    type Services = B::Services;

    fn into_each(self) -> Each<B::Options, B::Result, B::Services> {
        each(self)
    }
}

impl<O2: Options, T: 'static, V2: Requirement + ?Sized> IntoEach for Each<O2, T, V2> {
    type Item = O2;
    type Result = T;
    type Services = V2;

    fn into_each(self) -> Self {
        self
    }
}

impl<O: Options, S: State, V: Requirement + ?Sized, P: Phase> BrainBuilder<O, S, V, P> {
    /// Runs a brain for each item of a list, several at the same time. The items are the options of the brain; `next` computes the next
    /// state from the results, in the order of the items.
    ///
    /// The items are computed once; until they are in the log, a crash lets them be computed again. After a crash, only what has not
    /// ended runs again. Approvals and waits of the items are answered in any order. [`each`] sets how many items work at the same
    /// time, and what a failure does. Together the items have at most [8 MiB](crate::record::MAX_DOCUMENT_BYTES) of JSON, as any document.
    ///
    /// ```
    /// use positronic_core::dsl::each;
    /// use positronic_core::prelude::*;
    /// # use positronic_core::model::scripted::ScriptedModel;
    ///
    /// let square = brain("Square").options::<u32>().step("Square", async |cx| Ok(*cx.options * *cx.options));
    ///
    /// let sum = brain("Sum")
    ///     .state(vec![1, 2, 3])
    ///     .map("Squares", |numbers| numbers.clone(), each(square).limit(2), |_, squares| squares.iter().sum::<u32>());
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// # let runner = Runner::new(ScriptedModel::new([]));
    /// assert_eq!(runner.start(&sum, ()).await?.result().await?, 14);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    pub fn map<B, S2: State>(
        self,
        name: &str,
        items: impl Fn(&S) -> Vec<B::Item> + Send + Sync + 'static,
        brain: B,
        next: impl Fn(S, Vec<B::Result>) -> S2 + Send + Sync + 'static,
    ) -> BrainBuilder<O, S2, V, P::Next<Tried>>
    where
        B: IntoEach<Services: Within<V::Services>>,
        P: TakesStages,
    {
        let Each { brain, limit, may_fail, read, .. } = brain.into_each();
        self.stage(
            name,
            StageBody::Group(GroupStage {
                kind: StageKind::Map,
                brains: GroupBrains::Each { brain, may_fail },
                limit,
                begin: Arc::new(move |state, _| {
                    let items = items(&*state.shared::<S>()?);
                    let items = items.iter().map(|item| encode(item, state.max_bytes()));
                    Ok((items.collect::<Result<Vec<Value>>>()?, None))
                }),
                finish: Arc::new(move |state: &StateValue, results| {
                    let GroupResults::All(ends) = results else {
                        return Err(Error::new("expected the results of all items"));
                    };
                    encode_state(&next(state.owned()?, read(&ends)?), state.max_bytes())
                }),
            }),
        )
    }
}
