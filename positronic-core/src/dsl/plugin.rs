//! Plugins: what adds tools, context and a state of its own to a loop.
//!
//! A plugin is registered with [`Loop::plugin`](super::Loop::plugin) and takes part in every iteration. Some come with the library,
//! in [`plugins`](crate::plugins).
//!
//! | hook | when | what an error does |
//! |---|---|---|
//! | [`prepare`](Plugin::prepare) | before an iteration, after the loop's own configuration | the loop fails |
//! | [`request`](Plugin::request) | after every plugin's `prepare`, with the whole request | the loop fails: a veto |
//! | [`response`](Plugin::response) | when the model has answered | `LOOP_PLUGIN_FAILED`; the answer stands, the loop goes on |
//! | [`call`](Plugin::call) | around each try of a tool that is a function | the call's result is an `error` |
//!
//! Hooks run one after the other in the order of registration; around a call, the plugin that was registered first is the
//! outermost. A plugin sees what those before it have added and kept in the same iteration.
//!
//! What a plugin keeps is recorded: `LOOP_ITERATION` carries what `prepare` and `request` changed, `LOOP_PLUGIN_CHANGED`
//! what an answer or a call changed. A brain's plugins keep their states from one of its loops to the next. After a
//! restart `prepare` and `request` run once more, on the states that the open iteration was prepared with, to find the tools of
//! open calls; a plugin whose hook fails then adds nothing, and its open calls get an `error` result.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::around::{CallAround, CallReply};
use super::bounds::{IntoTool, Options, Provides, Services, State};
use super::context::{services, shared_methods, stage_path};
use super::kept::{PluginState, owner, read};
use super::question::ModelCall;
use super::tool::{Tool, ToolBuilder};
use crate::definition::{
    AnyPlugin, Compaction, Invocation, LoopDefinition, Next, Scope, ToolDefinition, ToolReply, encode_state,
};
use crate::error::{Error, Result};
use crate::record::{
    ContextItem, Message, ModelResponse, Path, PluginDocument, Prompt, RunId, Settings, ToolDecl, ToolId,
};

/// A plugin for the loops of brains with options `O`, state `S` and services `V`.
///
/// A plugin that depends on nothing of its brain is written for all of them; one that needs a service asks for
/// [`Provides`], and a brain without that service does not compile.
///
/// ```
/// use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Services, State};
/// use positronic_core::prelude::*;
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Default, Serialize, Deserialize, JsonSchema)]
/// struct Notes { lines: Vec<String> }
///
/// impl PluginState for Notes {
///     const NAME: &'static str = "notes";
/// }
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Note { line: String }
///
/// struct Notebook;
///
/// impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Notebook {
///     type State = Notes;
///
///     fn initial(&self) -> Notes {
///         Notes::default()
///     }
///
///     async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Notes>) -> Result<()> {
///         cx.context("notes", cx.state.lines.join("\n"));
///         cx.tool("note", |t| {
///             t.description("Writes a line down").execute(async |Note { line }, cx| {
///                 Ok(cx.result("noted").update(move |notes| notes.lines.push(line)))
///             })
///         })
///     }
/// }
///
/// let brain = brain("Secretary").r#loop("Listen", |cx| cx.system("Take notes.").plugin(Notebook));
/// # let _ = brain;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no plugin for a loop with options `{O}`, state `{S}` and services `{V}`",
    label = "it does not fit the loop's brain"
)]
pub trait Plugin<O: Options, S: State, V: Services>: Send + Sync + 'static {
    /// What it keeps; also names it.
    type State: PluginState;

    /// Makes what it keeps at first.
    fn initial(&self) -> Self::State;

    /// Adds tools, context and changes of its own state to an iteration. It may read, search and ask, and so wait.
    ///
    /// # Errors
    ///
    /// An [`Error`] fails the loop.
    fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Self::State>) -> impl Future<Output = Result<()>> + Send {
        _ = cx;
        std::future::ready(Ok(()))
    }

    /// Looks at the whole request of an iteration, edits it, or refuses it.
    ///
    /// # Errors
    ///
    /// An [`Error`] is a veto: the model is not asked, and the loop fails with its sentence.
    fn request(&self, cx: &mut RequestEdit<'_, O, S, V, Self::State>) -> impl Future<Output = Result<()>> + Send {
        _ = cx;
        std::future::ready(Ok(()))
    }

    /// Looks at an answer; what it changes of its own state is recorded with the answer.
    ///
    /// # Errors
    ///
    /// An [`Error`] is recorded; the answer was paid for and stands.
    fn response(
        &self,
        cx: &mut PluginContext<O, S, V, Self::State>,
        response: &ModelResponse,
    ) -> impl Future<Output = Result<()>> + Send {
        _ = (cx, response);
        std::future::ready(Ok(()))
    }

    /// Runs a try of a call with `around.run()`, or answers in its place. It is not asked about brains as tools.
    ///
    /// # Errors
    ///
    /// An [`Error`] is the call's result. It may be transient, as a tool's.
    fn call(
        &self,
        cx: &PluginContext<O, S, V, Self::State>,
        around: CallAround<'_, Self::State>,
    ) -> impl Future<Output = Result<CallReply<Self::State>>> + Send {
        _ = cx;
        around.run()
    }
}

/// What a plugin's hook is handed.
pub struct PluginContext<O, S, V, P> {
    /// What the plugin keeps.
    pub state: P,
    /// The state of the brain.
    pub brain: Arc<S>,
    /// The options of the run.
    pub options: Arc<O>,
    /// The services.
    pub services: Arc<V>,
    scope: Scope,
}

shared_methods!(PluginContext<O, S, V, P>);

impl<O: Options, S: State, V: Services, P: PluginState> PluginContext<O, S, V, P> {
    fn new(scope: Scope, initial: impl FnOnce() -> P) -> Result<Self> {
        let kept = scope.plugins.get(P::NAME);
        Ok(Self {
            state: kept.map(read::<P>).transpose()?.unwrap_or_else(initial),
            brain: scope.state.shared()?,
            options: scope.options.shared()?,
            services: services(&scope)?,
            scope,
        })
    }

    /// Returns a service out of those of the brain.
    #[must_use]
    pub fn service<T>(&self) -> &T
    where
        V: Provides<T>,
    {
        V::provided(&self.services)
    }

    /// Returns the record of the loop so far; `None` before its first iteration.
    #[must_use]
    pub fn history(&self) -> Option<Prompt> {
        self.scope.link.record(&stage_path(&self.scope.path))
    }

    fn kept(&self) -> Result<PluginDocument> {
        Ok(owner::<P>().keep(Arc::new(encode_state(&self.state)?)))
    }
}

/// An iteration that is being prepared.
pub struct Preparation<'a, O, S, V, P> {
    context: PluginContext<O, S, V, P>,
    definition: &'a mut LoopDefinition,
}

impl<O: Options, S: State, V: Services, P: PluginState> Preparation<'_, O, S, V, P> {
    /// Adds a named piece that the model reads behind the history, after what the loop and the plugins before have added.
    pub fn context(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.definition.context.push(ContextItem { name: name.into(), text: text.into() });
    }

    /// Adds a tool that lives in the plugin's own state: `cx.state` is that state, and `.update(…)` changes it.
    ///
    /// # Errors
    ///
    /// An [`Error`] when the iteration has a tool of this name.
    ///
    /// # Panics
    ///
    /// When the name is no tool name.
    #[track_caller]
    pub fn tool<T: IntoTool<O, P, V>>(
        &mut self,
        name: &str,
        build: impl FnOnce(ToolBuilder<O, P, V>) -> T,
    ) -> Result<()>
    where
        P: State,
    {
        let mut tool = ToolDefinition::clone(&build(ToolBuilder::new(name)).into_tool().definition);
        tool.owner = Some(owner::<P>());
        self.add(Arc::new(tool))
    }

    /// Adds tools of the brain: they see the brain's state, and change it.
    ///
    /// # Errors
    ///
    /// An [`Error`] when the iteration has a tool of one of these names.
    pub fn brain_tools<'t>(&mut self, tools: impl IntoIterator<Item = &'t Tool<O, S, V>>) -> Result<()> {
        tools.into_iter().try_for_each(|tool| self.add(Arc::clone(&tool.definition)))
    }

    fn add(&mut self, tool: Arc<ToolDefinition>) -> Result<()> {
        let id = tool.decl.id.clone();
        match self.definition.tools.insert(id.clone(), tool) {
            Some(_) => Err(Error::new(format!("the iteration has a tool named `{id}` already; rename one of them"))),
            None => Ok(()),
        }
    }

    /// Returns the tools of an iteration that has begun, and is found again after a restart, which are not there yet; none where a
    /// iteration is prepared.
    #[cfg(feature = "mcp")]
    pub(crate) fn lacks(&self) -> Option<Vec<ToolDecl>> {
        let begun = self.definition.begun.as_ref()?;
        let lacks = begun.tools().iter().filter(|tool| !self.definition.tools.contains_key(&tool.id));
        Some(lacks.cloned().collect())
    }

    /// Begins a question to a model. It is recorded in the log with its answer, but not a part of the conversation; after a
    /// restart, the recorded answer is taken.
    pub fn model(&self) -> ModelCall {
        ModelCall::new(Arc::clone(&self.context.scope.link), self.context.scope.path.clone())
    }

    /// Lets a summary stand for all but the latest `keep` of [`Preparation::messages`], from this iteration on. The record
    /// stays whole. A result is never parted from its call: more is kept where the cut would fall between them.
    pub fn compact(&mut self, keep: usize, summary: impl Into<String>) {
        let keep = u64::try_from(keep).unwrap_or(u64::MAX);
        self.definition.compaction = Some(Compaction { keep, summary: Some(summary.into()) });
    }

    /// Lets nothing stand for anything any more: from this iteration on, the messages are those of the whole record.
    pub fn uncompact(&mut self) {
        self.definition.compaction = Some(Compaction::default());
    }

    /// Returns the messages that the loop has sent up to now, and what it has gained since.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        self.context.scope.link.messages(&stage_path(&self.context.scope.path))
    }
}

/// The whole request of an iteration, before it is sent.
pub struct RequestEdit<'a, O, S, V, P> {
    context: PluginContext<O, S, V, P>,
    definition: &'a mut LoopDefinition,
}

impl<O, S, V, P> RequestEdit<'_, O, S, V, P> {
    /// Returns the system prompt.
    #[must_use]
    pub fn system(&self) -> &str {
        &self.definition.system
    }

    /// Replaces the system prompt.
    pub fn set_system(&mut self, system: impl Into<String>) {
        self.definition.system = system.into().into();
    }

    /// Gives access to the context items, in order.
    pub const fn context(&mut self) -> &mut Vec<ContextItem> {
        &mut self.definition.context
    }

    /// Gives access to how the model is to answer.
    pub const fn settings(&mut self) -> &mut Settings {
        &mut self.definition.settings
    }

    /// Walks the tools that the model will see, in order.
    pub fn tools(&self) -> impl Iterator<Item = &ToolDecl> {
        self.definition.tools.values().map(|tool| &tool.decl)
    }

    /// Takes tools out of the iteration.
    pub fn retain_tools(&mut self, mut keep: impl FnMut(&ToolDecl) -> bool) {
        self.definition.tools.retain(|_, tool| keep(&tool.decl));
    }

    /// Marks a tool as an exit tool. Answers `false` when the iteration has no such tool.
    pub fn exit_on(&mut self, tool: &str) -> bool {
        let found = ToolId::new(tool).ok().and_then(|id| self.definition.tools.get_mut(&id));
        found.map(|tool| Arc::make_mut(tool).decl.flags.exit = true).is_some()
    }

    /// Returns the messages. They are the record of what happened, so a plugin reads them only.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        self.context.scope.link.messages(&stage_path(&self.context.scope.path))
    }
}

macro_rules! deref_to_context {
    ($type:ident) => {
        impl<O, S, V, P> std::ops::Deref for $type<'_, O, S, V, P> {
            type Target = PluginContext<O, S, V, P>;

            fn deref(&self) -> &Self::Target {
                &self.context
            }
        }

        impl<O, S, V, P> std::ops::DerefMut for $type<'_, O, S, V, P> {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.context
            }
        }

        impl<O, S, V, P> fmt::Debug for $type<'_, O, S, V, P> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.context.fmt(f)
            }
        }
    };
}

deref_to_context!(Preparation);
deref_to_context!(RequestEdit);

/// Takes a plugin's types away.
pub(super) fn erased<O: Options, S: State, V: Services, P: Plugin<O, S, V>>(plugin: P) -> Arc<dyn AnyPlugin> {
    Arc::new(Erased { plugin, types: PhantomData })
}

struct Erased<P, O, S, V> {
    plugin: P,
    types: PhantomData<fn(O, S, V)>,
}

impl<O: Options, S: State, V: Services, P: Plugin<O, S, V>> Erased<P, O, S, V> {
    fn context(&self, scope: Scope) -> Result<PluginContext<O, S, V, P::State>> {
        PluginContext::new(scope, || self.plugin.initial())
    }
}

impl<O: Options, S: State, V: Services, P: Plugin<O, S, V>> AnyPlugin for Erased<P, O, S, V> {
    fn prepare<'a>(
        &'a self,
        scope: Scope,
        definition: &'a mut LoopDefinition,
    ) -> BoxFuture<'a, Result<PluginDocument>> {
        Box::pin(async move {
            let mut preparation = Preparation { context: self.context(scope)?, definition };
            self.plugin.prepare(&mut preparation).await?;
            preparation.kept()
        })
    }

    fn request<'a>(
        &'a self,
        scope: Scope,
        definition: &'a mut LoopDefinition,
    ) -> BoxFuture<'a, Result<PluginDocument>> {
        Box::pin(async move {
            let mut edit = RequestEdit { context: self.context(scope)?, definition };
            self.plugin.request(&mut edit).await?;
            edit.kept()
        })
    }

    fn response<'a>(&'a self, scope: Scope, response: &'a ModelResponse) -> BoxFuture<'a, Result<PluginDocument>> {
        Box::pin(async move {
            let mut context = self.context(scope)?;
            self.plugin.response(&mut context, response).await?;
            context.kept()
        })
    }

    fn call<'a>(&'a self, scope: Scope, call: &'a Invocation, next: Next<'a>) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(async move {
            let context = self.context(scope)?;
            let around = CallAround::new(call, next);
            Ok(self.plugin.call(&context, around).await?.into_reply())
        })
    }
}
