//! Untyped plugins.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use super::{LoopDefinition, Scope, StateValue, UntypedReply, Verdict};
use crate::error::Result;
use crate::record::{CallFlags, Citation, ModelResponse, PluginDocument};

/// The name of a plugin in its loop, under which its state is stored.
pub type PluginName = Cow<'static, str>;

/// A running hook of a plugin: the plugin's new state.
pub type Hook<'a> = BoxFuture<'a, Result<Option<PluginDocument>>>;

/// A plugin of a loop. Each hook gets the plugin's name, and returns its new state; `scope.plugins` has the previous states of all
/// plugins. A plugin without state has none.
pub trait AnyPlugin: Send + Sync {
    /// Returns the plugin's name, without that of an instance.
    fn name(&self) -> &'static str;

    /// Lists the tools that it can offer in any iteration, as it names them in a loop where it has the name `instance`.
    fn tool_names(&self, instance: &str) -> Vec<String>;

    /// Returns the state with which the plugin begins; the size limit is in bytes.
    fn initial(&self, max_bytes: usize) -> Result<Option<PluginDocument>>;

    /// Extends an iteration before it begins.
    fn prepare<'a>(&'a self, name: PluginName, scope: Scope, definition: &'a mut LoopDefinition) -> Hook<'a>;

    /// Inspects a complete request, and may change anything but the messages, or reject it with an error.
    fn request<'a>(&'a self, name: PluginName, scope: Scope, definition: &'a mut LoopDefinition) -> Hook<'a>;

    /// Inspects an answer, and may add citations to it.
    fn response<'a>(
        &'a self,
        name: PluginName,
        scope: Scope,
        response: &'a ModelResponse,
        inspected: &'a mut Inspected,
    ) -> Hook<'a>;

    /// Returns whether it may refuse or replace answers.
    fn guards(&self) -> bool;

    /// Applies an update that an application has sent to the state that the plugin stores; the size limit is in bytes.
    fn update(&self, kept: Option<&PluginDocument>, update: &Value, max_bytes: usize)
    -> Result<Option<PluginDocument>>;

    /// Wraps a call of a function tool, or replies instead of it.
    fn call<'a>(
        &'a self,
        name: PluginName,
        scope: Scope,
        call: &'a Invocation,
        next: NextCall<'a>,
    ) -> BoxFuture<'a, Result<UntypedReply>>;
}

/// What a plugin says about an answer.
#[derive(Debug, Default)]
pub struct Inspected {
    /// Sources to add.
    pub citations: Vec<Citation>,
    /// Whether the answer passes.
    pub verdict: Verdict,
}

/// A try of a call, for a plugin's hook around it.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The tool.
    pub tool: String,
    /// The arguments. They are logged, and possibly approved by a person, so plugins cannot change them.
    pub arguments: Arc<Value>,
    /// The tool's flags.
    pub flags: CallFlags,
    /// The number of the try, from 0.
    pub attempt: u32,
}

/// The rest of the chain inside a plugin's hook: the next plugin's hook, finally the tool.
pub type NextCall<'a> = Box<dyn FnOnce() -> BoxFuture<'a, Result<UntypedReply>> + Send + 'a>;

/// The plugin that owns a tool: the tool sees and updates the plugin's state instead of the brain's.
#[derive(Clone)]
pub struct StateOwner {
    /// The plugin.
    pub plugin: PluginName,
    /// Whether the plugin has a state. Tools of one without see `null`, and change nothing.
    pub has_state: bool,
    /// The version of its state type.
    pub version: u32,
    /// Decodes the plugin's stored state as this version; the second argument is the size limit of documents in bytes.
    pub read: fn(&PluginDocument, usize) -> Result<Value>,
}

impl StateOwner {
    /// Returns the plugin's state as a state value.
    ///
    /// # Errors
    ///
    /// An [`Error`](crate::Error) when the plugin has no state, or its type rejects the stored one.
    pub fn document(&self, kept: Option<&PluginDocument>, max_bytes: usize) -> Result<StateValue> {
        match kept {
            Some(kept) => Ok(StateValue::new(Arc::new((self.read)(kept, max_bytes)?), max_bytes)),
            None if !self.has_state => Ok(StateValue::new(Arc::default(), max_bytes)),
            None => Err(crate::Error::new(format!("the plugin `{}` has not been prepared", self.plugin))),
        }
    }

    /// Wraps a state for storing.
    #[must_use]
    pub const fn keep(&self, state: Arc<Value>) -> PluginDocument {
        PluginDocument { version: self.version, state }
    }
}

impl fmt::Debug for StateOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plugin)
    }
}
