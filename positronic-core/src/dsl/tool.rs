//! Tools, which a model can call.

mod builder;

use std::marker::PhantomData;
use std::sync::Arc;

use derive_where::derive_where;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::ToolContext;
use super::services::Services;
use super::tool_reply::IntoReply;
use super::trait_bounds::{Options, Standalone, State};
use super::usage_panic::usage_panic;
use crate::definition::{ActionSet, StateValue, ToolBody, ToolDefinition, ToolFn, decode};
use crate::error::{Error, Result};
use crate::record::ToolDecl;

pub use self::builder::ToolBuilder;
pub(super) use self::builder::{arguments_as, decodes};

/// A tool for the loops of brains with options `O`, state `S` and services `V`.
#[derive_where(Clone, Debug)]
pub struct Tool<O = (), S = (), V = ()> {
    pub(super) definition: Arc<ToolDefinition>,
    pub(super) types: PhantomData<fn(O, S, V)>,
}

impl<O: Options, S: State, V: Services> Tool<O, S, V> {
    /// Builds a tool as a value, for use in several loops with [`Loop::tools`](super::Loop::tools).
    ///
    /// ```
    /// use positronic_core::dsl::{NoArgs, Tool};
    ///
    /// fn ping<S: positronic_core::dsl::State>() -> Tool<(), S> {
    ///     Tool::new("ping", |t| t.description("Answers").execute(async |_: NoArgs, _| Ok("pong")))
    /// }
    /// # let _ = ping::<()>();
    /// ```
    ///
    /// # Panics
    ///
    /// If `name` is not a valid tool name.
    #[track_caller]
    #[must_use]
    pub fn new<T: IntoTool<O, S, V>>(name: &str, build: impl FnOnce(ToolBuilder<O, S, V>) -> T) -> Self {
        build(ToolBuilder::new(name)).into_tool()
    }
}

impl<O: Options, S: State, V: Services> Tool<O, S, V> {
    /// Creates a tool whose arguments have a schema but no Rust type, for instance one that a server lists at run time. The
    /// function gets the arguments as JSON, validated against the schema; for flags and other settings use
    /// [`Tool::new`] and [`ToolBuilder::execute_json`].
    ///
    /// ```
    /// use positronic_core::dsl::Tool;
    /// use serde_json::json;
    ///
    /// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    /// let weather: Tool = Tool::dynamic("weather", "Says the weather of a city", schema, async |arguments, _| {
    ///     Ok(format!("It rains in {}.", arguments["city"]))
    /// });
    /// # let _ = weather;
    /// ```
    ///
    /// # Panics
    ///
    /// If `name` is not a valid tool name, or the schema does not describe an object.
    #[track_caller]
    pub fn dynamic<F, Fut, R>(name: &str, description: impl Into<String>, schema: Value, execute: F) -> Self
    where
        F: Fn(Value, ToolContext<O, S, V>) -> Fut + Standalone,
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: IntoReply<S>,
    {
        ToolBuilder::new(name).description(description).execute_json(schema, execute)
    }
}

impl<O: Options, S: State, V: Services> Tool<O, S, V> {
    /// Folds the result of each successful call into the state, after the tool's own changes: for a tool that does
    /// not know this brain. `A` is decoded from the call's arguments, `R` from its result; for a tool that waits, that is the
    /// result before the wait.
    ///
    /// ```
    /// use positronic_core::dsl::Tool;
    /// use positronic_core::prelude::*;
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Search { query: String }
    ///
    /// let search = Tool::new("search", |t| t.execute(async |Search { query }, _| Ok(vec![format!("about {query}")])));
    /// let scout = brain("Scout").state(Vec::<String>::new()).r#loop("Search", move |cx| {
    ///     let keep = |found: &mut Vec<String>, _: Search, pages: Vec<String>| found.extend(pages);
    ///     cx.system("Search.").tools([search.clone().keep(keep)])
    /// });
    /// # let _ = scout;
    /// ```
    ///
    /// # Panics
    ///
    /// If the tool runs a brain, whose result is folded with `map_output`.
    #[track_caller]
    #[must_use]
    pub fn keep<A, R>(self, keep: impl Fn(&mut S, A, R) + Standalone) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        R: DeserializeOwned + Send + 'static,
    {
        let mut definition = Arc::unwrap_or_clone(self.definition);
        let ToolBody::Function { execute: inner, waits } = definition.body else {
            usage_panic(&format!("the tool `{}` runs a brain; fold its result with `map_output`", definition.decl.id));
        };
        let keep = Arc::new(keep);
        let schema = Arc::clone(&definition.schema);
        let execute: ToolFn = Arc::new(move |arguments, scope| {
            let (inner, keep) = (Arc::clone(&inner), Arc::clone(&keep));
            let asked = decode::<A>("the arguments", schema.inner(&arguments));
            Box::pin(async move {
                let asked = asked?;
                let mut reply = inner(arguments, scope).await?;
                let given = R::deserialize(&reply.output).map_err(|error| {
                    let kept = std::any::type_name::<R>();
                    Error::new(format!("the tool has run, but its result cannot be decoded as `{kept}`: {error}"))
                })?;
                let fold = move |document: &StateValue| document.updated(|state| keep(state, asked, given));
                reply.updates.push(Box::new(fold));
                Ok(reply)
            })
        });
        definition.body = ToolBody::Function { execute, waits };
        let (decodes, schema) = (Arc::clone(&definition.decodes), Arc::clone(&definition.schema));
        definition.decodes = Arc::new(move |arguments| {
            decodes(arguments)?;
            A::deserialize(schema.inner(arguments)).map(drop).map_err(|error| Error::new(error.to_string()))
        });
        Self { definition: Arc::new(definition), types: PhantomData }
    }
}

/// A tool for all brains of a project, used by name with [`Loop::actions`](super::Loop::actions). It
/// sees the state and the options as JSON, and owns its other dependencies. It may change the state, which must match
/// the brain's type afterwards.
pub type Action = Tool<Value, Value>;

/// A tool for the loops of brains with options `O`, state `S` and services `V`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool for a loop with options `{O}`, state `{S}` and services `{V}`",
    label = "a `Tool<{O}, {S}, {V}>` is needed here",
    note = "a tool that is built here ends with `.execute(…)`, or with `.brain(…)` and its maps",
    note = "a tool that was built elsewhere has the options, the state and the services of the loop's brain",
    note = "a brain with the services `()` declares none; declare them before its first stage: `brain(…).services::<…>()`"
)]
pub trait IntoTool<O, S, V> {
    /// Returns the tool.
    fn into_tool(self) -> Tool<O, S, V>;
}

impl<O, S, V> IntoTool<O, S, V> for Tool<O, S, V> {
    fn into_tool(self) -> Self {
        self
    }
}

impl ActionSet {
    /// Adds an action. It replaces an earlier one of the same name.
    pub fn insert(&mut self, action: Action) {
        self.add(action.definition);
    }
}

impl<O, S, V> Tool<O, S, V> {
    pub(crate) const fn of_definition(definition: Arc<ToolDefinition>) -> Self {
        Self { definition, types: PhantomData }
    }

    pub(crate) const fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    /// Returns the declaration for models and people.
    #[must_use]
    pub fn decl(&self) -> &ToolDecl {
        &self.definition.decl
    }
}
