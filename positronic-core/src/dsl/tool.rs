//! Tools: what a model can call.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::about::{About, about_methods, tool_id, tries_methods};
use super::approval::{reading, verdict};
use super::bounds::{Agrees, Args, IntoTool, IntoVerdict, Options, Services, State, ToolArgs, Unset, Within};
use super::brain::Brain;
use super::brain_tool::BrainTool;
use super::context::ToolContext;
use super::reply::IntoReply;
use super::usage_panic::usage_panic;
use super::wait::Wait;
use crate::definition::{ActionSet, ExitsFn, StateValue, ToolBody, ToolDefinition, ToolFn, WaitsFn};
use crate::error::{Error, Result};
use crate::record::ToolDecl;
use crate::tools::Schema;

/// A tool for the loops of brains with options `O`, state `S` and services `V`.
pub struct Tool<O, S, V> {
    pub(super) definition: Arc<ToolDefinition>,
    pub(super) types: PhantomData<fn(O, S, V)>,
}

impl<O: Options, S: State, V: Services> Tool<O, S, V> {
    /// Builds a tool as a value, to be used in several loops with [`Loop::tools`](super::Loop::tools).
    ///
    /// ```
    /// use positronic_core::dsl::{NoArgs, Tool};
    ///
    /// fn ping<S: positronic_core::dsl::State>() -> Tool<(), S, ()> {
    ///     Tool::new("ping", |t| t.description("Answers").execute(async |_: NoArgs, _| Ok("pong")))
    /// }
    /// # let _ = ping::<()>();
    /// ```
    ///
    /// # Panics
    ///
    /// When `name` is no tool name.
    #[track_caller]
    #[must_use]
    pub fn new<T: IntoTool<O, S, V>>(name: &str, build: impl FnOnce(ToolBuilder<O, S, V>) -> T) -> Self {
        build(ToolBuilder::new(name)).into_tool()
    }
}

impl<O: Options, S: State, V: Services> Tool<O, S, V> {
    /// Makes a tool whose arguments have a schema but no type, for instance one that a server lists at run time. The
    /// function gets the arguments as JSON, checked against the schema; flags and the like are said with
    /// [`Tool::new`] and [`ToolBuilder::execute_json`].
    ///
    /// ```
    /// use positronic_core::dsl::Tool;
    /// use serde_json::json;
    ///
    /// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    /// let weather: Tool<(), (), ()> = Tool::dynamic("weather", "Says the weather of a city", schema, async |arguments, _| {
    ///     Ok(format!("It rains in {}.", arguments["city"]))
    /// });
    /// # let _ = weather;
    /// ```
    ///
    /// # Panics
    ///
    /// When `name` is no tool name, or when the schema describes no object.
    #[track_caller]
    pub fn dynamic<F, Fut, R>(name: &str, description: impl Into<String>, schema: Value, execute: F) -> Self
    where
        F: Fn(Value, ToolContext<O, S, V>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: IntoReply<S>,
    {
        ToolBuilder::new(name).description(description).execute_json(schema, execute)
    }
}

impl<O: Options, S: State, V: Services> Tool<O, S, V> {
    /// Builds a tool that runs a brain, as a value; [`Loop::brain`](super::Loop::brain) says what it does.
    ///
    /// # Panics
    ///
    /// When `name` is no tool name.
    #[track_caller]
    #[must_use]
    pub fn brain<O2: Options, S2, V2: Within<V>, R: DeserializeOwned + 'static>(
        name: &str,
        brain: Brain<O2, S2, V2, R>,
        build: impl FnOnce(BrainTool<O, S, V, O2, R>) -> BrainTool<O, S, V, O2, R>,
    ) -> Self {
        build(BrainTool::new(tool_id(name), brain)).into()
    }
}

impl<O: Options, S: State, V: Services> Tool<O, S, V> {
    /// Folds what each successful call gave into the state, after the tool's own changes: for a tool that was made elsewhere and
    /// does not know this brain. `A` is read from the call's arguments, `R` from its result; where the tool waits, that is the
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
    /// When the tool runs a brain, whose result is folded with `map_output`.
    #[track_caller]
    #[must_use]
    pub fn keep<A, R>(self, keep: impl Fn(&mut S, A, R) + Send + Sync + 'static) -> Self
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
            let asked = read::<A>(schema.inner(&arguments));
            Box::pin(async move {
                let asked = asked?;
                let mut reply = inner(arguments, scope).await?;
                let given = R::deserialize(&reply.output).map_err(|error| {
                    let kept = std::any::type_name::<R>();
                    Error::new(format!("the tool has run, but what it gave is no `{kept}`: {error}"))
                })?;
                let fold = move |document: &StateValue| document.updated(|state| keep(state, asked, given));
                reply.updates.push(Box::new(fold));
                Ok(reply)
            })
        });
        definition.body = ToolBody::Function { execute, waits };
        Self { definition: Arc::new(definition), types: PhantomData }
    }
}

/// A tool that fits into every brain of a project and is chosen by its name, with [`Loop::actions`](super::Loop::actions). It
/// sees the state and the options as JSON; what it needs beside them it owns. It may change the state, which has to fit
/// the brain's type afterwards.
pub type Action = Tool<Value, Value, ()>;

impl ActionSet {
    /// Adds an action. One of the same name takes the place of an earlier one.
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

    /// Returns the tool as models and people see it.
    #[must_use]
    pub fn decl(&self) -> &ToolDecl {
        &self.definition.decl
    }
}

impl<O, S, V> Clone for Tool<O, S, V> {
    fn clone(&self) -> Self {
        Self { definition: Arc::clone(&self.definition), types: PhantomData }
    }
}

impl<O, S, V> fmt::Debug for Tool<O, S, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.definition.fmt(f)
    }
}

/// Builds a tool. `A` is the type of its arguments once a closure has said it.
#[must_use = "a tool is made by `execute`"]
pub struct ToolBuilder<O, S, V, A = Unset> {
    about: About<Arc<Value>>,
    waits: Option<WaitsFn>,
    exits: Option<ExitsFn>,
    types: PhantomData<fn(O, S, V, A)>,
}

impl<O: Options, S: State, V: Services> ToolBuilder<O, S, V> {
    #[track_caller]
    pub(super) fn new(name: &str) -> Self {
        Self::of(About::new(tool_id(name)))
    }

    pub(super) const fn of(about: About<Arc<Value>>) -> Self {
        Self { about, waits: None, exits: None, types: PhantomData }
    }
}

about_methods!(ToolBuilder<O, S, V, A>);
tries_methods!(ToolBuilder<O, S, V, A>);

impl<O: Options, S: State, V: Services, A> ToolBuilder<O, S, V, A> {
    /// Asks a person before a call for which the closure returns `Some(reason)`. The closure may return a future.
    ///
    /// It is asked once, when the model's answer is there; its verdict is recorded. If it panics, the call fails.
    ///
    /// Where a person approves a call with other arguments, the closure is asked about these before the tool runs. A reason
    /// is answered then, by the person who wrote them; if the closure panics, the tool does not run, and the call's result
    /// says why. An edit that changes whether the call ends its loop is refused in the same way.
    ///
    /// A future owns what it needs, so take that from the arguments first:
    ///
    /// ```
    /// # use positronic_core::prelude::*;
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Refund { amount: u32 }
    /// # struct Acme;
    /// # impl Acme { async fn limit(&self) -> u32 { 100 } }
    /// # let _ = brain("Support").services::<Acme>().r#loop("Chat", |cx| cx.system("Help.").tool("refund", |t| {
    /// t.approval(|refund: &Refund, cx| {
    ///     let (amount, acme) = (refund.amount, cx.services.clone());
    ///     async move { (amount > acme.limit().await).then(|| format!("a refund of {amount}")) }
    /// })
    /// # .execute(async |_, _| Ok("paid"))
    /// # }));
    /// ```
    pub fn approval<T, F, R, When>(mut self, approval: F) -> ToolBuilder<O, S, V, Args<T>>
    where
        A: Agrees<T>,
        T: ToolArgs,
        F: Fn(&T, &ToolContext<O, S, V>) -> R + Send + Sync + 'static,
        R: IntoVerdict<When>,
    {
        self.about.approval.only_if(reading(verdict(approval), |arguments: &Arc<Value>, _| decode::<T>(arguments)));
        self.typed()
    }

    /// Waits after the tool has run, until the first of these arrives; its payload becomes part of the result, with the name of
    /// its webhook where there are several waits. [`Wait::resume`] says what the payload does to the state.
    ///
    /// The closure runs when the tool has done its work, and once more when an answer is there, to find what
    /// [`Wait::resume`] says.
    pub fn wait<T, P, F, const N: usize>(self, waits: F) -> ToolBuilder<O, S, V, Args<T>>
    where
        A: Agrees<T>,
        T: ToolArgs,
        F: Fn(&T, &ToolContext<O, S, V>) -> [Wait<S, P>; N] + Send + Sync + 'static,
    {
        self.wait_any(waits)
    }

    /// Waits as [`ToolBuilder::wait`] does, for a list of any length: a `Vec`, or an `Option` where not every call waits. The
    /// closures of [`Wait::resume`] say the state's type here: `|ticket: &mut Ticket, message| …`.
    pub fn wait_any<T, P, F, I>(mut self, waits: F) -> ToolBuilder<O, S, V, Args<T>>
    where
        A: Agrees<T>,
        T: ToolArgs,
        F: Fn(&T, &ToolContext<O, S, V>) -> I + Send + Sync + 'static,
        I: IntoIterator<Item = Wait<S, P>>,
    {
        self.waits = Some(Arc::new(move |arguments, scope| {
            let arguments = decode::<T>(arguments)?;
            let waits = waits(&arguments, &ToolContext::new(scope.clone())?);
            waits.into_iter().map(|wait| wait.into_terms().into_definition()).collect()
        }));
        self.typed()
    }

    /// Ends the loop when a call succeeds for which the closure says so; other calls are calls of an ordinary tool. As with
    /// [`ToolBuilder::exit`], a text answer does not end the loop.
    ///
    /// The closure is asked once, when the model's answer is there, about the arguments that the model proposed: what it
    /// says stands when a person edits them. If it panics, the call fails.
    ///
    /// ```
    /// # use positronic_core::prelude::*;
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Move { resign: bool }
    /// # let _ = brain("Chess").r#loop("Play", |cx| cx.system("Play.").tool("move", |t| {
    /// t.exit_if(|chess: &Move| chess.resign).execute(async |_, _| Ok("noted"))
    /// # }));
    /// ```
    pub fn exit_if<T, F>(mut self, exits: F) -> ToolBuilder<O, S, V, Args<T>>
    where
        A: Agrees<T>,
        T: ToolArgs,
        F: Fn(&T) -> bool + Send + Sync + 'static,
    {
        self.about.flags.exit = true;
        self.exits = Some(Arc::new(move |arguments| Ok(exits(&decode::<T>(arguments)?))));
        self.typed()
    }

    fn typed<T>(self) -> ToolBuilder<O, S, V, Args<T>> {
        let Self { about, waits, exits, types: PhantomData } = self;
        ToolBuilder { about, waits, exits, types: PhantomData }
    }

    /// Makes the tool from its function.
    ///
    /// The function gets the checked arguments and the context. An argument that `T` does not name is refused, as by `#[tool]`;
    /// a map with `#[serde(flatten)]` takes in further ones. It returns any value that can be written as JSON, or
    /// `cx.result(…)` to also change the state or to wait.
    ///
    /// Providers demand that arguments are an object in JSON. Where `T` is no struct, the model is asked for an object with the one
    /// field `value`, and the function gets what that holds.
    pub fn execute<T, F, Fut, R>(self, execute: F) -> Tool<O, S, V>
    where
        A: Agrees<T>,
        T: ToolArgs,
        F: Fn(T, ToolContext<O, S, V>) -> Fut + Send + Sync + 'static, // captures? move |args, cx| { let x = x.clone(); async move { … } }
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: IntoReply<S>,
    {
        self.made(Schema::of_arguments::<T>(), execute)
    }

    /// Makes the tool from a schema and a function that gets the arguments as JSON, checked against the schema.
    ///
    /// The schema is compiled once for each tool that is made, so a tool that is used in every iteration is best made once
    /// and given to the loop with [`Loop::tools`](super::Loop::tools). Closures of the same tool, such as that of
    /// [`ToolBuilder::approval`], take a [`Value`], too.
    ///
    /// # Panics
    ///
    /// When the schema describes no object, as providers demand.
    #[track_caller]
    pub fn execute_json<F, Fut, R>(self, schema: Value, execute: F) -> Tool<O, S, V>
    where
        A: Agrees<Value>,
        F: Fn(Value, ToolContext<O, S, V>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: IntoReply<S>,
    {
        let mut schema = schema;
        schema.sort_all_objects();
        if !describes_object(&schema) {
            usage_panic(&format!(
                "the schema of the tool `{}` describes no object: give it `\"type\": \"object\"`",
                self.about.id
            ));
        }
        self.made(Arc::new(Schema::new(schema)), execute)
    }

    /// Makes the tool from the schema of another program, which is compiled already, and describes an object.
    #[cfg(feature = "mcp")]
    pub(crate) fn execute_checked<F, Fut, R>(self, schema: Arc<Schema>, execute: F) -> Tool<O, S, V>
    where
        A: Agrees<Value>,
        F: Fn(Value, ToolContext<O, S, V>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: IntoReply<S>,
    {
        let mut tool = self.made(schema, execute);
        Arc::make_mut(&mut tool.definition).foreign = true;
        tool
    }

    fn made<T, F, Fut, R>(self, schema: Arc<Schema>, execute: F) -> Tool<O, S, V>
    where
        T: ToolArgs,
        F: Fn(T, ToolContext<O, S, V>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: IntoReply<S>,
    {
        let (waits, added) = (self.waits.clone(), self.waits);
        let execute = Arc::new(execute);
        let body = ToolBody::Function {
            execute: Arc::new(move |arguments, scope| {
                let waits = added.clone();
                let execute = Arc::clone(&execute);
                Box::pin(async move {
                    let context = ToolContext::new(scope.clone())?;
                    let running = execute(decode::<T>(&arguments)?, context);
                    let mut reply = running.await?.into_reply()?;
                    if let Some(waits) = waits {
                        reply.waits.extend(waits(&arguments, &scope)?);
                    }
                    Ok(reply)
                })
            }),
            waits,
        };
        let mut definition = self.about.into_definition(schema, body);
        if let Some(exits) = self.exits {
            Arc::make_mut(&mut definition).exits = Some(exits);
        }
        Tool { definition, types: PhantomData }
    }
}

impl<O, S, V, A> fmt::Debug for ToolBuilder<O, S, V, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolBuilder")
            .field("id", &self.about.id)
            .field("flags", &self.about.flags)
            .finish_non_exhaustive()
    }
}

/// Decodes the arguments of a call.
pub(super) fn decode<T: DeserializeOwned + JsonSchema + 'static>(arguments: &Value) -> Result<T> {
    read(Schema::of_arguments::<T>().inner(arguments))
}

pub(super) fn read<T: DeserializeOwned>(value: &Value) -> Result<T> {
    T::deserialize(value)
        .map_err(|error| Error::new(format!("the arguments are no `{}`: {error}", std::any::type_name::<T>())))
}

fn describes_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
        || ["oneOf", "anyOf", "$ref"].iter().any(|key| schema.get(*key).is_some())
}
