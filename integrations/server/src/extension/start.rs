//! What the handler of a further route does with whole runs: lists brains, starts runs and cancels them.

use std::sync::Arc;

use positronic_core::definition::BrainDefinition;
use positronic_core::record::{RunId, RunSummary, Signal, SignalId, SignalKind, Start, UserMessage};
use serde_json::Value;

use crate::api::{given_options, of_start, user_for};
use crate::auth::{Scope, may_start, secret};
use crate::problem::{Problem, ProblemType};
use crate::routes::RequestContext;

/// A run to start, outside of conversations.
#[derive(Debug, Clone, typed_builder::TypedBuilder)]
#[non_exhaustive]
pub struct NewRun {
    /// The title of its brain.
    #[builder(setter(into))]
    pub brain: String,
    /// The options; the brain's defaults by default.
    #[builder(default)]
    pub options: Option<Value>,
    /// A message for the brain's first loop.
    #[builder(default)]
    pub message: Option<String>,
}

impl RequestContext {
    /// Lists the brains whose runs the caller may start.
    ///
    /// # Errors
    ///
    /// [`ProblemType::Unauthenticated`] on a public route.
    pub fn brains(&self) -> Result<Vec<Arc<BrainDefinition>>, Problem> {
        let caller = self.caller()?;
        let mut brains = self.app.settings.brains.definitions();
        brains.retain(|brain| caller.may(Scope::Run) && may_start(&self.app.settings, caller, &brain.title).is_ok());
        Ok(brains)
    }

    /// Refuses the title of a brain that this server does not have.
    ///
    /// # Errors
    ///
    /// [`ProblemType::UnknownBrain`].
    pub fn has_brain(&self, title: &str) -> Result<(), Problem> {
        self.app.brain(title).map(drop)
    }

    /// Starts a run, as `POST /runs` does.
    ///
    /// # Errors
    ///
    /// The problems of that route: the caller lacks the scope `run` or the right to start such runs, there is no such brain, the
    /// options do not match its schema, or it has no loop for the message.
    pub async fn start(&self, new: NewRun) -> Result<RunId, Problem> {
        self.require(Scope::Run)?;
        let (app, caller) = (&self.app, self.caller()?);
        let definition = app.brain(&new.brain)?;
        may_start(&app.settings, caller, &new.brain)?;
        let runner = app.starter(&new.brain).await?;
        let given = given_options(app, &definition, new.options)?;
        let options = given.unwrap_or_else(|| app.settings.brains.default_options(&definition));
        app.read_options(&definition, &options)?;
        let (user, actor) = (user_for(caller, None)?, self.actor()?);
        let start = Start { user, actor, message: new.message.map(UserMessage::new), ..Start::default() };
        let run = runner.start_definition(definition, options, start).await.map_err(of_start)?;
        Ok(run.id().clone())
    }

    /// Cancels a run, as `POST /runs/{run}/signals` does.
    ///
    /// # Errors
    ///
    /// The caller lacks the scope `operate`, or the run has ended.
    pub async fn cancel(&self, row: &RunSummary, reason: Option<String>) -> Result<(), Problem> {
        self.require(Scope::Operate)?;
        let id = secret().map_err(|error| Problem::new(ProblemType::Internal).detail(error))?;
        let signal = Signal { id: SignalId::new(id), actor: self.actor()?, kind: SignalKind::Cancel { reason } };
        self.app.client.send(&row.run, signal).await?;
        Ok(())
    }
}
