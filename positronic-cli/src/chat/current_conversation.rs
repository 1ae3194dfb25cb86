//! The conversation of a chat, its brain, and the store and folders it uses.

use std::path::PathBuf;
use std::sync::Arc;

use positronic_core::definition::BrainDefinition;
use positronic_core::prices::PriceTable;
use positronic_core::record::BudgetRequest;
use positronic_core::record::{Actor, Budget, FileRef, LimitKind, PendingKind, RunId, RunSummary};
use positronic_core::runner::{
    Busy, Client, Clock as _, Conversation, ConversationError, DueTrigger, ResumeError, RunHandle, Runner, SystemClock,
};
use positronic_core::store::{PendingFilter, PendingItem};
use serde_json::Value;

use crate::app::{CassetteFollower, Failure, Folder, NO_ANSWER_LEFT, ProjectStore, Recorded, Ui, new_id};
use crate::session::answer_commands;

/// The conversation of a chat.
pub(crate) struct ChatContext {
    pub(crate) store: ProjectStore,
    pub(crate) definition: Arc<BrainDefinition>,
    pub(crate) options: Value,
    pub(crate) id: String,
    pub(crate) user: Option<String>,
    pub(crate) actor: Actor,
    pub(crate) busy: Busy,
    /// The budget of this conversation, where it was given here.
    pub(crate) budget: Option<Budget>,
    /// The budget of each conversation that begins here.
    pub(crate) given_budget: Option<Budget>,
    /// The budget of each prompt.
    pub(crate) prompt_budget: Option<Budget>,
    /// The position in the cassette that answers in place of a model.
    pub(crate) follower: Option<Arc<CassetteFollower>>,
    /// The parent folder of those of the conversations' files; `None` saves no files.
    pub(crate) files_dir: Option<PathBuf>,
    pub(crate) prices: PriceTable,
    /// Renders suggested commands, and writes nothing.
    pub(crate) ui: Ui,
}

impl ChatContext {
    pub(super) fn client(&self) -> Client {
        self.store.client()
    }

    pub(super) fn conversation(&self, runner: &Runner) -> Conversation {
        let mut conversation = runner.conversation(self.id.as_str()).actor(self.actor.clone()).busy(self.busy);
        if let Some(user) = &self.user {
            conversation = conversation.user(user.as_str());
        }
        if let Some(budget) = &self.budget {
            conversation = conversation.budget(budget.clone());
        }
        match &self.prompt_budget {
            Some(budget) => conversation.prompt_budget(budget.clone()),
            None => conversation,
        }
    }

    /// Begins another conversation.
    pub(super) async fn restart(&mut self) -> Result<(), Failure> {
        self.id = new_id(&self.client()).await?;
        self.budget.clone_from(&self.given_budget);
        if let Some(follower) = &self.follower {
            follower.restart();
        }
        Ok(())
    }

    /// Moves the cassette behind the answers that other processes have played.
    pub(crate) fn advance_cassette(&self, runner: &Runner) -> impl Future<Output = Result<(), Failure>> + Send + use<> {
        let (follower, store) = (self.follower.clone(), self.store.clone());
        let (id, runner) = (self.id.clone(), runner.clone());
        async move {
            let Some(follower) = follower else { return Ok(()) };
            follower.advance_cassette(&store, &id, &runner.worker().await?).await
        }
    }

    pub(super) async fn recorded(&self) -> Result<Recorded, Failure> {
        Recorded::read(&self.client(), &self.id).await
    }

    /// Returns the conversation's last run.
    pub(super) async fn last(&self) -> Result<Option<RunSummary>, Failure> {
        Ok(self.client().conversations().runs(&self.id).await?.into_iter().next())
    }

    /// Resumes a run, or opens it where another worker has claimed it or its brain is not here.
    pub(super) async fn resume(&self, runner: &Runner, run: &RunId) -> Result<RunHandle<Value>, Failure> {
        match runner.resume(run).await {
            Ok(run) => Ok(run),
            Err(ResumeError::Store(error)) => Err(error.into()),
            Err(ResumeError::Claimed { .. } | ResumeError::Over { .. } | ResumeError::NoBrain { .. }) => {
                Ok(runner.open(run).await?)
            }
            Err(error) => Err(Failure::refused(error)),
        }
    }

    /// Fires the first trigger of this conversation that is due.
    ///
    /// # Errors
    ///
    /// The reason why it cannot fire here.
    pub(super) async fn fire(&self, runner: &Runner) -> Result<Option<DueTrigger>, String> {
        let reason = |failure: Failure| failure.to_string();
        if let Some(follower) = &self.follower {
            let due = self.client().due_triggers().await.map_err(|error| reason(error.into()))?;
            let Some(timer) = due.iter().find(|timer| timer.conversation.as_deref() == Some(&*self.id)) else {
                return Ok(None);
            };
            // Another process may have answered the last prompt.
            self.advance_cassette(runner).await.map_err(reason)?;
            if !follower.has_answers_left() {
                return Err(format!("the trigger {} cannot fire here: {NO_ANSWER_LEFT}", timer.trigger.id));
            }
        }
        self.conversation(runner).fire_due().await.map_err(|error| reason(error.into()))
    }

    /// Renders the command that continues this conversation.
    pub(crate) fn back(&self) -> String {
        let user = self.user.as_deref().map_or_else(Vec::new, |user| vec!["--user", user]);
        self.ui.command(&[&["chat", &self.definition.title, "--conversation", &self.id][..], &user].concat())
    }

    /// Returns what explains why a message was refused.
    pub(super) fn refused(&self) -> impl FnOnce(ConversationError) -> Failure + Send + use<> {
        let (back, inbox) = (self.back(), self.ui.command(&["inbox"]));
        move |error| refused(error, &back, &inbox)
    }

    /// Returns the pending items of this conversation.
    pub(super) async fn pending(&self) -> Result<Vec<PendingItem>, Failure> {
        let Some(last) = self.last().await?.filter(|last| !last.status.is_over()) else { return Ok(Vec::new()) };
        Ok(self.client().store().pending(&PendingFilter::builder().run(last.run).build()).await?)
    }

    /// Explains how to continue a run that asks for more than its budget: a budget that is given now does not apply to it.
    pub(crate) async fn asks_for_more(&self) -> Result<Option<String>, Failure> {
        let pending = if self.given_budget.is_some() { self.pending().await? } else { Vec::new() };
        let asks =
            |item: &&PendingItem| matches!(item.pending.kind, PendingKind::Budget(BudgetRequest { shared: true, .. }));
        Ok(pending.iter().find(asks).and_then(|item| {
            let run = &item.run;
            let answer =
                answer_commands(run.as_str(), &item.pending, SystemClock.now(), &self.ui).into_iter().next()?;
            Some(format!(
                "the budget applies to runs that begin with it; `{run}`, which asks for more, continues with: {answer}"
            ))
        }))
    }

    /// Saves a file whose bytes are stored here, and returns its path.
    pub(super) async fn save(&self, file: &FileRef) -> Result<Option<PathBuf>, Failure> {
        let (Some(folder), Some(sha256)) = (self.folder(), file.blob()) else { return Ok(None) };
        let Some(bytes) = self.client().blob(sha256).await? else { return Ok(None) };
        folder.save(&file.name, &bytes).map(Some).map_err(Failure::file(folder.path(), "cannot save a file in"))
    }

    /// Returns the folder of the conversation's files.
    pub(super) fn folder(&self) -> Option<Folder> {
        self.files_dir.as_ref().map(|parent| Folder::of_conversation(parent, &self.id))
    }
}

/// Explains why a message was refused, and how to continue the conversation.
fn refused(error: ConversationError, back: &str, inbox: &str) -> Failure {
    match error {
        ConversationError::Busy { run, reason } => {
            Failure::refused(format!("the run `{run}` is not over and accepts no message now: {reason}"))
                .hint(format!("`{inbox}` lists what it waits for, and how to answer"))
        }
        ConversationError::Spent { kind, .. } => {
            let option = match kind {
                LimitKind::Money => "--max-money AMOUNT",
                LimitKind::Tokens => "--max-tokens NUMBER",
                LimitKind::Time => "--max-time TIME",
                LimitKind::Iterations | LimitKind::Failures => "--max-iterations NUMBER",
            };
            Failure::refused(&error).hint(format!("{back} {option}"))
        }
        ConversationError::NotYours { conversation } => {
            Failure::refused(format!("the conversation `{conversation}` belongs to another user"))
                .hint("name the user with --user, or begin another one with --conversation")
        }
        ConversationError::Prices { .. } => {
            Failure::refused(error).hint("name a table that fits with --prices FILE or in POSITRONIC_PRICES")
        }
        ConversationError::Start(error) => error.into(),
        ConversationError::Store(error) => error.into(),
        ConversationError::Signal(error) => error.into(),
        ConversationError::Resume(ResumeError::Store(error)) => error.into(),
        other => Failure::refused(other),
    }
}
