//! Return values of tools: a value, optionally with state changes and waits.

use derive_where::derive_where;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plugin_state::{PluginState, instance_name, owner};
use super::trait_bounds::{State, TypedAnswer};
use super::wait::{Terms, Unresumed, Wait};
use crate::definition::{PluginName, StateOwner, StateValue, UntypedReply, Update, WaitDefinition, encode};
use crate::error::{Error, Result};
use crate::record::{Trigger, TriggerChange, TriggerId};

/// The arguments of a tool without arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NoArgs {}

/// A tool's result that also waits for an answer, sets triggers or changes states; see
/// [`ToolContext::result`](super::ToolContext::result).
#[must_use = "a reply has its effect when the tool returns it"]
#[derive_where(Debug)]
pub struct ToolReply<S> {
    output: Result<Value>,
    brief: Option<String>,
    #[derive_where(skip)]
    updates: Vec<Update>,
    waits: Vec<Terms>,
    #[derive_where(skip)]
    plugin_updates: Vec<(StateOwner, Update)>,
    triggers: Vec<TriggerChange>,
    state: std::marker::PhantomData<fn(S)>,
}

impl<S> ToolReply<S> {
    pub(super) fn new<T: Serialize>(value: &T, max_bytes: usize) -> Self {
        Self {
            output: encode(value, max_bytes),
            brief: None,
            updates: Vec::new(),
            waits: Vec::new(),
            plugin_updates: Vec::new(),
            triggers: Vec::new(),
            state: std::marker::PhantomData,
        }
    }

    /// Sets a shorter text for the model instead of the result, which is recorded and shown to people in full.
    ///
    /// Ignored for a reply that waits, whose result contains the answer.
    pub fn brief(mut self, text: impl Into<String>) -> Self {
        self.brief = Some(text.into());
        self
    }

    /// Waits, after this result, for the first of these; its payload becomes part of the result. If the payload
    /// must change the state, use [`ToolBuilder::wait`](super::ToolBuilder::wait) instead.
    pub fn wait_for<P: Unresumed>(mut self, waits: impl IntoIterator<Item = Wait<S, P>>) -> Self {
        self.waits.extend(waits.into_iter().map(Wait::into_terms));
        self
    }

    /// Sets a trigger when the result is recorded: at its time, it starts the run's brain with the run's options, in the
    /// run's conversation and for its user. It replaces one with the same id; ids are unique in the
    /// store, and [`ToolContext::trigger`](super::ToolContext::trigger) creates new ones.
    ///
    /// [`Runner::serve`](crate::runner::Runner::serve) fires it. The plugin `Triggers` of the crate `positronic-plugins`
    /// lets a model set them.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use positronic_core::prelude::*;
    ///
    /// # let _ = brain("Desk").r#loop("Chat", |cx| cx.system("Help.").tool("remind", |t| {
    /// t.execute(async |_: NoArgs, cx| {
    ///     let tomorrow = cx.now().after(Duration::from_hours(24));
    ///     Ok(cx.result("tomorrow").set_trigger(cx.trigger("Remind the user.", tomorrow)))
    /// })
    /// # }));
    /// ```
    pub fn set_trigger(mut self, trigger: Trigger) -> Self {
        self.triggers.push(TriggerChange::Set(trigger));
        self
    }

    /// Deletes a trigger when the result is recorded, if it exists.
    pub fn delete_trigger(mut self, id: TriggerId) -> Self {
        self.triggers.push(TriggerChange::Deleted(id));
        self
    }

    /// Waits for a reply to this call from a person who is asked `prompt`.
    pub fn wait_for_reply<P: TypedAnswer>(self, prompt: impl Into<String>) -> Self {
        self.wait_for([Wait::<S, P>::reply(prompt)])
    }

    /// Changes the state of a plugin of the loop when the result is recorded, after the changes of the brain's state. The
    /// plugin decides by what its state type makes public which changes there are. In a tool that a plugin adds with
    /// [`Preparation::tool`](super::Preparation::tool), [`update`](Self::update) changes that plugin's state.
    ///
    /// A panicking update makes the call an error, and both states stay; so does a plugin that the loop does not have.
    ///
    /// ```
    /// # use positronic_core::prelude::*;
    /// use positronic_core::dsl::PluginState;
    /// use schemars::JsonSchema;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Default, Serialize, Deserialize, JsonSchema)]
    /// pub struct Notes { lines: Vec<String> }
    ///
    /// impl Notes {
    ///     /// Writes a line down: the one change that the plugin offers.
    ///     pub fn write(&mut self, line: String) {
    ///         self.lines.push(line);
    ///     }
    /// }
    ///
    /// impl PluginState for Notes {
    ///     const NAME: &'static str = "notes";
    /// }
    ///
    /// let order: Tool = Tool::new("order", |t| t.execute(async |_: NoArgs, cx| {
    ///     Ok(cx.result("ordered").update_plugin(|notes: &mut Notes| notes.write("ordered bread".into())))
    /// }));
    /// # let _ = order;
    /// ```
    pub fn update_plugin<P: PluginState>(self, update: impl FnOnce(&mut P) + Send + 'static) -> Self {
        self.update_owned(P::NAME.into(), update)
    }

    /// Changes the state of an instance of a plugin, by the name that [`LoopPlugin::named`](super::LoopPlugin::named) gave it; see
    /// [`update_plugin`](Self::update_plugin).
    pub fn update_plugin_named<P: PluginState>(
        self,
        instance: &str,
        update: impl FnOnce(&mut P) + Send + 'static,
    ) -> Self {
        self.update_owned(instance_name(instance, P::NAME), update)
    }

    fn update_owned<P: PluginState>(mut self, name: PluginName, update: impl FnOnce(&mut P) + Send + 'static) -> Self {
        let update = Box::new(move |document: &StateValue| document.updated(update));
        self.plugin_updates.push((owner::<P>(name), update));
        self
    }
}

impl<S: State> ToolReply<S> {
    /// Changes the state when the result is recorded, after the updates of [`ToolContext::update`](super::ToolContext::update).
    ///
    /// A panicking update makes the call an error, and the state stays.
    pub fn update(mut self, update: impl FnOnce(&mut S) + Send + 'static) -> Self {
        self.updates.push(Box::new(move |document: &StateValue| document.updated(update)));
        self
    }
}

/// A return value of a tool inside its `Result`.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "this is neither a value that can be written as JSON nor `cx.result(…)`",
    note = "derive `serde::Serialize` for it; a tool with nothing to say returns `Ok(())`"
)]
pub trait IntoReply<S> {
    /// Converts to an untyped reply of at most `max_bytes` bytes.
    ///
    /// # Errors
    ///
    /// An [`Error`] when the value cannot be encoded within the limits of a document: at most
    /// [`MAX_DOCUMENT_DEPTH`](crate::record::MAX_DOCUMENT_DEPTH) levels and `max_bytes` bytes.
    fn into_reply(self, max_bytes: usize) -> Result<UntypedReply>;
}

#[diagnostic::do_not_recommend]
impl<S, T: Serialize> IntoReply<S> for T {
    fn into_reply(self, max_bytes: usize) -> Result<UntypedReply> {
        Ok(UntypedReply { output: encode(&self, max_bytes)?, ..UntypedReply::default() })
    }
}

impl<S> IntoReply<S> for ToolReply<S> {
    fn into_reply(self, max_bytes: usize) -> Result<UntypedReply> {
        let waits = self.waits.into_iter().map(|wait| wait.into_definition(max_bytes));
        let waits = waits.collect::<Result<Vec<WaitDefinition>, Error>>()?;
        Ok(UntypedReply {
            output: self.output?,
            brief: self.brief,
            updates: self.updates,
            plugin_updates: self.plugin_updates,
            waits,
            triggers: self.triggers,
        })
    }
}
