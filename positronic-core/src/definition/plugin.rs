//! Plugins without their types.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use super::{LoopDefinition, Scope, StateValue, ToolReply};
use crate::error::Result;
use crate::record::{CallFlags, ModelResponse, PluginDocument};

/// A plugin of a loop. Each hook answers with what the plugin keeps from then on; `scope.plugins` holds what it and the
/// others keep up to then.
pub trait AnyPlugin: Send + Sync {
    /// Adds to an iteration before it begins.
    fn prepare<'a>(&'a self, scope: Scope, definition: &'a mut LoopDefinition)
    -> BoxFuture<'a, Result<PluginDocument>>;

    /// Looks at a whole request, and may change what is not messages, or refuse it with an error.
    fn request<'a>(&'a self, scope: Scope, definition: &'a mut LoopDefinition)
    -> BoxFuture<'a, Result<PluginDocument>>;

    /// Looks at an answer.
    fn response<'a>(&'a self, scope: Scope, response: &'a ModelResponse) -> BoxFuture<'a, Result<PluginDocument>>;

    /// Runs a call of a tool that is a function, or answers in its place.
    fn call<'a>(&'a self, scope: Scope, call: &'a Invocation, next: Next<'a>) -> BoxFuture<'a, Result<ToolReply>>;
}

/// A try of a call, as a plugin's hook around it sees it.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The tool.
    pub tool: String,
    /// The arguments that run. They are in the log, and a person may have approved them, so no plugin changes them.
    pub arguments: Arc<Value>,
    /// What the tool promises.
    pub flags: CallFlags,
    /// The try, from 0.
    pub attempt: u32,
}

/// What is inside a plugin's hook around a call: the next plugin's hook, at last the tool.
pub type Next<'a> = Box<dyn FnOnce() -> BoxFuture<'a, Result<ToolReply>> + Send + 'a>;

/// The plugin in whose state a tool lives: it sees this state in place of the brain's, and its updates change it.
#[derive(Clone, Copy)]
pub struct StateOwner {
    /// The plugin.
    pub plugin: &'static str,
    /// The version of its state type.
    pub version: u32,
    /// Reads what the plugin keeps as a state of this version.
    pub read: fn(&PluginDocument) -> Result<Value>,
}

impl StateOwner {
    /// Returns the plugin's state as a document of this version.
    ///
    /// # Errors
    ///
    /// An [`Error`](crate::Error) when the plugin keeps nothing, or what it keeps is refused by its type.
    pub fn document(&self, kept: Option<&PluginDocument>) -> Result<StateValue> {
        match kept {
            Some(kept) => Ok(StateValue::new(Arc::new((self.read)(kept)?))),
            None => Err(crate::Error::new(format!("the plugin `{}` has not been prepared", self.plugin))),
        }
    }

    /// Makes what the plugin keeps from a state.
    #[must_use]
    pub const fn keep(&self, state: Arc<Value>) -> PluginDocument {
        PluginDocument { version: self.version, state }
    }
}

impl fmt::Debug for StateOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.plugin)
    }
}
