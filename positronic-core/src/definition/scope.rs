//! The interface between the runner and an author's code.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;

use super::{BrainDefinition, StateValue, ToolDefinition};
use crate::error::Result;
use crate::record::{
    Budget, ChildLink, FileRef, Fired, Message, ModelResponse, Path, PluginStates, Prompt, PublicId, Question, RunId,
    Scheduled, SideOutput, Timer, Timestamp,
};

/// The untyped services of a brain.
pub type AnyServices = Arc<dyn Any + Send + Sync>;

/// The environment of an author's code: state, options, services, and the run.
#[derive(Clone)]
pub struct Scope {
    /// The current state.
    pub state: StateValue,
    /// The options of the brain.
    pub options: StateValue,
    /// The states of the brain's plugins.
    pub plugins: PluginStates,
    /// The services of the brain.
    pub services: AnyServices,
    /// The run.
    pub run: RunId,
    /// The user that the run belongs to.
    pub user: Option<Arc<str>>,
    /// The stage, iteration or call.
    pub path: Path,
    /// The connection to the run.
    pub link: Arc<dyn Link>,
}

impl Scope {
    /// Returns the size limit of documents in bytes.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        self.state.max_bytes()
    }

    /// Stores the bytes of a file with the runs. No event references them yet.
    pub(crate) async fn store_file(&self, name: String, media_type: String, bytes: Vec<u8>) -> Result<FileRef> {
        let size = bytes.len() as u64;
        let sha256 = self.link.keep(bytes).await?;
        Ok(FileRef::stored(name, media_type, size, sha256))
    }
}

/// The connection from an author's code to its run.
pub trait Link: Send + Sync {
    /// Records a side output of a call, and returns its id.
    ///
    /// # Errors
    ///
    /// An [`Error`](crate::error::Error) when the call has too many.
    fn output(&self, path: &Path, output: SideOutput) -> Result<PublicId>;

    /// Stores the bytes of a file with the runs, and returns their hash. No event references them yet.
    fn keep(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<String>>;

    /// Returns whether a person has approved the current call.
    fn is_approved(&self, call: &Path) -> bool;

    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Lists the triggers of the run's conversation, else of its user, else of the run itself, earliest due time first.
    fn triggers(&self) -> BoxFuture<'static, Result<Vec<Timer>>>;

    /// Returns the trigger that started the run.
    fn fired(&self) -> Option<Fired>;

    /// Returns the tick of a schedule that started the run.
    fn scheduled(&self) -> Option<Scheduled>;

    /// Shows the progress of a running call; it is not recorded.
    fn progress(&self, path: &Path, text: String);

    /// Sends a recorded question to a model.
    fn ask(&self, path: Path, question: Question) -> BoxFuture<'static, Result<ModelResponse>>;

    /// Awaits a guard or a hook that may ask questions at a path, within the runner's limit of time, and drops it if it takes longer. The time
    /// until its questions are answered does not count.
    ///
    /// # Errors
    ///
    /// The limit if it takes longer.
    fn limit<'a>(&'a self, path: &'a Path, hook: BoxFuture<'a, ()>) -> BoxFuture<'a, Result<(), Duration>>;

    /// Returns the recorded value of a step or call under this name, or computes and records it.
    fn once<'a>(
        &'a self,
        path: &'a Path,
        name: &'a str,
        work: BoxFuture<'a, Result<Value>>,
    ) -> BoxFuture<'a, Result<Arc<Value>>>;

    /// Starts a child run, and returns its id: the same one for the same step or call and name.
    fn start_child(&self, path: &Path, child: NewChild) -> BoxFuture<'static, Result<RunId>>;

    /// Returns the record of a loop.
    fn record(&self, path: &Path) -> Option<Prompt>;

    /// Returns the messages of a loop: those of its last request, and later ones of its record.
    fn messages(&self, path: &Path) -> Vec<Message>;

    /// Finds a brain of the project by its title.
    fn brain(&self, title: &str) -> Option<Arc<BrainDefinition>>;

    /// Lists the titles of the project's brains.
    fn brains(&self) -> Vec<String>;

    /// Finds an action of the project by its name.
    fn action(&self, name: &str) -> Option<Arc<ToolDefinition>>;
}

/// A child run to start.
#[derive(Debug)]
pub struct NewChild {
    /// The author's name for it.
    pub name: String,
    /// Its brain.
    pub definition: Arc<BrainDefinition>,
    /// The options.
    pub options: Value,
    /// What connects it to the run that starts it.
    pub link: ChildLink,
    /// Its budget.
    pub budget: Option<Budget>,
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("run", &self.run).field("path", &self.path).finish_non_exhaustive()
    }
}
