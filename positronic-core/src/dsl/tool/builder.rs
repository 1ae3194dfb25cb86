//! The settings of a tool, one by one.

use std::marker::PhantomData;
use std::sync::Arc;

use derive_where::derive_where;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::definition::{DecodesFn, ExitsFn, Scope, ToolBody, ToolDefinition, ToolFn, UntypedReply, WaitsFn, decode};
use crate::dsl::approval::{reading, verdict};
use crate::dsl::brain::{Brain, IntoBrain, Runnable};
use crate::dsl::brain_tool::BrainTool;
use crate::dsl::context::{CallData, ToolContext};
use crate::dsl::services::{Services, Within};
use crate::dsl::tool_reply::IntoReply;
use crate::dsl::tool_settings::{About, about_methods, tool_id};
use crate::dsl::trait_bounds::{Agrees, Args, IntoVerdict, Options, Standalone, State, ToolArgs, Unset};
use crate::dsl::usage_panic::usage_panic;
use crate::dsl::wait::Wait;
use crate::error::{Error, Result};
use crate::tools::Schema;

use super::Tool;

/// Builds a tool. `A` is the type of its arguments, once a closure sets it.
#[must_use = "a tool is made by `execute` or `brain`"]
#[derive_where(Debug)]
pub struct ToolBuilder<O = (), S = (), V = (), A = Unset> {
    pub(in crate::dsl) about: About,
    #[derive_where(skip)]
    waits: Option<WaitsFn>,
    #[derive_where(skip)]
    exits: Option<ExitsFn>,
    types: PhantomData<fn(O, S, V, A)>,
}

impl<O: Options, S: State, V: Services> ToolBuilder<O, S, V> {
    #[track_caller]
    pub(in crate::dsl) fn new(name: &str) -> Self {
        Self { about: About::new(tool_id(name)), waits: None, exits: None, types: PhantomData }
    }

    /// Makes a tool that runs a brain. By default the model fills in the brain's options and reads its result, and the brain's
    /// title and description are the tool's. [`timeout`](Self::timeout) limits the condition of an
    /// approval alone, and [`retries`](Self::retries) has no effect.
    ///
    /// ```
    /// # use positronic_core::prelude::*;
    /// # #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    /// # struct Topic { topic: String }
    /// # let research = brain("Research").options::<Topic>().step("Read", async |cx| Ok(cx.options.topic.clone()));
    /// # let _ = brain("Desk").state(Vec::<String>::new()).r#loop("Chat", move |cx| cx.system("Help.").tool("research", |t| {
    /// t.description("Reads about a topic").brain(research.clone()).map_output(|notes, text| notes.push(text))
    /// # }));
    /// ```
    pub fn brain<B: IntoBrain<Services: Within<V>>>(self, brain: B) -> BrainTool<O, S, V, B::Options, B::Result> {
        BrainTool::new(self.about, brain.into_brain().into_definition())
    }
}

about_methods!(ToolBuilder<O, S, V, A>);

impl<O: Options, S: State, V: Services, A> ToolBuilder<O, S, V, A> {
    /// Makes a tool that starts a run of a brain in the background, as a child of this one: the call returns its id at once, and the
    /// loop goes on. The end of the run is a message to the loop. A loop that answers before that waits for it; an exit tool
    /// ends the loop nevertheless. When this run ends, the other is cancelled.
    ///
    /// The model fills in the brain's options. See [`ToolContext::start`](crate::dsl::ToolContext::start).
    ///
    /// ```
    /// use positronic_core::prelude::*;
    ///
    /// #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    /// struct Topic { topic: String }
    ///
    /// let research = brain("Research").options::<Topic>().step("Read", async |cx| Ok(cx.options.topic.clone()));
    /// let desk = brain("Desk").r#loop("Chat", move |cx| {
    ///     cx.system("Start research, and talk meanwhile.")
    ///         .tool("research", |t| t.description("Begins to read about a topic").background(&research))
    /// });
    /// # let _ = desk;
    /// ```
    pub fn background<B: Runnable>(mut self, brain: B) -> Tool<O, S, V>
    where
        A: Agrees<B::Options>,
    {
        let brain = Brain::<B::Options, B::Result>::of(brain.definition());
        if self.about.description.is_empty() {
            self.about.description.clone_from(&brain.definition().description);
        }
        let name = self.about.id.to_string();
        self.execute(move |options: B::Options, cx: ToolContext<O, S, V>| {
            let started = cx.start(&name, &brain, options).background();
            async move { Ok(serde_json::json!({ "started": started.await?.run() })) }
        })
    }
}

impl<O: Options, S: State, V: Services, A> ToolBuilder<O, S, V, A> {
    /// Sets the timeout of one try, and of the condition of an approval; 60 seconds by default.
    pub const fn timeout(mut self, timeout: std::time::Duration) -> Self {
        self.about.timeout = timeout;
        self
    }

    /// Skips a call if a call before it in its batch has failed.
    pub(in crate::dsl) const fn after_success(mut self) -> Self {
        self.about.flags.after_success = true;
        self
    }

    /// Sets how often a call of a `read_only` or `idempotent` tool is retried after a transient failure or
    /// after the process ended during it; 3 times by default. After more process ends, the call is
    /// `interrupted`.
    pub const fn retries(mut self, retries: u32) -> Self {
        self.about.retries = retries;
        self
    }

    /// Requires an approval for calls for which the closure returns `Some(reason)`. The closure may return a future.
    ///
    /// It is called once, after the model's answer; its verdict is recorded. If it panics, or its future takes longer than the tool's
    /// [`timeout`](Self::timeout), the call fails.
    ///
    /// If a person approves a call with edited arguments, the closure is called with those before the tool runs. A new reason
    /// counts as approved by the person who wrote them; if the closure fails, the tool does not run, and the call's result
    /// is the error. An edit that changes whether the call ends its loop is rejected in the same way.
    ///
    /// A future must own its data, so extract it from the arguments first:
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
        F: Fn(&T, &ToolContext<O, S, V>) -> R + Standalone,
        R: IntoVerdict<When>,
    {
        self.about
            .approval
            .only_if(reading(verdict(approval), |arguments: &Arc<Value>, _| arguments_as::<T>(arguments)));
        self.typed()
    }

    /// Waits after the tool has run, until the first of these arrives; its payload becomes part of the result, with the name of
    /// its webhook if there are several waits. [`Wait::resume`] applies the payload to the state.
    ///
    /// The closure runs after the tool, and again when an answer arrives, to find the handler of
    /// [`Wait::resume`].
    pub fn wait<T, P, F, const N: usize>(self, waits: F) -> ToolBuilder<O, S, V, Args<T>>
    where
        A: Agrees<T>,
        T: ToolArgs,
        F: Fn(&T, &ToolContext<O, S, V>) -> [Wait<S, P>; N] + Standalone,
    {
        self.wait_any(waits)
    }

    /// Like [`ToolBuilder::wait`], for a list of any length: a `Vec`, or an `Option` if not every call waits. The
    /// closures of [`Wait::resume`] must state the state's type here: `|ticket: &mut Ticket, message| …`.
    pub fn wait_any<T, P, F, I>(mut self, waits: F) -> ToolBuilder<O, S, V, Args<T>>
    where
        A: Agrees<T>,
        T: ToolArgs,
        F: Fn(&T, &ToolContext<O, S, V>) -> I + Standalone,
        I: IntoIterator<Item = Wait<S, P>>,
    {
        self.waits = Some(Arc::new(move |arguments, scope| {
            let arguments = arguments_as::<T>(arguments)?;
            let waits = waits(&arguments, &ToolContext::new(scope.clone())?);
            waits.into_iter().map(|wait| wait.into_terms().into_definition(scope.max_bytes())).collect()
        }));
        self.typed()
    }

    /// Ends the loop when a call succeeds for which the closure returns `true`; other calls do not. As with
    /// [`ToolBuilder::exit`], a text answer does not end the loop.
    ///
    /// The closure is called once, after the model's answer, with the arguments that the model proposed: its
    /// result stands when a person edits them. If it panics, the call fails.
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
        F: Fn(&T) -> bool + Standalone,
    {
        self.about.flags.exit = true;
        self.exits = Some(Arc::new(move |arguments| Ok(exits(&arguments_as::<T>(arguments)?))));
        self.typed()
    }

    fn typed<T>(self) -> ToolBuilder<O, S, V, Args<T>> {
        let Self { about, waits, exits, types: PhantomData } = self;
        ToolBuilder { about, waits, exits, types: PhantomData }
    }

    /// Makes the tool with its function.
    ///
    /// The function gets the validated arguments and the context. Unknown arguments are rejected, as by `#[tool]`;
    /// a map with `#[serde(flatten)]` accepts them. It returns any value that can be encoded as JSON, or
    /// `cx.result(…)` to also wait; [`cx.update(…)`](ToolContext::update) changes the state.
    ///
    /// Providers require arguments to be a JSON object. If `T` is not a struct, the model is asked for an object with the
    /// field `value`, and the function gets its value.
    pub fn execute<T, F, Fut, R>(self, execute: F) -> Tool<O, S, V>
    where
        A: Agrees<T>,
        T: ToolArgs,
        F: Fn(T, ToolContext<O, S, V>) -> Fut + Standalone, // captures? move |args, cx| { let x = x.clone(); async move { … } }
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: IntoReply<S>,
    {
        self.made(Schema::of_arguments::<T>(), execute)
    }

    /// Makes the tool with a schema and a function that gets the arguments as JSON, validated against the schema.
    ///
    /// The schema is compiled for each created tool, so create a tool once
    /// and give it to the loop with [`Loop::tools`](crate::dsl::Loop::tools). Closures of the same tool, such as that of
    /// [`ToolBuilder::approval`], also take a [`Value`].
    ///
    /// # Panics
    ///
    /// If the schema does not describe an object, as providers require.
    #[track_caller]
    pub fn execute_json<F, Fut, R>(self, schema: Value, execute: F) -> Tool<O, S, V>
    where
        A: Agrees<Value>,
        F: Fn(Value, ToolContext<O, S, V>) -> Fut + Standalone,
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: IntoReply<S>,
    {
        let mut schema = schema;
        schema.sort_all_objects();
        self.check_object(&schema);
        self.made(Arc::new(Schema::new(schema)), execute)
    }

    /// Creates a tool that another program executes, such as a server. It works as [`ToolBuilder::execute_json`] does, but its schema
    /// is compiled once, so that a plugin can create the tool in every iteration.
    ///
    /// That program may change its schema while a call waits, for instance for an approval: the call keeps its validated
    /// arguments, and the program decides whether they are still valid. A run with an open call of
    /// any other tool whose schema has changed is not resumed (`ResumeError::Changed`).
    ///
    /// # Panics
    ///
    /// If the schema does not describe an object, as providers require.
    #[track_caller]
    pub fn execute_foreign<F, Fut, R>(self, schema: Arc<Schema>, execute: F) -> Tool<O, S, V>
    where
        A: Agrees<Value>,
        F: Fn(Value, ToolContext<O, S, V>) -> Fut + Standalone,
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: IntoReply<S>,
    {
        self.check_object(schema.json());
        let mut tool = self.made(schema, execute);
        Arc::make_mut(&mut tool.definition).foreign = true;
        tool
    }

    #[track_caller]
    fn check_object(&self, schema: &Value) {
        if !describes_object(schema) {
            usage_panic(&format!(
                "the schema of the tool `{}` does not describe an object: give it `\"type\": \"object\"`",
                self.about.id
            ));
        }
    }

    pub(in crate::dsl) fn made<T, F, Fut, R>(self, schema: Arc<Schema>, execute: F) -> Tool<O, S, V>
    where
        T: ToolArgs,
        F: Fn(T, ToolContext<O, S, V>) -> Fut + Standalone,
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: IntoReply<S>,
    {
        let execute = Arc::new(execute);
        let waits = self.waits.clone();
        let function: ToolFn = Arc::new(move |arguments, scope| {
            let (execute, waits) = (Arc::clone(&execute), waits.clone());
            Box::pin(async move {
                let (typed, context) = opened::<T, O, S, V>(&arguments, &scope)?;
                let call = Arc::clone(context.call());
                replied(execute(typed, context).await, &call, waits, &arguments, &scope)
            })
        });
        let Self { about, waits, exits, .. } = self;
        Tool { definition: defined(about, schema, function, waits, decodes::<T>(), exits), types: PhantomData }
    }
}

// What does not depend on the types of a tool's function is compiled once, and not for each tool.

fn opened<T: ToolArgs, O: Options, S: State, V: Services>(
    arguments: &Value,
    scope: &Scope,
) -> Result<(T, ToolContext<O, S, V>)> {
    let context = ToolContext::new(scope.clone())?;
    Ok((arguments_as(arguments)?, context))
}

fn replied<R: IntoReply<S>, S>(
    returned: Result<R>,
    call: &CallData,
    waits: Option<WaitsFn>,
    arguments: &Arc<Value>,
    scope: &Scope,
) -> Result<UntypedReply> {
    let mut reply = returned?.into_reply(scope.max_bytes())?;
    call.complete(&mut reply);
    if let Some(waits) = waits {
        reply.waits.extend(waits(arguments, scope)?);
    }
    Ok(reply)
}

fn defined(
    about: About,
    schema: Arc<Schema>,
    execute: ToolFn,
    waits: Option<WaitsFn>,
    decodes: DecodesFn,
    exits: Option<ExitsFn>,
) -> Arc<ToolDefinition> {
    let mut definition = about.into_definition(schema, ToolBody::Function { execute, waits }, decodes);
    if exits.is_some() {
        Arc::make_mut(&mut definition).exits = exits;
    }
    definition
}

/// Decodes the arguments of a call.
pub(in crate::dsl) fn arguments_as<T: DeserializeOwned + JsonSchema + 'static>(arguments: &Value) -> Result<T> {
    decode("the arguments", Schema::of_arguments::<T>().inner(arguments))
}

/// Decodes arguments for a check. The message is for the model, so it does not name the type.
pub(in crate::dsl) fn decodes<T: ToolArgs>() -> DecodesFn {
    Arc::new(|arguments| {
        let decoded = T::deserialize(Schema::of_arguments::<T>().inner(arguments));
        decoded.map(drop).map_err(|error| Error::new(error.to_string()))
    })
}

fn describes_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
        || ["oneOf", "anyOf", "$ref"].iter().any(|key| schema.get(*key).is_some())
}
