//! What a tool returns: a value, or a value with changes of the state and waits.

use std::fmt;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bounds::State;
use super::kept::{PluginState, owner};
use super::wait::{Terms, Unresumed, Wait};
use crate::definition::{StateOwner, StateValue, ToolReply, Update, WaitDefinition, encode};
use crate::error::{Error, Result};
use crate::record::{Trigger, TriggerChange, TriggerId};

/// The arguments of a tool that takes none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NoArgs {}

/// A tool's result that also changes the state of the loop's brain, or waits for an answer; see
/// [`ToolContext::result`](super::ToolContext::result).
#[must_use = "a reply has its effect when the tool returns it"]
pub struct Reply<S> {
    output: Result<Value>,
    brief: Option<String>,
    updates: Vec<Update>,
    waits: Vec<Terms>,
    plugin_updates: Vec<(StateOwner, Update)>,
    triggers: Vec<TriggerChange>,
    state: std::marker::PhantomData<fn(S)>,
}

impl<S> Reply<S> {
    pub(super) fn new<T: Serialize>(value: &T) -> Self {
        Self {
            output: encode(value),
            brief: None,
            updates: Vec::new(),
            waits: Vec::new(),
            plugin_updates: Vec::new(),
            triggers: Vec::new(),
            state: std::marker::PhantomData,
        }
    }

    /// Lets the model read `text` in place of the result, which is recorded and shown to people whole.
    ///
    /// A reply that waits has the answer in its result, and no brief.
    pub fn brief(mut self, text: impl Into<String>) -> Self {
        self.brief = Some(text.into());
        self
    }

    /// Waits, after this result, for the first of these to arrive; its payload becomes part of the result. Where the payload
    /// is to change the state, name the wait with [`ToolBuilder::wait`](super::ToolBuilder::wait) instead.
    pub fn wait_for<P: Unresumed>(mut self, waits: impl IntoIterator<Item = Wait<S, P>>) -> Self {
        self.waits.extend(waits.into_iter().map(Wait::into_terms));
        self
    }

    /// Sets a trigger when the result is recorded: at its time, the run's brain is started with the run's options, in the
    /// run's conversation and for its user. One with the same id takes the place of the one before; ids are those of the whole
    /// store, and [`ToolContext::trigger`](super::ToolContext::trigger) gives new ones.
    ///
    /// [`Runner::serve`](crate::runner::Runner::serve) fires it. The plugin [`Triggers`](crate::plugins::Triggers) lets a
    /// model set them.
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

    /// Takes a trigger back when the result is recorded. One that is not there any more is no error.
    pub fn delete_trigger(mut self, id: TriggerId) -> Self {
        self.triggers.push(TriggerChange::Deleted(id));
        self
    }

    /// Waits for a reply that is addressed to the call itself, from a person who is asked `prompt`.
    pub fn wait_for_reply<P: DeserializeOwned + JsonSchema + 'static>(self, prompt: impl Into<String>) -> Self {
        self.wait_for([Wait::<S, P>::reply(prompt)])
    }

    /// Changes what a plugin keeps when the result is recorded, after the changes of the state.
    pub(crate) fn update_plugin<P: PluginState>(mut self, update: impl FnOnce(&mut P) + Send + 'static) -> Self {
        let update = Box::new(move |document: &StateValue| document.updated(update));
        self.plugin_updates.push((owner::<P>(), update));
        self
    }
}

impl<S: State> Reply<S> {
    /// Changes the state when the result is recorded, after all updates before it.
    ///
    /// An update that panics makes the call an error, and the state stays.
    pub fn update(mut self, update: impl FnOnce(&mut S) + Send + 'static) -> Self {
        self.updates.push(Box::new(move |document: &StateValue| document.updated(update)));
        self
    }
}

impl<S> fmt::Debug for Reply<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("output", &self.output).field("waits", &self.waits).finish_non_exhaustive()
    }
}

/// What a tool may return inside its `Result`.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "this is neither a value that can be written as JSON nor `cx.result(…)`",
    note = "derive `serde::Serialize` for it, or return `cx.result(…)` with `.update(…)` or `.wait_for(…)`"
)]
pub trait IntoReply<S> {
    /// Makes the reply without its types.
    ///
    /// # Errors
    ///
    /// An [`Error`] when the value cannot be encoded within the limits of a document: see
    /// [`encode_document`](crate::record::encode_document).
    fn into_reply(self) -> Result<ToolReply>;
}

#[diagnostic::do_not_recommend]
impl<S, T: Serialize> IntoReply<S> for T {
    fn into_reply(self) -> Result<ToolReply> {
        Ok(ToolReply {
            output: encode(&self)?,
            brief: None,
            updates: Vec::new(),
            plugin_updates: Vec::new(),
            waits: Vec::new(),
            triggers: Vec::new(),
        })
    }
}

impl<S> IntoReply<S> for Reply<S> {
    fn into_reply(self) -> Result<ToolReply> {
        let waits =
            self.waits.into_iter().map(Terms::into_definition).collect::<Result<Vec<WaitDefinition>, Error>>()?;
        Ok(ToolReply {
            output: self.output?,
            brief: self.brief,
            updates: self.updates,
            plugin_updates: self.plugin_updates,
            waits,
            triggers: self.triggers,
        })
    }
}
