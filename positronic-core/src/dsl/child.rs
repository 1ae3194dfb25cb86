//! Child runs: started by a step or a tool, with a log of their own.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use derive_where::derive_where;
use futures::future::BoxFuture;
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::brain::Runnable;
use super::context::{StepContext, ToolContext};
use crate::definition::{Link, NewChild, encode};
use crate::error::{Error, Result};
use crate::record::{Budget, ChildLink, Path, RunId};

/// A run that a step or a tool has started, with the result `R`. It can be part of a state or of options; a [`join`](super::BrainBuilder::join)
/// waits for its end.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
#[derive_where(Debug, Clone, PartialEq, Eq)]
pub struct Child<R> {
    run: RunId,
    #[serde(skip)]
    result: PhantomData<fn() -> R>,
}

/// The schema of a run's id: options may have a child, such as those of the brain that a `map` runs to join it.
impl<R> JsonSchema for Child<R> {
    fn schema_name() -> Cow<'static, str> {
        "Child".into()
    }

    fn schema_id() -> Cow<'static, str> {
        concat!(module_path!(), "::Child").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "properties": { "run": { "type": "string" } },
            "required": ["run"],
        })
    }
}

impl<R> Child<R> {
    /// Returns the id of the run.
    #[must_use]
    pub const fn run(&self) -> &RunId {
        &self.run
    }
}

/// A child run that begins when this is awaited; `cx.start(…)` makes it.
#[must_use = "it starts the run when it is awaited"]
#[derive_where(Debug)]
pub struct StartChild<R> {
    #[derive_where(skip)]
    link: Arc<dyn Link>,
    path: Path,
    child: Result<NewChild>,
    result: PhantomData<fn() -> R>,
}

impl<R> StartChild<R> {
    /// Lets the child go on after the end of the run that starts it. Without this, it is cancelled then.
    pub fn detached(self) -> Self {
        self.linked(ChildLink::Detached)
    }

    /// Lets the end of the child be a message to the loop of this call, which waits for it.
    pub(super) fn background(self) -> Self {
        self.linked(ChildLink::Background)
    }

    /// Sets the budget of the child: each limit that is set here overrides the brain author's. What it uses counts for no limit of
    /// the run that starts it.
    pub fn budget(mut self, budget: Budget) -> Self {
        if let Ok(child) = &mut self.child {
            child.budget = Some(budget);
        }
        self
    }

    fn linked(mut self, link: ChildLink) -> Self {
        if let Ok(child) = &mut self.child {
            child.link = link;
        }
        self
    }
}

impl<R: 'static> IntoFuture for StartChild<R> {
    type Output = Result<Child<R>>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let run = self.link.start_child(&self.path, self.child?).await?;
            Ok(Child { run, result: PhantomData })
        })
    }
}

macro_rules! start_method {
    ($context:ident) => {
        impl<O, S, V> $context<O, S, V> {
            /// Starts a run of a brain, with a log of its own, as a child of this one. The same step or call starts one run under one
            /// name, also when it reruns after a crash, and gets it again. It belongs to the user of this run, uses its own budget, and
            /// is cancelled when this run ends, unless it is [detached](StartChild::detached).
            ///
            /// The runner of this run works on it. For it to go on in another process, that one's runner has to know the brain
            /// ([`Runner::brain`](crate::runner::Runner::brain)).
            ///
            /// ```
            /// use positronic_core::dsl::Child;
            /// use positronic_core::prelude::*;
            ///
            /// fn survey() -> Brain<String, usize> {
            ///     brain("Survey").options::<String>().step("Read", async |cx| Ok(cx.options.len())).build()
            /// }
            ///
            /// let report = brain("Report")
            ///     .step("Begin", async |cx| cx.start("survey", survey(), "birds".to_owned()).await)
            ///     .join("Survey", |survey: &Child<usize>| survey.clone(), |_, birds| birds.unwrap_or_default());
            /// # let _ = report;
            /// ```
            ///
            /// # Errors
            ///
            /// An [`Error`](crate::error::Error) when the options do not fit the brain, the run cannot be started, or the worker of
            /// this run has stopped.
            pub fn start<B: Runnable>(&self, name: &str, brain: B, options: B::Options) -> StartChild<B::Result> {
                let definition = brain.definition();
                let options = encode(&options, self.scope.max_bytes());
                let child = options.map(|options| {
                    let link = ChildLink::default();
                    NewChild { name: name.to_owned(), definition, options, link, budget: None }
                });
                let child =
                    child.map_err(|error| Error::new(format!("the options of the child run `{name}`: {error}")));
                let (link, path) = (Arc::clone(&self.scope.link), self.scope.path.clone());
                StartChild { link, path, child, result: PhantomData }
            }
        }
    };
}

start_method!(StepContext);
start_method!(ToolContext);
