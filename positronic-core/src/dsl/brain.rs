//! Brains: title, options, services, and stages in order.

use std::marker::PhantomData;
use std::sync::Arc;

use derive_where::derive_where;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::services::{IntoServices, Needs, NoServices, Requirement, Services, Within, services};
use super::trait_bounds::{Options, Runnable, State};
use super::usage_panic::usage_panic;
use crate::definition::{
    AnyServices, BrainDefinition, StageBody, StageDefinition, StateValue, encode, encode_state, read_value,
};
use crate::error::Error;
use crate::record::{Budget, Path};
use crate::tools::Schema;

/// A workflow with options `O`, stages that transform the state `S`, the services that it needs, `N` ([`NoServices`], or
/// [`Needs`] of some), and a result `R`, which is the state unless [`Brain::result`] sets another one.
#[must_use = "a brain does nothing until a runner runs it"]
#[derive_where(Clone, Debug)]
pub struct Brain<O = (), S = (), N = NoServices, R = S> {
    pub(super) definition: Arc<BrainDefinition>,
    pub(super) types: Types<O, S, N, R>,
}

/// The types of the inputs (options, services) and outputs (state, result).
type Types<O, S, N, R> = PhantomData<(fn(O, N), fn() -> (S, R))>;

/// Creates a brain with this title, by which people, logs and the command line name it.
///
/// # Panics
///
/// If the title has no letter and no digit.
#[track_caller]
pub fn brain(title: impl Into<String>) -> Brain {
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
        stages: Vec::new(),
        actions: Vec::new(),
        result: None,
        public: None,
        provide: None,
        budget: None,
        migrations: std::collections::BTreeMap::new(),
    };
    Brain { definition: Arc::new(definition), types: PhantomData }
}

impl<O, S, N, R> Brain<O, S, N, R> {
    fn with<O2, S2, N2, R2>(self, change: impl FnOnce(&mut BrainDefinition)) -> Brain<O2, S2, N2, R2> {
        let mut definition = Arc::unwrap_or_clone(self.definition);
        change(&mut definition);
        Brain { definition: Arc::new(definition), types: PhantomData }
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

    /// Declares actions of the project that later loops may use with [`Loop::actions`](super::Loop::actions). A project without
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
    /// let runner = Runner::builder().model(model).build().action(finish);
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

    /// Returns the definition of a brain that is about to be used.
    #[track_caller]
    pub(super) fn complete(self) -> Arc<BrainDefinition> {
        if self.definition.stages.is_empty() {
            usage_panic(&format!(
                "the brain `{}` has no stages, so it would do nothing; add one with `.step(…)` or `.r#loop(…)`",
                self.definition.title
            ));
        }
        self.definition
    }

    pub(crate) const fn untyped(&self) -> &Arc<BrainDefinition> {
        &self.definition
    }

    /// Returns the title.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.definition.title
    }

    /// Converts options and result to JSON, so that brains of several types fit in one list.
    pub fn erased(self) -> Brain<Value, Value, N, Value> {
        self.with(|_| ())
    }

    /// Binds the brain to its services, or to an `Arc` of them: a test can keep a clone to inspect changes.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use positronic_core::prelude::*;
    /// struct Acme;
    ///
    /// let acme = Arc::new(Acme);
    /// let shared = brain("Support").services::<Acme>().bind(Arc::clone(&acme));
    /// let owned = brain("Support").services::<Acme>().bind(Acme);
    /// # let _ = (shared, owned);
    /// ```
    pub fn bind(self, services: impl IntoServices<N::Services>) -> Brain<O, S, NoServices, R>
    where
        N: Requirement,
    {
        let bound: AnyServices = services.into_services();
        self.with(|definition| {
            let inner = definition.provide.take();
            definition.provide = Some(Arc::new(move |_| match &inner {
                Some(inner) => inner(Arc::clone(&bound)),
                None => Arc::clone(&bound),
            }));
        })
    }
}

impl<O, S, V: Services, R> Brain<O, S, Needs<V>, R> {
    /// Derives the brain's services from those of an outer brain, so that it can be nested there.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    ///
    /// struct Database(String);
    /// struct Acme { database: String }
    ///
    /// let billing = brain("Billing").services::<Database>();
    /// let billing: Brain<(), (), Needs<Acme>> = billing.provide(|acme: &Acme| Database(acme.database.clone()));
    /// # let _ = billing;
    /// ```
    pub fn provide<V2: Services>(
        self,
        provide: impl Fn(&V2) -> V + Send + Sync + 'static,
    ) -> Brain<O, S, Needs<V2>, R> {
        self.with(|definition| {
            let inner = definition.provide.take();
            definition.provide = Some(Arc::new(move |around: AnyServices| {
                let Ok(around) = services::<V2>(&around) else {
                    let nothing: AnyServices = Arc::new(NoServices);
                    return nothing;
                };
                let own: AnyServices = Arc::new(provide(&around));
                match &inner {
                    Some(inner) => inner(own),
                    None => own,
                }
            }));
        })
    }
}

impl<S, N> Brain<(), S, N> {
    /// Sets the type of the options: the typed input of a run, with a schema.
    ///
    /// # Panics
    ///
    /// If the brain already has stages, which have no options.
    #[track_caller]
    pub fn options<O: Options>(self) -> Brain<O, S, N> {
        if !self.definition.stages.is_empty() {
            usage_panic(&format!(
                "`{}` sets its options after a stage; set them before the first",
                self.definition.title
            ));
        }
        self.with(|definition| {
            definition.options = Schema::of::<O>();
            definition.read_options = Arc::new(|given, max_bytes| {
                let given = if given.is_null() { &Value::Object(serde_json::Map::new()) } else { given };
                Schema::of::<O>().check(given).map_err(Error::new)?;
                let options = read_value::<O>(given).map_err(|error| Error::new(error.to_string()))?;
                encode(&options, max_bytes)
            });
        })
    }
}

impl<O, S> Brain<O, S, NoServices> {
    /// Sets the type of the services: the dependencies of the brain's code, which are never stored.
    ///
    /// # Panics
    ///
    /// If the brain already has stages, which have no services.
    #[track_caller]
    pub fn services<V: Services>(self) -> Brain<O, S, Needs<V>> {
        if !self.definition.stages.is_empty() {
            usage_panic(&format!(
                "`{}` sets its services after a stage; set them before the first",
                self.definition.title
            ));
        }
        self.with(|_| ())
    }
}

impl<O: Options, N> Brain<O, (), N> {
    /// Sets the initial state.
    ///
    /// # Panics
    ///
    /// If the brain already has stages, or the state cannot be encoded as JSON.
    #[track_caller]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the state is moved into the brain; a reference would be surprising"
    )]
    pub fn state<S: State>(self, initial: S) -> Brain<O, S, N> {
        if !self.definition.stages.is_empty() {
            usage_panic(&format!("`{}` sets its state after a stage; set it before the first", self.definition.title));
        }
        let initial = encode_state(&initial, usize::MAX).unwrap_or_else(|error| usage_panic(&error.to_string()));
        self.with(|definition| definition.initial = Arc::new(initial))
    }
}

impl<O: Options, S: State, N: Requirement> Brain<O, S, N> {
    #[track_caller]
    pub(super) fn stage<S2>(self, name: &str, body: StageBody) -> Brain<O, S2, N> {
        let title = &self.definition.title;
        if !Path::is_stage_name(name) {
            usage_panic(&format!(
                "`{name}` cannot name a stage of `{title}`: a name must not be empty or a number, and must not contain `/`"
            ));
        }
        if self.definition.stage(name).is_some() {
            usage_panic(&format!("`{title}` has two stages named `{name}`; give one of them another name"));
        }
        if self.definition.result.is_some() || self.definition.public.is_some() {
            usage_panic(&format!("`{title}` adds the stage `{name}` after `.result` or `.public`; call those last"));
        }
        if self.definition.provide.is_some() {
            usage_panic(&format!("`{title}` adds the stage `{name}` after `.bind` or `.provide`; call those last"));
        }
        self.with(|definition| definition.stages.push(StageDefinition { name: name.to_owned(), body }))
    }

    /// Sets the result for callers; the default is the state. Call it after the last stage.
    pub fn result<R: Serialize + DeserializeOwned + 'static>(
        self,
        result: impl Fn(&S) -> R + Send + Sync + 'static,
    ) -> Brain<O, S, N, R> {
        self.with(|definition| {
            definition.result =
                Some(Arc::new(move |state: &StateValue| encode(&result(&*state.shared::<S>()?), state.max_bytes())));
        })
    }
}

impl<O, S: State, N, R> Brain<O, S, N, R> {
    /// Sets the public view of the state. Call it after the last stage.
    pub fn public<P: Serialize>(self, public: impl Fn(&S) -> P + Send + Sync + 'static) -> Self {
        self.with(|definition| {
            definition.public =
                Some(Arc::new(move |state: &StateValue| encode(&public(&*state.shared::<S>()?), state.max_bytes())));
        })
    }
}

#[diagnostic::do_not_recommend]
impl<O: Options, S, N: Within<NoServices>, R: DeserializeOwned> Runnable for Brain<O, S, N, R> {
    type Options = O;
    type Result = R;

    #[track_caller]
    fn definition(&self) -> Arc<BrainDefinition> {
        self.clone().complete()
    }
}

#[diagnostic::do_not_recommend]
impl<B: Runnable> Runnable for &B {
    type Options = B::Options;
    type Result = B::Result;

    #[track_caller]
    fn definition(&self) -> Arc<BrainDefinition> {
        B::definition(self)
    }
}
