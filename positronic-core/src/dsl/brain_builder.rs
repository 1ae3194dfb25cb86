//! The builder of a brain: settings, then stages, then the result.

use std::marker::PhantomData;
use std::sync::Arc;

use derive_where::derive_where;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::brain::{Brain, IntoBrain};
use super::services::{IntoServices, NoServices, Requirement, Services};
use super::stages::{Tried, Untried};
use super::trait_bounds::{Options, State};
use super::usage_panic::usage_panic;
use crate::definition::{
    BrainDefinition, LoopStage, NestedDefinition, StageBody, StageDefinition, StateValue, Tries, decode, encode,
    encode_state, read_value, recordable,
};
use crate::error::Error;
use crate::record::{Budget, Path};
use crate::tools::Schema;

/// Builds a brain with options `O`, the state `S` after its last stage, and the services `V`. `P` is the phase, which fixes the
/// order: [`Unstaged`], [`Staged`] with the first stage, [`Ended`] with the public view.
///
/// It runs and nests as it is; only code that names the type calls [`build`](Self::build):
///
/// ```
/// use positronic_core::prelude::*;
///
/// fn greeter() -> Brain<(), String> {
///     brain("Greeter").step("Greet", async |_| Ok("Hello".to_owned())).build()
/// }
/// # let _ = greeter();
/// ```
#[must_use = "a brain does nothing until a runner runs it"]
#[derive_where(Clone, Debug)]
pub struct BrainBuilder<O = (), S = (), V: ?Sized = NoServices, P = Staged> {
    pub(super) definition: Arc<BrainDefinition>,
    types: BuilderTypes<O, S, V, P>,
}

/// The types of the inputs (options, services), of the output (state), and the phase.
type BuilderTypes<O, S, V, P> = PhantomData<(fn(O, &V), fn() -> (S, P))>;

/// Marks a builder without stages.
#[derive(Debug)]
pub struct Unstaged(());

/// Marks a builder with at least one stage; `K` says how the last one can be tried.
#[derive_where(Debug)]
pub struct Staged<K = Tried>(PhantomData<fn() -> K>);

/// Marks a builder with stages, of which a guard can end the brain with the reason `E`; `K` says how the last one can be tried.
#[derive_where(Debug)]
pub struct Guarded<E, K = Tried>(PhantomData<fn() -> (E, K)>);

/// Marks a builder that takes no further stages, after the phase `P`.
#[derive_where(Debug)]
pub struct Ended<P = Staged>(PhantomData<fn() -> P>);

/// A phase of a builder.
pub trait Phase: sealed::Sealed {
    /// The phase after a further stage, of which `K` says how it can be tried.
    type Next<K>: HasStages;

    /// The result for the brain's callers, if it completes with `R`.
    type Result<R: Serialize + DeserializeOwned + 'static>: DeserializeOwned + 'static;
}

/// The phase of a builder that takes types: options, services, initial state.
#[diagnostic::on_unimplemented(
    message = "options, services and the initial state are set before the first stage",
    label = "this brain already has a stage, which cannot see them",
    note = "move this call up, directly after `brain(…)`"
)]
pub trait BeforeStages: Phase {}

/// A phase of a builder that takes stages.
#[diagnostic::on_unimplemented(
    message = "a stage cannot follow `.public(…)`, which is a view of the last state",
    label = "this brain takes no further stages",
    note = "move `.public(…)` after the last stage"
)]
pub trait TakesStages: Phase {}

/// A phase of a builder with stages.
#[diagnostic::on_unimplemented(
    message = "this brain has no stages, so it would do nothing",
    label = "a brain needs at least one stage",
    note = "add one with `.step(…)`, `.r#loop(…)` or `.brain(…)`"
)]
pub trait HasStages: Phase {}

/// A phase of a builder that takes a guard with the reason `E`.
#[diagnostic::on_unimplemented(
    message = "a stage cannot follow `.public(…)`, which is a view of the last state",
    label = "this brain takes no further stages",
    note = "move `.public(…)` after the last stage"
)]
pub trait TakesGuard<E>: Phase {
    /// The phase after the guard.
    type Guarded: HasStages;
}

impl BeforeStages for Unstaged {}
impl TakesStages for Unstaged {}
impl<K> TakesStages for Staged<K> {}
impl<E: Serialize + DeserializeOwned + 'static, K> TakesStages for Guarded<E, K> {}
impl<K> HasStages for Staged<K> {}
impl<E: Serialize + DeserializeOwned + 'static, K> HasStages for Guarded<E, K> {}
impl<P: HasStages> HasStages for Ended<P> {}

impl Phase for Unstaged {
    type Next<K> = Staged<K>;
    type Result<R: Serialize + DeserializeOwned + 'static> = R;
}

impl<L> Phase for Staged<L> {
    type Next<K> = Staged<K>;
    type Result<R: Serialize + DeserializeOwned + 'static> = R;
}

impl<E: Serialize + DeserializeOwned + 'static, L> Phase for Guarded<E, L> {
    type Next<K> = Guarded<E, K>;
    type Result<R: Serialize + DeserializeOwned + 'static> = Result<R, E>;
}

impl<P: HasStages> Phase for Ended<P> {
    type Next<K> = Self;
    type Result<R: Serialize + DeserializeOwned + 'static> = P::Result<R>;
}

impl<E: Serialize + DeserializeOwned + 'static> TakesGuard<E> for Unstaged {
    type Guarded = Guarded<E, Untried>;
}

impl<E: Serialize + DeserializeOwned + 'static, K> TakesGuard<E> for Staged<K> {
    type Guarded = Guarded<E, Untried>;
}

impl<E: Serialize + DeserializeOwned + 'static, K> TakesGuard<E> for Guarded<E, K> {
    type Guarded = Guarded<E, Untried>;
}

mod sealed {
    /// Prevents further phases.
    pub trait Sealed {}

    impl Sealed for super::Unstaged {}
    impl<K> Sealed for super::Staged<K> {}
    impl<E, K> Sealed for super::Guarded<E, K> {}
    impl<P> Sealed for super::Ended<P> {}
}

/// Creates a brain with this title, by which people, logs and the command line name it.
///
/// # Panics
///
/// If the title has no letter and no digit.
#[track_caller]
pub fn brain(title: impl Into<String>) -> BrainBuilder<(), (), NoServices, Unstaged> {
    let title = title.into();
    if !title.contains(char::is_alphanumeric) {
        usage_panic(&format!(
            "`{title}` cannot be the title of a brain, by which people and commands name it; write one with letters: `brain(\"Support\")`"
        ));
    }
    let definition = BrainDefinition {
        title,
        description: String::new(),
        version: 0,
        options: Arc::new(Schema::new(serde_json::json!({"type": "object", "properties": {}}))),
        read_options: Arc::new(|_, _| Ok(Value::Null)),
        initial: Arc::new(Value::Null),
        keeps: None,
        stages: Vec::new(),
        actions: Vec::new(),
        result: None,
        result_schema: None,
        otherwise: None,
        public: None,
        provide: None,
        budget: None,
        migrations: std::collections::BTreeMap::new(),
    };
    BrainBuilder { definition: Arc::new(definition), types: PhantomData }
}

impl<O, S, V: ?Sized, P> BrainBuilder<O, S, V, P> {
    fn with<O2, S2, V2: ?Sized, P2>(self, change: impl FnOnce(&mut BrainDefinition)) -> BrainBuilder<O2, S2, V2, P2> {
        let mut definition = Arc::unwrap_or_clone(self.definition);
        change(&mut definition);
        BrainBuilder { definition: Arc::new(definition), types: PhantomData }
    }

    /// Sets the description for people and models.
    pub fn description(self, text: impl Into<String>) -> Self {
        self.with(|definition| definition.description = text.into())
    }

    /// Sets the version. The runtime cannot detect a change inside a closure; change this number to declare it.
    pub fn version(self, version: u32) -> Self {
        self.with(|definition| definition.version = version)
    }

    /// Sets the budget of the brain and everything below it: its loops, the questions of its steps and plugins, and its
    /// nested brains. The budget of a run takes precedence.
    ///
    /// ```
    /// use std::time::Duration;
    /// use positronic_core::prelude::*;
    ///
    /// let research = brain("Research").budget(|budget| budget.max_money("2").max_time(Duration::from_mins(30)));
    /// # let _ = research;
    /// ```
    pub fn budget(self, limit: impl FnOnce(Budget) -> Budget) -> Self {
        self.with(|definition| definition.budget = Some(limit(definition.budget.take().unwrap_or_default())))
    }

    /// Migrates runs that began with version `from`: `migrate` computes the state of this version from their state. The
    /// run's current stage must still exist, by name and kind, and its options must match. Runs without a migration are
    /// rejected.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    /// use serde_json::json;
    ///
    /// let brain = brain("Support")
    ///     .version(2)
    ///     .migrate(1, |state| Ok(json!({ "ticket": state["id"], "notes": [] })));
    /// # let _ = brain;
    /// ```
    pub fn migrate(self, from: u32, migrate: impl Fn(&Value) -> crate::Result<Value> + Send + Sync + 'static) -> Self {
        self.with(|definition| _ = definition.migrations.insert(from, Arc::new(migrate)))
    }

    /// Declares actions of the project that the loops may use with [`Loop::actions`](super::Loop::actions). A project without
    /// one of them fails to start.
    ///
    /// ```
    /// use positronic_core::dsl::Action;
    /// use positronic_core::prelude::*;
    /// use positronic_core::runner::Runner;
    /// # use positronic_core::model::scripted::{Reply, ScriptedModel};
    /// # use serde_json::json;
    ///
    /// const ACTIONS: [&str; 1] = ["finish"];
    ///
    /// let agent = brain("Agent")
    ///     .actions(ACTIONS)
    ///     .r#loop("Act", |cx| cx.system("Reach the goal.").structured_actions().actions(ACTIONS));
    /// let finish = Action::new("finish", |t| t.description("Ends the work").exit().execute(async |_: NoArgs, _| Ok("done")));
    /// # let model = ScriptedModel::new([Reply::action("Nothing is left.", "finish", json!({}))]);
    /// let runner = Runner::new(model).action(finish);
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// runner.start(&agent, ()).await?.result().await?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn actions<'n>(self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.with(|definition| {
            for name in names {
                if !definition.actions.iter().any(|known| known == name) {
                    definition.actions.push(name.to_owned());
                }
            }
        })
    }
}

impl<O, S, V: ?Sized, P> BrainBuilder<O, S, V, P> {
    /// Sets the type of the options: the typed input of a run, with a schema.
    pub fn options<O2: Options>(self) -> BrainBuilder<O2, S, V, P>
    where
        P: BeforeStages,
    {
        self.with(|definition| {
            definition.options = Schema::of::<O2>();
            definition.read_options = Arc::new(|given, max_bytes| {
                let given = if given.is_null() { &Value::Object(serde_json::Map::new()) } else { given };
                Schema::of::<O2>().check(given).map_err(Error::new)?;
                let options = read_value::<O2>(given).map_err(|error| Error::new(error.to_string()))?;
                encode(&options, max_bytes)
            });
        })
    }

    /// Sets the type of the services: the dependencies of the brain's code, which are never stored.
    pub fn services<V2: Services>(self) -> BrainBuilder<O, S, V2, P>
    where
        P: BeforeStages,
    {
        self.with(|_| ())
    }

    /// Sets the initial state.
    ///
    /// # Panics
    ///
    /// If the state cannot be encoded as JSON.
    #[track_caller]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the state is moved into the brain; a reference would be surprising"
    )]
    pub fn state<S2: State>(self, initial: S2) -> BrainBuilder<O, S2, V, P>
    where
        P: BeforeStages,
    {
        let initial = encode_state(&initial, usize::MAX).unwrap_or_else(|error| usage_panic(&error.to_string()));
        self.with(|definition| definition.initial = Arc::new(initial))
    }
}

impl<O, S: State, V: ?Sized, P: BeforeStages> BrainBuilder<O, S, V, P> {
    /// Carries the state over the runs of a conversation: the next run begins with the last state of the run before, also if that has
    /// failed or was cancelled. So the last stage leaves a state of the type of the initial one.
    ///
    /// A state of another [`version`](Self::version) is migrated by [`migrate`](Self::migrate). One that does not fit refuses the
    /// message, and is never reset: [`StartError::State`](crate::runner::StartError::State).
    ///
    /// ```
    /// use positronic_core::prelude::*;
    /// # use positronic_core::model::scripted::{Reply, ScriptedModel};
    ///
    /// let counter = brain("Counter")
    ///     .state(0)
    ///     .keep_state()
    ///     .r#loop("Chat", |cx| cx.system(format!("This is message {}.", *cx.state + 1)))
    ///     .step("Count", async |cx| Ok(cx.state + 1));
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// # let runner = Runner::new(ScriptedModel::from_fn(|_| Reply::text("Hello!")));
    /// let chat = runner.conversation("ann-1");
    /// assert_eq!(chat.send(&counter, (), "Hello").await?.result().await?, 1);
    /// assert_eq!(chat.send(&counter, (), "Hello again").await?.result().await?, 2);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn keep_state(self) -> Self {
        self.with(|definition| {
            definition.keeps = Some(Arc::new(|state, max_bytes| {
                recordable("the kept state", state, max_bytes)?;
                decode::<S>("the kept state", state).map(drop)
            }));
        })
    }
}

impl<O: Options, S: State, V: Requirement + ?Sized, P: Phase> BrainBuilder<O, S, V, P> {
    #[track_caller]
    pub(super) fn stage<S2, P2>(self, name: &str, body: StageBody) -> BrainBuilder<O, S2, V, P2> {
        BrainBuilder { definition: with_stage(self.definition, name, body), types: PhantomData }
    }
}

#[track_caller]
fn with_stage(definition: Arc<BrainDefinition>, name: &str, body: StageBody) -> Arc<BrainDefinition> {
    let mut definition = Arc::unwrap_or_clone(definition);
    let title = &definition.title;
    if !Path::is_stage_name(name) {
        usage_panic(&format!(
            "`{name}` cannot name a stage of `{title}`: a name must not be empty or a number, and must not contain `/`"
        ));
    }
    if definition.stage(name).is_some() {
        usage_panic(&format!("`{title}` has two stages named `{name}`; give one of them another name"));
    }
    let (name, tries) = (name.to_owned(), Tries::of(body.kind()));
    definition.stages.push(StageDefinition { name, body, undo: None, tries });
    Arc::new(definition)
}

impl<O, S, V: ?Sized, P> BrainBuilder<O, S, V, P> {
    /// Changes the last stage.
    pub(super) fn with_last<S2>(self, change: impl FnOnce(&mut StageDefinition)) -> BrainBuilder<O, S2, V, P> {
        self.with(|definition| {
            if let Some(last) = definition.stages.last_mut() {
                change(last);
            }
        })
    }

    /// Changes the last stage, a loop.
    pub(super) fn with_loop(self, change: impl FnOnce(&mut LoopStage)) -> Self {
        self.with_last(|last| {
            if let StageBody::Loop(stage) = &mut last.body {
                change(stage);
            }
        })
    }

    /// Changes the last stage, a loop, and panics at the author's line if that is a misuse.
    #[track_caller]
    pub(super) fn with_checked_loop(self, change: impl FnOnce(&mut LoopStage) -> Result<(), String>) -> Self {
        let mut changed = Ok(());
        let builder = self.with_loop(|stage| changed = change(stage));
        if let Err(misuse) = changed {
            usage_panic(&misuse);
        }
        builder
    }

    /// Changes the last stage, a nested brain.
    pub(super) fn with_nested<S2>(self, change: impl FnOnce(&mut NestedDefinition)) -> BrainBuilder<O, S2, V, P> {
        self.with_last(|last| {
            if let StageBody::Brain(nested) = &mut last.body {
                change(nested);
            }
        })
    }
}

impl<O: Options, S: State, V: Requirement + ?Sized, P: Phase> BrainBuilder<O, S, V, P> {
    /// Sets the public view of the state, after the last stage.
    pub fn public<P2: Serialize>(
        self,
        public: impl Fn(&S) -> P2 + Send + Sync + 'static,
    ) -> BrainBuilder<O, S, V, Ended<P>>
    where
        P: HasStages,
    {
        self.with(|definition| {
            definition.public =
                Some(Arc::new(move |state: &StateValue| encode(&public(&*state.shared::<S>()?), state.max_bytes())));
        })
    }

    /// Builds the brain with a result that callers get instead of the last state.
    pub fn result<R: Serialize + DeserializeOwned + 'static>(
        self,
        result: impl Fn(&S) -> R + Send + Sync + 'static,
    ) -> Brain<O, P::Result<R>, V>
    where
        P: HasStages,
    {
        let builder: Self = self.with(|definition| {
            definition.result =
                Some(Arc::new(move |state: &StateValue| encode(&result(&*state.shared::<S>()?), state.max_bytes())));
        });
        Brain::of(builder.definition)
    }

    /// Builds the brain, whose result is the last state.
    pub fn build(self) -> Brain<O, P::Result<S>, V>
    where
        P: HasStages,
    {
        Brain::of(self.definition)
    }

    /// Builds the brain and binds it to its services; see [`Brain::bind`].
    pub fn bind(self, services: impl IntoServices<V::Services>) -> Brain<O, P::Result<S>>
    where
        P: HasStages,
    {
        self.build().bind(services)
    }

    /// Builds the brain and converts its options and its result to JSON; see [`Brain::erased`].
    pub fn erased(self) -> Brain<Value, Value, V>
    where
        P: HasStages,
    {
        self.build().erased()
    }
}

impl<O: Options, S: State, V: Services, P: Phase> BrainBuilder<O, S, V, P> {
    /// Builds the brain and derives its services from those of an outer brain; see [`Brain::provide`].
    pub fn provide<V2: Services>(self, provide: impl Fn(&V2) -> V + Send + Sync + 'static) -> Brain<O, P::Result<S>, V2>
    where
        P: HasStages,
    {
        self.build().provide(provide)
    }
}

impl<O: Options, S: State, V: Requirement + ?Sized, P: HasStages> IntoBrain for BrainBuilder<O, S, V, P> {
    type Options = O;
    type Result = P::Result<S>;
    type Services = V;

    fn definition(&self) -> Arc<BrainDefinition> {
        Arc::clone(&self.definition)
    }
}
