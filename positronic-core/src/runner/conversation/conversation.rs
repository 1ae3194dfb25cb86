//! Conversations: consecutive runs, each with the prompts of the previous ones as its history.
//!
//! The store has no separate entity for a conversation. The first event of a run names its conversation and the run
//! before it, and its row repeats both. The messages of the previous runs precede those of each loop of its brain,
//! and its plugins begin with their state at the end of the previous run.
//!
//! The runs of the conversation `c` have the ids `c-0`, `c-1` and so on, so only one of two processes that answer at
//! the same time can begin the next one.

use std::sync::Arc;

use serde_json::Value;

use super::error::ConversationError;
use crate::definition::BrainDefinition;
use crate::dsl::Runnable;
use crate::error::caught_now;
use crate::machine::{BrainFrame, RunState};
use crate::record::{
    Actor, Budget, Busy, Fired, Prompt, RunId, RunSummary, Signal, SignalId, SignalKind, Start, UserMessage,
};
use crate::runner::start::{TakenOver, start as start_run};
use crate::runner::worker::load;
use crate::runner::{ResumeError, RunHandle, Runner, Settled, SignalError, StartError};
use crate::store::{RunFilter, StoreError};

/// A conversation of a user.
///
/// ```no_run
/// # use positronic_core::model::Model;
/// # async fn example(model: impl Model) -> Result<(), Box<dyn std::error::Error>> {
/// use positronic_core::prelude::*;
/// use positronic_core::runner::Runner;
///
/// let helper = brain("Helper").r#loop("Chat", |cx| cx.system("You are helpful."));
/// let runner = Runner::new(model);
/// let chat = runner.conversation("ann-1").user("ann");
/// chat.send(&helper, (), "What is the weather in Bern?").await?.result().await?;
/// chat.send(&helper, (), "And tomorrow?").await?.result().await?;
/// assert_eq!(chat.prompts().await?.len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Conversation {
    pub(in crate::runner) runner: Runner,
    pub(in crate::runner) id: String,
    user: Option<String>,
    tags: Vec<String>,
    actor: Actor,
    busy: Busy,
    pub(super) budget: Option<Budget>,
    each: Option<Budget>,
}

impl Conversation {
    pub(in crate::runner) fn of(runner: &Runner, id: String) -> Self {
        let (runner, actor, busy) = (runner.clone(), Actor::default(), Busy::default());
        Self { runner, id, user: None, tags: Vec::new(), actor, busy, budget: None, each: None }
    }

    /// Sets the user to whom the conversation belongs.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets the tags of the runs that it starts.
    #[must_use]
    pub fn tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the sender of its messages and the channel.
    #[must_use]
    pub fn actor(mut self, actor: impl Into<Actor>) -> Self {
        self.actor = actor.into();
        self
    }

    /// Sets what happens to a message while the last run has not ended.
    #[must_use]
    pub const fn busy(mut self, busy: Busy) -> Self {
        self.busy = busy;
        self
    }

    /// Sets a budget for all runs of the conversation together, from the next one on. It is recorded with each
    /// run and applies in every process until another one is set. Usage of earlier runs counts, too, except
    /// active time, which is counted only while it is limited.
    ///
    /// It applies in addition to the budget of a run's brain: the one that is reached first applies, a grant
    /// raises only that one, and each has its own [`Budget::on_limit`] and [`Budget::ask_for_more`]. Once this
    /// one is used up, the run ends as by any budget, and no further run begins ([`ConversationError::Spent`])
    /// unless the budget asks for more: then the run begins and a person is asked. Unused grants remain for later
    /// runs. Pruned runs do not count. The cost of an answer that had no price is computed with the runner's
    /// prices when money is limited; as long as it stays unknown, no run begins ([`ConversationError::Prices`]).
    /// A fork gets what was left at the start of its run as a budget of its own, and does not count.
    ///
    /// ```no_run
    /// # use positronic_core::prelude::*;
    /// # async fn example(runner: positronic_core::runner::Runner) -> Result<(), Box<dyn std::error::Error>> {
    /// use positronic_core::record::Budget;
    ///
    /// let helper = brain("Helper").r#loop("Chat", |cx| cx.system("You are helpful."));
    /// let chat = runner.conversation("ann-1").budget(Budget::default().max_tokens(200_000));
    /// chat.send(&helper, (), "Plan my holidays.").await?.result().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Sets the budget of each run that begins here. It takes precedence over the brain's. A run ends at its
    /// limit, and the next one begins with a fresh budget.
    #[must_use]
    pub fn prompt_budget(mut self, budget: Budget) -> Self {
        self.each = Some(budget);
        self
    }

    /// Returns its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Sends a message: begins the next run with it, or sends it to the open run, depending on [`Busy`]. A message with an
    /// [id](UserMessage::id) that the last run has got already is not sent again: its run is returned.
    ///
    /// # Errors
    ///
    /// [`ConversationError`]; nothing was sent then, and with [`Busy::Cancel`] no run is cancelled for a message
    /// that the budget refuses.
    pub async fn send<B: Runnable>(
        &self,
        brain: B,
        options: B::Options,
        message: impl Into<UserMessage>,
    ) -> Result<RunHandle<B::Result>, ConversationError> {
        let opening = message.into();
        let (definition, options) = self.runner.erased(&brain, &options)?;
        Ok(self.send_definition(definition, options, opening).await?.typed())
    }

    /// Begins the next run without a message of a person.
    ///
    /// # Errors
    ///
    /// [`ConversationError::Open`] if the last run has not ended, and the other errors of [`Conversation::send`].
    pub async fn start<B: Runnable>(
        &self,
        brain: B,
        options: B::Options,
    ) -> Result<RunHandle<B::Result>, ConversationError> {
        let (definition, options) = self.runner.erased(&brain, &options)?;
        Ok(self.start_definition(definition, options).await?.typed())
    }

    /// Sends a message to an untyped brain, with the sender's own id of the message; see [`Conversation::send`].
    ///
    /// # Errors
    ///
    /// As [`Conversation::send`].
    pub async fn send_definition(
        &self,
        definition: Arc<BrainDefinition>,
        options: Value,
        opening: UserMessage,
    ) -> Result<RunHandle<Value>, ConversationError> {
        loop {
            let last = self.last().await?;
            if let (Some(last), Some(_)) = (&last, &opening.id)
                && has_message(&load::state(&*self.runner.store, &last.run).await?, &opening)
            {
                return Ok(self.runner.clone().replacing(definition).open(&last.run).await?);
            }
            let open = last.as_ref().filter(|last| !last.status.is_over());
            match (open, self.busy) {
                (Some(last), Busy::Queue) => {
                    if let Some(run) = self.say(last, &definition, &opening).await? {
                        return Ok(run);
                    }
                }
                (Some(last), Busy::Cancel) => {
                    self.may_begin(last).await?;
                    self.cancel(last, "another message came").await?;
                }
                (None, _) => {
                    let start = Start { message: Some(opening.clone()), ..Start::default() };
                    match self.next(last.as_ref(), &definition, &options, start).await {
                        Err(ConversationError::Start(StartError::Started { .. }))
                            if self.has_continued(last.as_ref()).await? => {}
                        begun => return begun,
                    }
                }
            }
        }
    }

    /// Begins the next run of an untyped brain; see [`Conversation::start`].
    ///
    /// # Errors
    ///
    /// As [`Conversation::start`].
    pub async fn start_definition(
        &self,
        definition: Arc<BrainDefinition>,
        options: Value,
    ) -> Result<RunHandle<Value>, ConversationError> {
        let last = self.last().await?;
        if let Some(last) = last.as_ref().filter(|last| !last.status.is_over()) {
            return Err(ConversationError::Open { run: last.run.clone() });
        }
        self.next(last.as_ref(), &definition, &options, Start::default()).await
    }

    /// Begins the next run for a due trigger. Returns `None` while the trigger must wait: for the end of the last
    /// run, or because another process has begun the next one.
    pub(in crate::runner) async fn fire(
        &self,
        definition: Arc<BrainDefinition>,
        options: Value,
        fired: Fired,
        budget: Option<Budget>,
    ) -> Result<Option<RunHandle<Value>>, ConversationError> {
        loop {
            let last = self.last().await?;
            let open = last.as_ref().filter(|last| !last.status.is_over());
            match (open, self.busy) {
                (Some(_), Busy::Queue) => return Ok(None),
                (Some(last), Busy::Cancel) => {
                    self.may_begin(last).await?;
                    self.cancel(last, "a trigger is due").await?;
                }
                (None, _) => {
                    // It has the budget of the run that set the trigger.
                    let start = Start { fired: Some(fired), budget, ..Start::default() };
                    match self.next(last.as_ref(), &definition, &options, start).await {
                        Err(ConversationError::Start(StartError::Started { .. }))
                            if self.has_continued(last.as_ref()).await? =>
                        {
                            return Ok(None);
                        }
                        begun => return begun.map(Some),
                    }
                }
            }
        }
    }

    /// Lists its runs, the last one first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn runs(&self) -> Result<Vec<RunSummary>, StoreError> {
        self.runner.client().conversations().runs(&self.id).await
    }

    /// Returns its prompts in order, including hidden ones.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn prompts(&self) -> Result<Vec<(RunId, Prompt)>, StoreError> {
        self.runner.client().conversations().prompts(&self.id).await
    }

    /// Returns its last run, from which the others follow: each has the user of the run before it. A conversation that has not begun
    /// must not have the id of a run: readers that know only an id would take the one for the other.
    async fn last(&self) -> Result<Option<RunSummary>, ConversationError> {
        let filter = RunFilter::builder().conversation(&self.id).limit(1).build();
        let last = self.runner.store.runs(&filter).await?.pop();
        let is_ours = |row: &RunSummary| row.user == self.user;
        let is_allowed = match &last {
            Some(last) => is_ours(last),
            None => match self.runner.store.run(&RunId::new(&*self.id)).await {
                Ok(run) if is_ours(&run) => return Err(ConversationError::IdOfRun { run: run.run }),
                Ok(_) => false,
                Err(StoreError::NoSuchRun { .. }) => true,
                Err(error) => return Err(error.into()),
            },
        };
        if is_allowed { Ok(last) } else { Err(ConversationError::NotYours { conversation: self.id.clone() }) }
    }

    /// Returns whether another process has begun a run after `last`.
    async fn has_continued(&self, last: Option<&RunSummary>) -> Result<bool, ConversationError> {
        Ok(self.last().await?.map(|last| last.run).as_ref() != last.map(|last| &last.run))
    }

    /// Returns the id of the run after `last`.
    async fn id_after(&self, last: Option<&RunSummary>) -> Result<SignalId, StoreError> {
        let number = match last {
            None => 0,
            Some(last) => match self.number_of(&last.run) {
                Some(number) => number + 1,
                // A run that was started with an id of its own.
                None => self.runs().await?.len(),
            },
        };
        Ok(SignalId::from(format!("{}-{number}", self.id)))
    }

    fn number_of(&self, run: &RunId) -> Option<usize> {
        let number = run.as_str().strip_prefix(&*self.id)?.strip_prefix('-')?.parse().ok()?;
        (*run.as_str() == format!("{}-{number}", self.id)).then_some(number)
    }

    /// Sends a message to an open run. Returns `None` if the run ended first.
    async fn say(
        &self,
        last: &RunSummary,
        definition: &Arc<BrainDefinition>,
        opening: &UserMessage,
    ) -> Result<Option<RunHandle<Value>>, ConversationError> {
        let runner = self.runner.clone().replacing(Arc::clone(definition));
        let run = if runner.settings.submits {
            runner.open(&last.run).await?
        } else {
            match runner.resume(&last.run).await {
                Ok(run) => run,
                Err(ResumeError::Claimed { .. } | ResumeError::Quarantined { .. } | ResumeError::Over { .. }) => {
                    runner.open(&last.run).await?
                }
                Err(error) => return Err(error.into()),
            }
        };
        let id = message_signal(opening).unwrap_or_else(|| self.runner.ids.signal());
        let signal = Signal { id, ..self.signal(SignalKind::message(opening.clone())) };
        loop {
            let before = run.state().next;
            let Err(reason) = run.send(signal.clone()).await else { return Ok(Some(run)) };
            // It is working and has no open loop: once it waits or has ended, the answer is known.
            let settled = run.settled().await;
            if matches!(settled, Settled::Completed(_) | Settled::Failed(_) | Settled::Cancelled) {
                return Ok(None);
            }
            if run.state().next == before {
                return Err(ConversationError::Busy { run: last.run.clone(), reason });
            }
        }
    }

    async fn cancel(&self, last: &RunSummary, reason: &str) -> Result<(), ConversationError> {
        let reason = Some(reason.to_owned());
        let signal = self.signal(SignalKind::Cancel { reason });
        match self.runner.client().send(&last.run, signal).await {
            // It may have ended in between.
            Ok(_) | Err(SignalError::Refused(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Begins the next run with the message, the trigger or the budget of a start.
    async fn next(
        &self,
        last: Option<&RunSummary>,
        definition: &Arc<BrainDefinition>,
        options: &Value,
        start: Start,
    ) -> Result<RunHandle<Value>, ConversationError> {
        let before = match last {
            Some(last) => load::state(&*self.runner.store, &last.run).await?,
            None => RunState::default(),
        };
        let shared_budget = self.shared_budget(&before).await?;
        let taken_over = match &before.root {
            Some(root) => self.taken_over(root, definition)?,
            None => TakenOver::default(),
        };
        let start = Start {
            id: Some(self.id_after(last).await?),
            user: self.user.clone(),
            tags: self.tags.clone(),
            actor: self.actor.clone(),
            conversation: Some(self.id.clone()),
            after: last.map(|last| last.run.clone()),
            budget: start.budget.or_else(|| self.each.clone()),
            shared_budget,
            ..start
        };
        Ok(start_run(&self.runner, Arc::clone(definition), options.clone(), start, taken_over).await?)
    }

    /// Returns what the next run takes over from the last one: the state of another brain, and the brain with which it stays, are not its own.
    fn taken_over(&self, last: &BrainFrame, definition: &BrainDefinition) -> Result<TakenOver, StartError> {
        let misfit =
            |error: crate::Error| StartError::State { brain: definition.title.clone(), reason: error.to_string() };
        let max_bytes = self.runner.settings.max_document_bytes;
        let plugins = last.plugins.clone();
        if *last.title != *definition.title {
            return Ok(TakenOver { plugins, ..TakenOver::default() });
        }
        let state = caught_now(|| definition.kept(last.version, &last.state, max_bytes)).map_err(misfit)?;
        Ok(TakenOver { plugins, state, handed_over: last.handed_over.clone() })
    }

    fn signal(&self, kind: SignalKind) -> Signal {
        Signal { id: self.runner.ids.signal(), actor: self.actor.clone(), kind }
    }
}

/// Returns the id of the signal with a message that has an id: the same message is the same signal.
fn message_signal(message: &UserMessage) -> Option<SignalId> {
    message.id.as_ref().map(|id| SignalId::from(format!("message-{id}")))
}

/// Returns whether a run has got a message with the same id.
fn has_message(state: &RunState, message: &UserMessage) -> bool {
    let opening = state.start.message.as_ref().and_then(|opening| opening.id.as_ref());
    message_signal(message).is_some_and(|id| opening == message.id.as_ref() || state.signals.contains_key(&id))
}
