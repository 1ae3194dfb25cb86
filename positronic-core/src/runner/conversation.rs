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

use super::handle::{Run, Settled};
use super::load;
use super::open::ResumeError;
use super::signals::SignalError;
use super::{Runner, StartError};
use crate::dsl::Runnable;
use crate::plan::{Plan, encode};
use crate::record::{
    Actor, Budget, Busy, Fired, Opening, PluginStates, Prompt, RunId, RunSummary, Signal, SignalId, SignalKind, Start,
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
    runner: Runner,
    id: String,
    user: Option<String>,
    actor: Actor,
    busy: Busy,
}

impl Runner {
    /// Returns the conversation with this id, which need not have begun.
    pub fn conversation(&self, id: impl Into<String>) -> Conversation {
        Conversation { runner: self.clone(), id: id.into(), user: None, actor: Actor::default(), busy: Busy::default() }
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

    /// Returns its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Says something: begins the next run with it, or says it to the run that is not over, as [`Busy`] has it.
    ///
    /// # Errors
    ///
    /// [`ConversationError`]; nothing was said then.
    pub async fn send<B: Runnable>(
        &self,
        brain: B,
        options: B::Options,
        text: impl Into<String>,
    ) -> Result<Run<B::Result>, ConversationError> {
        let opening = Opening { text: text.into(), id: None };
        let (plan, options) = erased(&brain, &options)?;
        Ok(self.send_plan(plan, options, opening).await?.typed())
    }

    /// Begins the next prompt without a message of a person, as a timer does.
    ///
    /// # Errors
    ///
    /// [`ConversationError::Open`] while the last run is not over, and what else [`Conversation::send`] answers.
    pub async fn start<B: Runnable>(&self, brain: B, options: B::Options) -> Result<Run<B::Result>, ConversationError> {
        let (plan, options) = erased(&brain, &options)?;
        Ok(self.start_plan(plan, options).await?.typed())
    }

    /// Says something to a brain without its types, with the sender's own id of the message; see [`Conversation::send`].
    ///
    /// # Errors
    ///
    /// As [`Conversation::send`].
    pub async fn send_plan(
        &self,
        plan: Arc<Plan>,
        options: Value,
        opening: Opening,
    ) -> Result<Run<Value>, ConversationError> {
        loop {
            let runs = self.own_runs().await?;
            let open = runs.first().filter(|last| !last.status.is_over());
            match (open, self.busy) {
                (Some(last), Busy::Queue) => {
                    if let Some(run) = self.say(last, &plan, &opening).await? {
                        return Ok(run);
                    }
                }
                (Some(last), Busy::Cancel) => self.cancel(last, "another message came").await?,
                (None, _) => match self.next(&runs, &plan, &options, Because::Said(opening.clone()), None).await {
                    // Another process has begun the next one.
                    Err(ConversationError::Start(StartError::Started { .. }))
                        if self.own_runs().await?.len() > runs.len() => {}
                    begun => return begun,
                },
            }
        }
    }

    /// Begins the next prompt of a brain without its types; see [`Conversation::start`].
    ///
    /// # Errors
    ///
    /// As [`Conversation::start`].
    pub async fn start_plan(&self, plan: Arc<Plan>, options: Value) -> Result<Run<Value>, ConversationError> {
        let runs = self.own_runs().await?;
        if let Some(last) = runs.first().filter(|last| !last.status.is_over()) {
            return Err(ConversationError::Open { run: last.run.clone() });
        }
        self.next(&runs, &plan, &options, Because::Nothing, None).await
    }

    /// Begins the next prompt since a trigger is due. Answers `None` while it has to wait: for the last run to end, or since
    /// somebody else has begun the next one meanwhile.
    pub(super) async fn fire(
        &self,
        plan: Arc<Plan>,
        options: Value,
        fired: Fired,
        budget: Option<Budget>,
    ) -> Result<Option<Run<Value>>, ConversationError> {
        loop {
            let runs = self.own_runs().await?;
            let open = runs.first().filter(|last| !last.status.is_over());
            match (open, self.busy) {
                (Some(_), Busy::Queue) => return Ok(None),
                (Some(last), Busy::Cancel) => self.cancel(last, "a trigger is due").await?,
                (None, _) => match self.next(&runs, &plan, &options, Because::Fired(fired), budget).await {
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
        self.runner.control().conversation(&self.id).await
    }

    /// Returns its prompts in order, those that people are not shown included.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as the store fails.
    pub async fn prompts(&self) -> Result<Vec<(RunId, Prompt)>, StoreError> {
        self.runner.control().prompts(&self.id).await
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
        plan: &Arc<Plan>,
        opening: &Opening,
    ) -> Result<Option<Run<Value>>, ConversationError> {
        let runner = self.runner.clone().plan(Arc::clone(plan));
        let run = match runner.resume(&last.run).await {
            Ok(run) => run,
            Err(ResumeError::Held { .. } | ResumeError::Over { .. }) => runner.open(&last.run).await?,
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
        match self.runner.control().send(&last.run, &[signal]).await {
            Ok(_) => Ok(()),
            // It has ended by itself.
            Err(SignalError::Refused(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn next(
        &self,
        runs: &[RunSummary],
        plan: &Arc<Plan>,
        options: &Value,
        because: Because,
        budget: Option<Budget>,
    ) -> Result<Run<Value>, ConversationError> {
        let last = runs.first();
        let (message, fired) = match because {
            Because::Said(message) => (Some(message), None),
            Because::Fired(fired) => (None, Some(fired)),
            Because::Nothing => (None, None),
        };
        let plugins = match last {
            Some(last) => load::state(&*self.runner.store, &last.run).await?.root.map(|root| root.plugins.clone()),
            None => None,
        };
        let start = Start {
            id: Some(SignalId::from(format!("{}-{}", self.id, runs.len()))),
            user: self.user.clone(),
            actor: self.actor.clone(),
            conversation: Some(self.id.clone()),
            after: last.map(|last| last.run.clone()),
            message,
            fired,
            budget,
            ..Start::default()
        };
        let plugins: PluginStates = plugins.unwrap_or_default();
        Ok(self.runner.start_keeping(Arc::clone(plan), options.clone(), start, plugins).await?)
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

fn erased<B: Runnable>(brain: &B, options: &B::Options) -> Result<(Arc<Plan>, Value), StartError> {
    let plan = brain.plan();
    let options = encode(options)
        .map_err(|error| StartError::Options { brain: plan.title.clone(), reason: error.to_string() })?;
    Ok((plan, options))
}
