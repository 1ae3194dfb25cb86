//! Brains: finished workflows with options, a result and services.

use std::marker::PhantomData;
use std::sync::Arc;

use derive_where::derive_where;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::services::{Bound, IntoServices, NoServices, Requirement, Services, services};
use super::trait_bounds::Options;
use crate::definition::{AnyServices, BrainDefinition, Structure};
use crate::record::Budget;
use crate::tools::Schema;

/// A workflow with options `O`, the result `R`, and the services `V` that it needs: [`NoServices`] if it declares none or is
/// bound to its own. [`brain`](super::brain) builds it.
#[must_use = "a brain does nothing until a runner runs it"]
#[derive_where(Clone, Debug)]
pub struct Brain<O = (), R = (), V: ?Sized = NoServices> {
    definition: Arc<BrainDefinition>,
    types: BrainTypes<O, R, V>,
}

/// The types of the inputs (options, services) and of the result.
type BrainTypes<O, R, V> = PhantomData<(fn(O, &V), fn() -> R)>;

impl<O, R, V: ?Sized> Brain<O, R, V> {
    pub(super) const fn of(definition: Arc<BrainDefinition>) -> Self {
        Self { definition, types: PhantomData }
    }

    pub(super) fn into_definition(self) -> Arc<BrainDefinition> {
        self.definition
    }

    pub(super) fn with<R2, V2: ?Sized>(self, change: impl FnOnce(&mut BrainDefinition)) -> Brain<O, R2, V2> {
        let mut definition = Arc::unwrap_or_clone(self.definition);
        change(&mut definition);
        Brain::of(Arc::new(definition))
    }

    pub(super) fn provided<V2: ?Sized>(
        self,
        provide: impl Fn(AnyServices) -> AnyServices + Send + Sync + 'static,
    ) -> Brain<O, R, V2> {
        self.with(|definition| {
            definition.provide = Some(match definition.provide.take() {
                Some(inner) => Arc::new(move |outer| inner(provide(outer))),
                None => Arc::new(provide),
            });
        })
    }

    /// Returns the title.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.definition.title
    }

    /// Returns the stages of the brain and the brains that they run, as data.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    ///
    /// let greeter = brain("Greeter").step("Greet", async |_| Ok(1)).build();
    /// assert_eq!(greeter.structure().stages[0].name, "Greet");
    /// ```
    #[must_use]
    pub fn structure(&self) -> Structure {
        self.definition.structure()
    }

    /// Changes the budget of the brain and everything below it; see [`BrainBuilder::budget`](super::BrainBuilder::budget).
    pub fn budget(self, limit: impl FnOnce(Budget) -> Budget) -> Self {
        self.with(|definition| definition.budget = Some(limit(definition.budget.take().unwrap_or_default())))
    }

    /// Describes the result by the JSON schema of its type, for callers of other programs: a bridge gives it to their models.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    /// # use schemars::JsonSchema;
    /// # use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize, JsonSchema)]
    /// struct Weather { degrees: f64 }
    ///
    /// let weather = brain("Weather").step("Measure", async |_| Ok(7.5)).result(|degrees| Weather { degrees: *degrees });
    /// let weather = weather.with_result_schema();
    /// # let _ = weather;
    /// ```
    pub fn with_result_schema(self) -> Self
    where
        R: JsonSchema + 'static,
    {
        self.with(|definition| definition.result_schema = Some(Schema::of::<R>()))
    }

    /// Converts options and result to JSON, so that brains of several types fit in one list.
    pub fn erased(self) -> Brain<Value, Value, V> {
        Brain::of(self.definition)
    }

    /// Binds the brain to its services, or to an `Arc` of them: a test can keep a clone to inspect changes.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use positronic_core::prelude::*;
    /// struct Acme;
    ///
    /// let support = brain("Support").services::<Acme>().step("Open", async |_| Ok(1)).build();
    /// let acme = Arc::new(Acme);
    /// let shared = support.clone().bind(Arc::clone(&acme));
    /// let owned = support.bind(Acme);
    /// # let _ = (shared, owned);
    /// ```
    pub fn bind(self, services: impl IntoServices<V::Services>) -> Brain<O, R>
    where
        V: Requirement,
    {
        let bound: AnyServices = services.into_services();
        self.provided(move |_| Arc::clone(&bound))
    }
}

impl<O, R, V: Services> Brain<O, R, V> {
    /// Derives the brain's services from those of an outer brain, so that it can be nested there.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    ///
    /// struct Database(String);
    /// struct Acme { database: String }
    ///
    /// let billing = brain("Billing").services::<Database>().step("Open", async |_| Ok(1)).build();
    /// let billing: Brain<(), u32, Acme> = billing.provide(|acme: &Acme| Database(acme.database.clone()));
    /// # let _ = billing;
    /// ```
    pub fn provide<V2: Services>(self, provide: impl Fn(&V2) -> V + Send + Sync + 'static) -> Brain<O, R, V2> {
        self.provided(move |outer| match services::<V2>(&outer) {
            Ok(outer) => Arc::new(provide(&outer)),
            Err(_) => Arc::new(()),
        })
    }
}

/// A [`Brain`], its finished [builder](super::BrainBuilder), or a reference to one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a brain",
    label = "a brain is needed here",
    note = "a brain begins with `brain(\"Title\")`, and is used after its last stage"
)]
pub trait IntoBrain {
    /// The options of a run.
    type Options: Options;
    /// The result of a run.
    type Result: DeserializeOwned + 'static;
    /// The services that the brain needs.
    type Services: Requirement + ?Sized;

    /// Returns the untyped brain.
    fn definition(&self) -> Arc<BrainDefinition>;

    /// Returns the brain.
    fn into_brain(self) -> Brain<Self::Options, Self::Result, Self::Services>
    where
        Self: Sized,
    {
        Brain::of(self.definition())
    }
}

#[diagnostic::do_not_recommend]
impl<O: Options, R: DeserializeOwned + 'static, V: Requirement + ?Sized> IntoBrain for Brain<O, R, V> {
    type Options = O;
    type Result = R;
    type Services = V;

    fn definition(&self) -> Arc<BrainDefinition> {
        Arc::clone(&self.definition)
    }
}

impl<B: IntoBrain> IntoBrain for &B {
    type Options = B::Options;
    type Result = B::Result;
    type Services = B::Services;

    fn definition(&self) -> Arc<BrainDefinition> {
        B::definition(self)
    }
}

/// A brain that is ready to run: it declares no services, or is bound to them.
pub trait Runnable: IntoBrain<Services: Bound> {}

impl<B: IntoBrain<Services: Bound>> Runnable for B {}
