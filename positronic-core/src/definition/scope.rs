//! What the runner hands to an author's code, and the way back.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use super::{BrainDefinition, StateValue, ToolDefinition};
use crate::error::Result;
use crate::record::{
    Fired, Message, ModelResponse, Path, PluginStates, Prompt, PublicId, Question, RunId, SideOutput, Timer, Timestamp,
};

/// The services of a brain, without their type.
pub type AnyServices = Arc<dyn Any + Send + Sync>;

/// Where author's code runs: the documents it sees, its services, and the run around it.
#[derive(Clone)]
pub struct Scope {
    /// The state as of now.
    pub state: StateValue,
    /// The options of the brain.
    pub options: StateValue,
    /// What the brain's plugins keep.
    pub plugins: PluginStates,
    /// The services of the brain.
    pub services: AnyServices,
    /// The run.
    pub run: RunId,
    /// Whom the run belongs to.
    pub user: Option<Arc<str>>,
    /// The stage, iteration or call.
    pub path: Path,
    /// The way back into the run.
    pub link: Arc<dyn Link>,
}

/// The way from an author's code back into its run.
pub trait Link: Send + Sync {
    /// Records what a call shows beside its result, and returns the id it gets.
    ///
    /// # Errors
    ///
    /// An [`Error`](crate::error::Error) when the call has shown too many.
    fn output(&self, path: &Path, output: SideOutput) -> Result<PublicId>;

    /// Keeps the bytes of a file with the runs, and returns their hash. No event refers to them yet.
    fn keep(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<String>>;

    /// Says whether a person has approved the call that runs here.
    fn is_approved(&self, call: &Path) -> bool;

    /// Returns what time it is.
    fn now(&self) -> Timestamp;

    /// Lists the triggers of the run's conversation; of its user, where it is a part of none; or of the run itself. The one
    /// that is due first comes first.
    fn triggers(&self) -> BoxFuture<'static, Result<Vec<Timer>>>;

    /// Returns the trigger that has started the run.
    fn fired(&self) -> Option<Fired>;

    /// Shows what a running call says of itself; it is not recorded.
    fn progress(&self, path: &Path, text: String);

    /// Asks a model a question that is recorded.
    fn ask(&self, path: Path, question: Question) -> BoxFuture<'static, Result<ModelResponse>>;

    /// Returns the value that a step or a call has computed before under this name, or has it computed and recorded.
    fn once<'a>(
        &'a self,
        path: &'a Path,
        name: &'a str,
        work: BoxFuture<'a, Result<Value>>,
    ) -> BoxFuture<'a, Result<Arc<Value>>>;

    /// Returns the record of a loop so far.
    fn record(&self, path: &Path) -> Option<Prompt>;

    /// Returns the messages of a loop: what its last iteration sent, and what its record has gained since.
    fn messages(&self, path: &Path) -> Vec<Message>;

    /// Finds a brain of the project by its title.
    fn brain(&self, title: &str) -> Option<Arc<BrainDefinition>>;

    /// Lists the titles of the project's brains.
    fn brains(&self) -> Vec<String>;

    /// Finds an action of the project by its name.
    fn action(&self, name: &str) -> Option<Arc<ToolDefinition>>;
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("run", &self.run).field("path", &self.path).finish_non_exhaustive()
    }
}
