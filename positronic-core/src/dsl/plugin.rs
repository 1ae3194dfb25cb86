//! Plugins: extensions of a loop with tools, context and a state of their own.
//!
//! A plugin is registered with [`Loop::plugin`](super::Loop::plugin) and takes part in every iteration. The crate
//! `positronic-plugins` has ready-made ones.
//!
//! | hook | when | effect of an error |
//! |---|---|---|
//! | [`prepare`](Plugin::prepare) | before an iteration, after the loop's own configuration | the loop fails |
//! | [`request`](Plugin::request) | after every plugin's `prepare`, with the complete request | the loop fails |
//! | [`response`](Plugin::response) | after the model's answer, before it is recorded | `LOOP_PLUGIN_FAILED`; the answer stands, the loop continues. Of a plugin that [guards](Plugin::GUARDS): the loop stops |
//! | [`call`](Plugin::call) | around each try of a function tool | the call's result is an `error` |
//!
//! [`Runner::hook_timeout`](crate::runner::Runner::hook_timeout) limits the time of `prepare`, `request` and `response`, and the tool's that of `call`; around a
//! call that runs apart from the worker, `call` has it beside the call's own time.
//!
//! Hooks run in the order of registration; around a call, the first plugin is the outermost. A plugin sees the additions and
//! state changes of earlier ones in the same iteration.
//!
//! A plugin's state is recorded: `LOOP_ITERATION` contains the changes of `prepare` and `request`, `LOOP_PLUGIN_CHANGED`
//! those of an answer or a call. The states persist across the loops of a brain. All plugins of a loop have their initial states
//! before the first hook runs, so each can read the others' whatever the order. After a restart `prepare` and `request`
//! run again, on the states from which the open iteration was prepared, to rebuild the tools of open calls; a plugin
//! whose hook fails then adds nothing, and its open calls get an `error` result.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::around::{CallAround, CallReply};
use super::ask_model::ModelCall;
use super::context::{options, read_only, shared_methods, stage_path};
use super::loop_plugin::LoopPlugin;
use super::plugin_state::{PluginState, document, owner, read};
use super::read_only::{ChangedByToolsAndOnExit, DeclaredWithOptions, ReadOnly};
use super::services::{Provides, Services, services};
use super::tool::{IntoTool, Tool, ToolBuilder};
use super::trait_bounds::{Options, State};
use super::usage_panic::usage_panic;
use crate::definition::{CompactionChange, Inspected, LoopDefinition, PluginName, Scope, ToolDefinition, Verdict};
use crate::error::{Error, Result};
use crate::record::{
    Citation, ContextItem, Message, ModelResponse, Path, PluginDocument, Prompt, RunId, Settings, ToolDecl, ToolId,
};

/// A plugin for the loops of brains with options `O`, state `S` and services `V`.
///
/// A plugin that does not depend on its brain is generic; one that needs a service requires
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
///                 cx.update(|notes| notes.lines.push(line));
///                 Ok("noted")
///             })
///         })
///     }
/// }
///
/// let brain = brain("Secretary").r#loop("Listen", |cx| cx.system("Take notes.").plugin(Notebook));
/// # let _ = brain;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a plugin for a loop with options `{O}`, state `{S}` and services `{V}`",
    label = "it does not fit the loop's brain"
)]
pub trait Plugin<O: Options, S: State, V: Services>: Send + Sync + 'static {
    /// The plugin's state, which also names the plugin; `()` for one without.
    type State: PluginState;

    /// The name of a plugin without state. One with a state has its [name](PluginState::NAME).
    const NAME: &'static str = <Self::State as PluginState>::NAME;

    /// Whether [`response`](Self::response) may refuse, replace or stop an answer. The answers of its loops are
    /// not streamed.
    const GUARDS: bool = false;

    /// Returns the initial state.
    fn initial(&self) -> Self::State;

    /// Lists the tools that the plugin can offer in any iteration, so that a loop's `exit_on` knows them before it offers them. `own` gives
    /// the name in the loop of a tool of the plugin's own; tools of the brain keep theirs. A name that ends in `*` stands for all that
    /// begin so when the brain is built; for an iteration, [`Preparation::later_tools`] says what may still come.
    fn tool_names(&self, own: &dyn Fn(&str) -> String) -> Vec<String> {
        _ = own;
        Vec::new()
    }

    /// Adds tools, context and state changes to an iteration. It may wait for I/O.
    ///
    /// # Errors
    ///
    /// An [`Error`] fails the loop.
    fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Self::State>) -> impl Future<Output = Result<()>> + Send {
        _ = cx;
        std::future::ready(Ok(()))
    }

    /// Inspects the complete request of an iteration, edits it, or rejects it.
    ///
    /// # Errors
    ///
    /// An [`Error`] is a veto: the model is not asked, and the loop fails with its message.
    fn request(&self, cx: &mut RequestEdit<'_, O, S, V, Self::State>) -> impl Future<Output = Result<()>> + Send {
        _ = cx;
        std::future::ready(Ok(()))
    }

    /// Inspects an answer, and may add sources to it ([`ResponseInspection::cite`]); state changes are recorded with the answer. A
    /// plugin that [guards](Self::GUARDS) may refuse or replace it.
    ///
    /// # Errors
    ///
    /// An [`Error`] is recorded; the answer stands. That of a plugin that guards stops the loop.
    fn response(
        &self,
        cx: &mut ResponseInspection<'_, O, S, V, Self::State>,
        response: &ModelResponse,
    ) -> impl Future<Output = Result<()>> + Send {
        _ = (cx, response);
        std::future::ready(Ok(()))
    }

    /// Runs a try of a call with `around.run()`, or replies instead. Not called for brains as tools.
    ///
    /// # Errors
    ///
    /// An [`Error`] is the call's result. It may be transient, like a tool's.
    fn call(
        &self,
        cx: &PluginContext<O, S, V, Self::State>,
        around: CallAround<'_, Self::State>,
    ) -> impl Future<Output = Result<CallReply<Self::State>>> + Send {
        _ = cx;
        around.run()
    }

    /// Erases the plugin's types.
    #[doc(hidden)]
    fn erased(self) -> LoopPlugin<O, S, V>
    where
        Self: Sized,
    {
        LoopPlugin::of(self)
    }
}

/// The context of a plugin's hook.
pub struct PluginContext<O, S, V, P> {
    /// The plugin's state.
    pub state: P,
    /// The state of the brain, [read-only](ReadOnly).
    pub brain: ReadOnly<S, ChangedByToolsAndOnExit>,
    /// The options of the run.
    pub options: ReadOnly<O, DeclaredWithOptions>,
    /// The services.
    pub services: Arc<V>,
    scope: Scope,
    name: PluginName,
    /// The length of the instance's name with its dot, which the plugin's name begins with.
    prefix: usize,
}

shared_methods!(PluginContext<O, S, V, P>);

impl<O: Options, S: State, V: Services, P: PluginState> PluginContext<O, S, V, P> {
    pub(super) fn new(scope: Scope, name: PluginName, prefix: usize, initial: impl FnOnce() -> P) -> Result<Self> {
        let kept = scope.plugins.get(&name);
        Ok(Self {
            state: kept.map(read::<P>).transpose()?.unwrap_or_else(initial),
            brain: read_only(&scope)?,
            options: options(&scope)?,
            services: services(&scope.services)?,
            scope,
            name,
            prefix,
        })
    }

    /// Returns the name of this [instance](LoopPlugin::named) of the plugin, if it has one.
    #[must_use]
    pub fn instance(&self) -> Option<&str> {
        self.name.get(..self.prefix)?.strip_suffix('.')
    }

    /// Returns the name that a tool of this plugin has in the loop: with the name of the [instance](LoopPlugin::named) before it.
    #[must_use]
    pub fn tool_name(&self, name: &str) -> String {
        [self.name.get(..self.prefix).unwrap_or_default(), name].concat()
    }

    /// Returns a service of the brain.
    #[must_use]
    pub fn service<T>(&self) -> &T
    where
        V: Provides<T>,
    {
        V::provided(&self.services)
    }

    /// Returns the record of the loop; `None` before its first iteration.
    #[must_use]
    pub fn history(&self) -> Option<Prompt> {
        self.scope.link.record(&stage_path(&self.scope.path))
    }

    pub(super) fn kept(&self) -> Result<Option<PluginDocument>> {
        document(&self.state, self.scope.max_bytes())
    }
}

/// An iteration during its preparation.
pub struct Preparation<'a, O, S, V, P> {
    pub(super) context: PluginContext<O, S, V, P>,
    pub(super) definition: &'a mut LoopDefinition,
}

impl<O: Options, S: State, V: Services, P: PluginState> Preparation<'_, O, S, V, P> {
    /// Adds a named text that follows the history, after the additions of the loop and earlier plugins. In a named
    /// [instance](LoopPlugin::named), its name begins with that of the instance.
    pub fn context(&mut self, name: impl Into<String>, text: impl Into<String>) {
        let name = match self.context.prefix {
            0 => name.into(),
            _ => self.context.tool_name(&name.into()),
        };
        self.definition.context.push(ContextItem { name, text: text.into() });
    }

    /// Adds a tool on the plugin's own state: `cx.state` is that state, and `.update(…)` changes it. In a named
    /// [instance](LoopPlugin::named), its name begins with that of the instance: `work.note`.
    ///
    /// # Errors
    ///
    /// An [`Error`] when the iteration already has a tool with this name.
    ///
    /// # Panics
    ///
    /// If the name is invalid.
    #[track_caller]
    pub fn tool<T: IntoTool<O, P, V>>(
        &mut self,
        name: &str,
        build: impl FnOnce(ToolBuilder<O, P, V>) -> T,
    ) -> Result<()>
    where
        P: State,
    {
        let name = if self.context.prefix == 0 { Cow::Borrowed(name) } else { self.context.tool_name(name).into() };
        let mut tool = ToolDefinition::clone(&build(ToolBuilder::new(&name)).into_tool().definition);
        tool.owner = Some(owner::<P>(self.context.name.clone()));
        self.add(Arc::new(tool))
    }

    /// Adds tools of the brain, which see and change the brain's state.
    ///
    /// # Errors
    ///
    /// An [`Error`] when the iteration already has a tool with one of these names.
    pub fn brain_tools<'t>(&mut self, tools: impl IntoIterator<Item = &'t Tool<O, S, V>>) -> Result<()> {
        tools.into_iter().try_for_each(|tool| self.add(Arc::clone(&tool.definition)))
    }

    /// Names tools that the plugin does not offer in this iteration and may offer in a later one, and that
    /// [`tool_names`](Plugin::tool_names) does not list one by one, so that [`exit_on`](super::Loop::exit_on) knows them. A name that ends in
    /// `*` stands for all names that begin so.
    pub fn later_tools<N: Into<String>>(&mut self, names: impl IntoIterator<Item = N>) {
        self.definition.later.extend(names.into_iter().map(Into::into));
    }

    fn add(&mut self, tool: Arc<ToolDefinition>) -> Result<()> {
        let id = tool.decl.id.clone();
        match self.definition.tools.insert(id.clone(), tool) {
            Some(_) => Err(Error::new(format!("the iteration has a tool named `{id}` already; rename one of them"))),
            None => Ok(()),
        }
    }

    /// Returns the tools that an iteration had when it began and that nothing has added yet, if it is resumed after a restart;
    /// `None` for a new iteration. A plugin whose tools change adds these, so that open calls find theirs.
    pub fn missing_tools(&self) -> Option<Vec<ToolDecl>> {
        let begun = self.definition.begun.as_ref()?;
        let missing = begun.tools().iter().filter(|tool| !self.definition.tools.contains_key(&tool.id));
        Some(missing.cloned().collect())
    }

    /// Creates a question to a model. It is recorded with its answer, but is not part of the conversation; after a
    /// restart, the recorded answer is used.
    pub fn model(&self) -> ModelCall {
        ModelCall::new(Arc::clone(&self.context.scope.link), self.context.scope.path.clone())
    }

    /// Replaces all but the latest `keep` of [`Preparation::messages`] by a summary, from this iteration on. The record
    /// stays complete. A result is never separated from its call: more messages stay if necessary.
    pub fn compact(&mut self, keep: usize, summary: impl Into<String>) {
        let keep = u64::try_from(keep).unwrap_or(u64::MAX);
        self.definition.compaction = Some(CompactionChange { keep, summary: Some(summary.into()) });
    }

    /// Restores all messages from this iteration on.
    pub fn uncompact(&mut self) {
        self.definition.compaction = Some(CompactionChange::default());
    }

    /// Returns the messages of the loop's last request, and later ones of its record.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        self.context.scope.link.messages(&stage_path(&self.context.scope.path))
    }
}

/// The complete request of an iteration, before it is sent.
pub struct RequestEdit<'a, O, S, V, P> {
    pub(super) context: PluginContext<O, S, V, P>,
    pub(super) definition: &'a mut LoopDefinition,
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

    /// Returns the context items, in order.
    pub const fn context(&mut self) -> &mut Vec<ContextItem> {
        &mut self.definition.context
    }

    /// Returns the model settings.
    pub const fn settings(&mut self) -> &mut Settings {
        &mut self.definition.settings
    }

    /// Lists the tools for the model, in order.
    pub fn tools(&self) -> impl Iterator<Item = &ToolDecl> {
        self.definition.tools.values().map(|tool| &tool.decl)
    }

    /// Removes tools from the iteration.
    pub fn retain_tools(&mut self, mut keep: impl FnMut(&ToolDecl) -> bool) {
        self.definition.tools.retain(|_, tool| keep(&tool.decl));
    }

    /// Marks a tool as an exit tool. Returns `false` if the iteration has no such tool.
    pub fn exit_on(&mut self, tool: &str) -> bool {
        let found = ToolId::new(tool).ok().and_then(|id| self.definition.tools.get_mut(&id));
        found.map(|tool| Arc::make_mut(tool).decl.flags.exit = true).is_some()
    }

    /// Returns the messages. They are history, so a plugin cannot change them.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        self.context.scope.link.messages(&stage_path(&self.context.scope.path))
    }
}

/// An answer, before it is recorded.
pub struct ResponseInspection<'a, O, S, V, P> {
    pub(super) context: PluginContext<O, S, V, P>,
    pub(super) inspected: &'a mut Inspected,
    pub(super) guards: bool,
}

impl<O, S, V, P> ResponseInspection<'_, O, S, V, P> {
    /// Creates a question to a model about the answer, as a [guard](super::GuardContext::model) does.
    pub fn model(&self) -> ModelCall {
        ModelCall::new(Arc::clone(&self.context.scope.link), self.context.scope.path.about_answer())
    }

    /// Adds a source to the answer, which people see after its text. The model does not get it.
    pub fn cite(&mut self, citation: Citation) {
        self.inspected.citations.push(citation);
    }

    /// Decides about the answer, as a [guard](super::Loop::guard_answer) does.
    ///
    /// # Panics
    ///
    /// If the plugin does not declare [`GUARDS`](Plugin::GUARDS): people may have seen the answer.
    pub fn decide(&mut self, verdict: Verdict) {
        if !self.guards {
            usage_panic("a plugin that decides about answers declares `const GUARDS: bool = true`");
        }
        self.inspected.verdict = verdict;
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
deref_to_context!(ResponseInspection);
