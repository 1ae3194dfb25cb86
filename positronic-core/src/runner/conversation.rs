//! Conversations: runs one after the other, each with the prompts of those before as its history.
//!
//! A conversation is nothing of its own in a store. A run says in its first event which conversation it is a part of and
//! which run comes before it; its row says so, too. The messages of the runs before stand before those of each loop of its
//! brain, and its plugins begin with what they kept at the end of the run before.
//!
//! The runs of the conversation `c` are named `c-0`, `c-1` and so on, so two processes that answer at once cannot both
//! begin the next one.

use std::sync::Arc;

use serde_json::Value;

use super::handle::{RunHandle, Settled};
use super::load;
use super::open::ResumeError;
use super::signals::SignalError;
use super::{Runner, StartError};
use crate::definition::{BrainDefinition, encode};
use crate::dsl::Runnable;
use crate::machine::RunState;
use crate::record::{
    Actor, Budget, Busy, Fired, LimitKind, Opening, PluginStates, Prompt, RunId, RunSummary, Signal, SignalId,
    SignalKind, Start,
};
use crate::store::StoreError;

/// Says why a message was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConversationError {
    /// The conversation belongs to somebody else.
    #[error("the conversation `{conversation}` belongs to another user")]
    NotYours {
        /// The conversation.
        conversation: String,
    },
    /// The last run is not over and has no loop that a message could be said to.
    #[error("the run `{run}` is not over, and takes no message now: {reason}; wait for it, or cancel it")]
    Busy {
        /// The run.
        run: RunId,
        /// What does not take it.
        reason: SignalError,
    },
    /// The last run is not over, and nothing is said that it could take.
    #[error("the run `{run}` is not over; wait for it, or cancel it")]
    Open {
        /// The run.
        run: RunId,
    },
    /// The conversation has used up its budget.
    #[error(
        "the conversation `{conversation}` has used up its budget of {}: {} of {}; give it a larger one",
        kind.noun(), kind.amount(*used, currency.as_deref()), kind.amount(*limit, currency.as_deref())
    )]
    Spent {
        /// The conversation.
        conversation: String,
        /// What is used up.
        kind: LimitKind,
        /// How much it may use: iterations, tokens, billionths of money, microseconds.
        limit: u64,
        /// How much it has used, in the same unit.
        used: u64,
        /// The currency in which money counts, where it is known.
        currency: Option<String>,
    },
    /// The conversation has a budget of money, and what it has cost cannot be told.
    #[error("the conversation `{conversation}` has a budget of money: {what}")]
    Prices {
        /// The conversation.
        conversation: String,
        /// What is wrong.
        what: String,
    },
    /// The run did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The open run cannot be gone on with here.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// The run could not be cancelled.
    #[error(transparent)]
    Signal(#[from] SignalError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// One conversation: a user, and prompts in order.
///
/// ```no_run
/// # use positronic_core::model::Model;
/// # async fn example(model: impl Model) -> Result<(), Box<dyn std::error::Error>> {
/// use positronic_core::prelude::*;
/// use positronic_core::runner::Runner;
///
/// let helper = brain("Helper").r#loop("Chat", |cx| cx.system("You are helpful."));
/// let runner = Runner::builder().model(model).build();
/// let chat = runner.conversation("ann-1").user("ann");
/// chat.send(&helper, (), "What is the weather in Bern?").await?.result().await?;
/// chat.send(&helper, (), "And tomorrow?").await?.result().await?;
/// assert_eq!(chat.prompts().await?.len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Conversation {
    pub(super) runner: Runner,
    pub(super) id: String,
    user: Option<String>,
    actor: Actor,
    busy: Busy,
    pub(super) budget: Option<Budget>,
    each: Option<Budget>,
}

impl Runner {
    /// Returns the conversation with this id, which need not have begun.
    pub fn conversation(&self, id: impl Into<String>) -> Conversation {
        let (actor, busy) = (Actor::default(), Busy::default());
        Conversation { runner: self.clone(), id: id.into(), user: None, actor, busy, budget: None, each: None }
    }
}

impl Conversation {
    /// Says whom the conversation belongs to.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Says who sends its messages, and over which channel.
    #[must_use]
    pub fn actor(mut self, actor: Actor) -> Self {
        self.actor = actor;
        self
    }

    /// Sets what a message does while the last run is not over.
    #[must_use]
    pub const fn busy(mut self, busy: Busy) -> Self {
        self.busy = busy;
        self
    }

    /// Sets what all its prompts may use together, from the next one on: it is recorded with each, and goes on in every
    /// process until another one is set. What earlier prompts have used counts, whenever it is set; but for active time,
    /// which is counted where it is limited.
    ///
    /// It stands beside what a prompt's brain may use: whichever is used up first binds, a person's grant lifts that one
    /// alone, and each has its own [`Budget::on_limit`] and [`Budget::ask_for_more`]. Once this one is used up, the prompt
    /// ends as by any budget, and the next one does not begin ([`ConversationError::Spent`]); where it asks for more, it
    /// begins and a person is asked. What is granted to it and not used is there for later prompts. Prompts whose runs were
    /// pruned do not count. An answer that had no price when it came is reckoned by the prices that the runner has when money
    /// is limited; while there is none, no prompt begins ([`ConversationError::Prices`]). A fork keeps what was left when its
    /// prompt began as a limit of its own, and is not counted.
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

    /// Sets what each prompt that begins here may use by itself, as a run's own budget does: it goes before that of the brain. What
    /// is beyond it ends the prompt, and the next one begins with as much again.
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

    /// Says something: begins the next run with it, or says it to the run that is not over, as [`Busy`] has it.
    ///
    /// # Errors
    ///
    /// [`ConversationError`]; nothing was said then, and with [`Busy::Cancel`] nothing is cancelled for a message that the
    /// budget refuses.
    pub async fn send<B: Runnable>(
        &self,
        brain: B,
        options: B::Options,
        text: impl Into<String>,
    ) -> Result<RunHandle<B::Result>, ConversationError> {
        let opening = Opening { text: text.into(), id: None };
        let (definition, options) = erased(&brain, &options)?;
        Ok(self.send_plan(definition, options, opening).await?.typed())
    }

    /// Begins the next prompt without a message of a person, as a timer does.
    ///
    /// # Errors
    ///
    /// [`ConversationError::Open`] while the last run is not over, and what else [`Conversation::send`] answers.
    pub async fn start<B: Runnable>(
        &self,
        brain: B,
        options: B::Options,
    ) -> Result<RunHandle<B::Result>, ConversationError> {
        let (definition, options) = erased(&brain, &options)?;
        Ok(self.start_definition(definition, options).await?.typed())
    }

    /// Says something to a brain without its types, with the sender's own id of the message; see [`Conversation::send`].
    ///
    /// # Errors
    ///
    /// As [`Conversation::send`].
    pub async fn send_plan(
        &self,
        definition: Arc<BrainDefinition>,
        options: Value,
        opening: Opening,
    ) -> Result<RunHandle<Value>, ConversationError> {
        loop {
            let runs = self.own_runs().await?;
            let open = runs.first().filter(|last| !last.status.is_over());
            match (open, self.busy) {
                (Some(last), Busy::Queue) => {
                    if let Some(run) = self.say(last, &definition, &opening).await? {
                        return Ok(run);
                    }
                }
                (Some(last), Busy::Cancel) => {
                    self.may_begin(&runs).await?;
                    self.cancel(last, "another message came").await?;
                }
                (None, _) => {
                    match self.next(&runs, &definition, &options, Because::Said(opening.clone()), None).await {
                        // Another process has begun the next one.
                        Err(ConversationError::Start(StartError::Started { .. }))
                            if self.own_runs().await?.len() > runs.len() => {}
                        begun => return begun,
                    }
                }
            }
        }
    }

    /// Begins the next prompt of a brain without its types; see [`Conversation::start`].
    ///
    /// # Errors
    ///
    /// As [`Conversation::start`].
    pub async fn start_definition(
        &self,
        definition: Arc<BrainDefinition>,
        options: Value,
    ) -> Result<RunHandle<Value>, ConversationError> {
        let runs = self.own_runs().await?;
        if let Some(last) = runs.first().filter(|last| !last.status.is_over()) {
            return Err(ConversationError::Open { run: last.run.clone() });
        }
        self.next(&runs, &definition, &options, Because::Nothing, None).await
    }

    /// Begins the next prompt since a trigger is due. Answers `None` while it has to wait: for the last run to end, or since
    /// somebody else has begun the next one meanwhile.
    pub(super) async fn fire(
        &self,
        definition: Arc<BrainDefinition>,
        options: Value,
        fired: Fired,
        budget: Option<Budget>,
    ) -> Result<Option<RunHandle<Value>>, ConversationError> {
        loop {
            let runs = self.own_runs().await?;
            let open = runs.first().filter(|last| !last.status.is_over());
            match (open, self.busy) {
                (Some(_), Busy::Queue) => return Ok(None),
                (Some(last), Busy::Cancel) => {
                    self.may_begin(&runs).await?;
                    self.cancel(last, "a trigger is due").await?;
                }
                (None, _) => match self.next(&runs, &definition, &options, Because::Fired(fired), budget).await {
                    Err(ConversationError::Start(StartError::Started { .. }))
                        if self.own_runs().await?.len() > runs.len() =>
                    {
                        return Ok(None);
                    }
                    begun => return begun.map(Some),
                },
            }
        }
    }

    /// Lists its runs, the last one first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as the store fails.
    pub async fn runs(&self) -> Result<Vec<RunSummary>, StoreError> {
        self.runner.client().conversation(&self.id).await
    }

    /// Returns its prompts in order, those that people are not shown included.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as the store fails.
    pub async fn prompts(&self) -> Result<Vec<(RunId, Prompt)>, StoreError> {
        self.runner.client().prompts(&self.id).await
    }

    async fn own_runs(&self) -> Result<Vec<RunSummary>, ConversationError> {
        let runs = self.runs().await?;
        if runs.iter().any(|run| run.user != self.user) {
            return Err(ConversationError::NotYours { conversation: self.id.clone() });
        }
        Ok(runs)
    }

    /// Says something to a run that is not over. Answers `None` when it has ended without having taken it.
    async fn say(
        &self,
        last: &RunSummary,
        definition: &Arc<BrainDefinition>,
        opening: &Opening,
    ) -> Result<Option<RunHandle<Value>>, ConversationError> {
        let runner = self.runner.clone().definition(Arc::clone(definition));
        let run = match runner.resume(&last.run).await {
            Ok(run) => run,
            Err(ResumeError::Claimed { .. } | ResumeError::Over { .. }) => runner.open(&last.run).await?,
            Err(error) => return Err(error.into()),
        };
        let Opening { text, id } = opening.clone();
        let signal = self.signal(SignalKind::Message { to: None, text, message_id: id });
        loop {
            let before = run.state().next;
            let Err(reason) = run.send(signal.clone()).await else { return Ok(Some(run)) };
            // It works, and has no open loop now: whether it takes the message is known when it waits, or has ended.
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
        match self.runner.client().send(&last.run, &[signal]).await {
            Ok(_) => Ok(()),
            // It has ended by itself.
            Err(SignalError::Refused(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn next(
        &self,
        runs: &[RunSummary],
        definition: &Arc<BrainDefinition>,
        options: &Value,
        because: Because,
        budget: Option<Budget>,
    ) -> Result<RunHandle<Value>, ConversationError> {
        let last = runs.first();
        let (message, fired) = match because {
            Because::Said(message) => (Some(message), None),
            Because::Fired(fired) => (None, Some(fired)),
            Because::Nothing => (None, None),
        };
        let before = match last {
            Some(last) => load::state(&*self.runner.store, &last.run).await?,
            None => RunState::default(),
        };
        let shared_budget = self.shared_budget(runs, &before).await?;
        let plugins = before.root.map(|root| root.plugins.clone());
        let start = Start {
            id: Some(SignalId::from(format!("{}-{}", self.id, runs.len()))),
            user: self.user.clone(),
            actor: self.actor.clone(),
            conversation: Some(self.id.clone()),
            after: last.map(|last| last.run.clone()),
            message,
            fired,
            // A trigger brings that of the prompt which has set it.
            budget: budget.or_else(|| self.each.clone()),
            shared_budget,
            ..Start::default()
        };
        let plugins: PluginStates = plugins.unwrap_or_default();
        Ok(self.runner.start_keeping(Arc::clone(definition), options.clone(), start, plugins).await?)
    }

    fn signal(&self, kind: SignalKind) -> Signal {
        Signal { id: self.runner.ids.signal(), actor: self.actor.clone(), kind }
    }
}

/// Why the next prompt begins.
enum Because {
    /// Somebody said something.
    Said(Opening),
    /// A trigger is due.
    Fired(Fired),
    /// The system begins it.
    Nothing,
}

fn erased<B: Runnable>(brain: &B, options: &B::Options) -> Result<(Arc<BrainDefinition>, Value), StartError> {
    let definition = brain.definition();
    let options = encode(options)
        .map_err(|error| StartError::Options { brain: definition.title.clone(), reason: error.to_string() })?;
    Ok((definition, options))
}
