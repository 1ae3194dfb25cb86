//! What the handler of a further route does for its caller: reads runs, sends messages.

use std::sync::Arc;

use positronic_core::record::{CallerTool, RunId, RunSummary, Seq, UserMessage};
use positronic_core::runner::{Client, RunHandle};
use positronic_core::store::{RunCounts, RunFilter, StoreError};
use serde_json::Value;

use super::Viewer;
use crate::api::{
    Key, MessageFile, MessageRequest, SentMessage, conversation, given_options, of_conversation, send_once, user_for,
    user_of,
};
use crate::auth::{Scope, may_start};
use crate::problem::{Problem, ProblemType};
use crate::routes::RequestContext;

/// The longest id of a message, in bytes.
const MAX_ID: usize = 255;

/// A message to a thread: a conversation, whose last run gets it while it is open, and a new run otherwise.
#[derive(Debug, Clone, typed_builder::TypedBuilder)]
#[non_exhaustive]
pub struct ThreadMessage {
    /// The id of the conversation.
    #[builder(setter(into))]
    pub thread: String,
    /// The title of the brain that a new run has.
    #[builder(setter(into))]
    pub brain: String,
    /// The text; none to begin a run that needs no message.
    #[builder(default)]
    pub text: Option<String>,
    /// The client's id of the message, under which it is sent once.
    #[builder(setter(into))]
    pub id: String,
    /// The options of a new run; the brain's defaults by default.
    #[builder(default)]
    pub options: Option<Value>,
    /// The files beside the text; they need one.
    #[builder(default)]
    pub files: Vec<MessageFile>,
    /// The caller's own tools from this message on; `None` leaves those that it has given before.
    #[builder(default)]
    pub caller_tools: Option<Vec<CallerTool>>,
}

/// The run that has got a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentTo {
    /// The run.
    pub run: RunId,
    /// The event from which on the answer is followed; 0 for a new run.
    pub from: Seq,
    /// Whether the message was sent before, under the same id.
    pub is_replay: bool,
}

impl RequestContext {
    /// Returns the client of the store.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.app.client
    }

    /// Returns the caller as the reader of an answer that lasts longer than the request.
    ///
    /// # Errors
    ///
    /// [`ProblemType::Unauthenticated`] on a public route.
    pub fn viewer(&self) -> Result<Viewer, Problem> {
        Ok(Viewer::new(Arc::clone(&self.app), self.caller()?.clone()))
    }

    /// Refuses a caller without a scope, for what only some requests to a route need.
    ///
    /// # Errors
    ///
    /// [`ProblemType::ScopeMissing`].
    pub fn require(&self, scope: Scope) -> Result<(), Problem> {
        if self.caller()?.may(scope) {
            return Ok(());
        }
        Err(Problem::scope_missing(&[scope]))
    }

    /// Reads the row of a run.
    ///
    /// # Errors
    ///
    /// [`ProblemType::UnknownRun`] if there is no such run, or it belongs to another user.
    pub async fn run_row(&self, run: &RunId) -> Result<RunSummary, Problem> {
        self.app.row(self.caller()?, run).await
    }

    /// Reads the rows of the runs that match a filter and that the caller may see, and counts all of them.
    ///
    /// # Errors
    ///
    /// [`ProblemType::NotAllowed`] if the filter names another user than the one whose runs the caller sees.
    pub async fn list_runs(&self, mut filter: RunFilter) -> Result<(Vec<RunSummary>, RunCounts), Problem> {
        filter.user = user_of(self.caller()?, filter.user.as_deref())?.map(str::to_owned);
        let store = self.app.client.store();
        let rows = store.runs(&filter).await?;
        (filter.after, filter.limit) = (None, None);
        Ok((rows, store.counts(&filter).await?))
    }

    /// Reads the rows of a conversation's runs, the last one first; none if there is no such conversation.
    ///
    /// # Errors
    ///
    /// [`ProblemType::NotFound`] if it, or the run with this id, belongs to another user.
    pub async fn conversation_rows(&self, id: &str) -> Result<Vec<RunSummary>, Problem> {
        let rows = self.app.client.conversations().runs(id).await?;
        let last = match rows.first() {
            Some(last) => Some(last.clone()),
            None => match self.app.client.store().run(&RunId::new(id)).await {
                Ok(run) => Some(run),
                Err(StoreError::NoSuchRun { .. }) => None,
                Err(error) => return Err(error.into()),
            },
        };
        let caller = self.caller()?;
        if last.is_some_and(|last| !caller.sees(&last)) { Err(Problem::no_conversation(id)) } else { Ok(rows) }
    }

    /// Sends a message to a thread, as `POST /conversations/{conversation}/messages` does.
    ///
    /// # Errors
    ///
    /// The problems of that route: the caller lacks the scope `run` or the right to start such runs, there is no such brain, the
    /// options do not match its schema, there are files without a text, or the thread belongs to another user.
    pub async fn send(&self, message: ThreadMessage) -> Result<SentTo, Problem> {
        self.require(Scope::Run)?;
        let ThreadMessage { thread, brain, text, id, options, files, caller_tools } = message;
        let (app, caller) = (&self.app, self.caller()?);
        let definition = app.brain(&brain)?;
        may_start(&app.settings, caller, &brain)?;
        let options = given_options(app, &definition, options)?;
        let Some(text) = text else {
            if !files.is_empty() {
                let detail = "files need a text that says what they are for";
                return Err(Problem::new(ProblemType::InvalidBody).detail(detail));
            }
            let options = options.unwrap_or_else(|| app.settings.brains.default_options(&definition));
            app.read_options(&definition, &options)?;
            let (user, runner) = (user_for(caller, None)?, app.starter(&brain).await?);
            let conversation = conversation(&runner, &thread, user).actor(self.actor()?);
            let run: RunHandle<Value> =
                conversation.start_definition(definition, options).await.map_err(of_conversation)?;
            return Ok(SentTo { run: run.id().clone(), from: Seq(0), is_replay: false });
        };
        if !(1..=MAX_ID).contains(&id.len()) {
            let detail = format!("the id of a message has 1 to {MAX_ID} bytes");
            return Err(Problem::new(ProblemType::InvalidBody).detail(detail));
        }
        let mut message = UserMessage::new(text).files(app.stored_files(files).await?);
        message.caller_tools = caller_tools;
        let request = MessageRequest { definition, options, user: None, tags: Vec::new(), message };
        let key = Key::named(caller, id);
        let SentMessage { run, from, is_replay } = send_once(self, &key, &thread, request).await?;
        Ok(SentTo { run, from, is_replay })
    }
}
