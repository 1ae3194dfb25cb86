//! The runners of `positronic work`: one per brain, or per run while a cassette answers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use positronic_core::record::{ClaimRefusal, RunSummary, Timer, sha256};
use positronic_core::runner::{Client, FindRunner, NoRunner, Runner};

use super::served_brains::Served;
use crate::app::{
    CassetteSession, Failure, Models, NO_ANSWER_LEFT, Project, ProjectStore, Settings, has_answers_left,
    models_for_run, rewind,
};
use crate::cli::{Exit, ModelArgs};

/// Finds the runner with the models of a brain.
pub(super) struct Runners<'a> {
    project: &'a Project,
    model: &'a ModelArgs,
    store: &'a ProjectStore,
    settings: Settings,
    /// Streams the deltas of the runners.
    client: Client,
    served: Served,
    /// Changes each runner.
    change: Box<dyn Fn(Runner) -> Runner + Send + Sync>,
    /// The runners by the titles of their brains. A cassette plays for one run, so its runners are not shared.
    runners: Mutex<HashMap<String, Runner>>,
}

impl<'a> Runners<'a> {
    pub(super) fn new(project: &'a Project, model: &'a ModelArgs, store: &'a ProjectStore, settings: Settings) -> Self {
        let client = store.client();
        let (served, change) = (Served::default(), Box::new(std::convert::identity));
        Self { project, model, store, settings, client, served, change, runners: Mutex::default() }
    }

    /// Limits the brains whose runs get a runner.
    pub(super) fn serving(self, served: Served) -> Self {
        Self { served, ..self }
    }

    /// Streams the deltas of the runners to the readers of a client.
    #[cfg(feature = "serve")]
    pub(super) fn streaming_to(self, client: Client) -> Self {
        Self { client, ..self }
    }

    /// Changes each runner, for instance to add a sink.
    #[cfg(feature = "serve")]
    pub(super) fn each(self, change: impl Fn(Runner) -> Runner + Send + Sync + 'static) -> Self {
        Self { change: Box::new(change), ..self }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Runner>> {
        self.runners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, brain: &str) -> Option<Runner> {
        self.all().get(brain).cloned()
    }

    fn models(&self, brain: &str) -> Result<Models, Failure> {
        models_for_run(self.project, self.model, brain, &self.settings)
    }

    /// Checks the models or the cassette that the command line names, before runs are started with them: those of one brain have
    /// to be usable.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let ModelArgs { model, high_model, cassette, .. } = self.model;
        if model.is_none() && high_model.is_none() && cassette.is_none() {
            return Ok(());
        }
        let brains = self.project.brains.iter();
        let checked: Vec<_> = brains.map(|entry| self.models(&entry.definition.title).map(drop)).collect();
        if checked.iter().any(Result::is_ok) {
            return Ok(());
        }
        checked.into_iter().next().unwrap_or(Ok(()))
    }

    fn runner(&self, models: &Models, brain: &str) -> Runner {
        let runner = (self.change)(models.runner(self.project, self.store).stream_to(&self.client));
        if matches!(models.cassette, CassetteSession::None) {
            self.all().insert(brain.to_owned(), runner.clone());
        }
        runner
    }

    async fn find(&self, row: &RunSummary) -> Result<Runner, NoRunner> {
        self.served.check(&row.brain, Some(row.version))?;
        if let Some(runner) = self.known(&row.brain) {
            return Ok(runner);
        }
        self.project.titled(&row.brain).map_err(|failure| none(&failure, Some(ClaimRefusal::NoBrain)))?;
        let mut models = self.models(&row.brain).map_err(|failure| none(&failure, Some(ClaimRefusal::NoModel)))?;
        models.can_continue(self.store, &row.run).await.map_err(|failure| {
            let refusal = (failure.exit == Exit::NoModel).then_some(ClaimRefusal::NoModel);
            none(&failure, refusal)
        })?;
        let (_, name_run) = models.in_one_run(self.store);
        name_run.name(&row.run);
        Ok(self.runner(&models, &row.brain))
    }

    async fn find_for(&self, timer: &Timer) -> Result<Runner, NoRunner> {
        // Another worker may serve it, so this refusal says nothing about the schedule or the trigger.
        self.served.check(&timer.brain, None).map_err(|none| NoRunner { refusal: None, ..none })?;
        if let Some(runner) = self.known(&timer.brain) {
            return Ok(runner);
        }
        self.project.titled(&timer.brain).map_err(|failure| none(&failure, Some(ClaimRefusal::NoBrain)))?;
        let models = self.models(&timer.brain).map_err(|failure| none(&failure, None))?;
        if !self.has_answers(&models, timer).await.map_err(|failure| none(&failure, None))? {
            return Err(NoRunner { message: NO_ANSWER_LEFT.to_owned(), refusal: None });
        }
        Ok(self.runner(&models, &timer.brain))
    }

    /// Advances a cassette to the position of a timer's conversation, and returns whether it has answers left. A schedule's run
    /// outside of a conversation starts from the beginning, as a cassette does, but a trigger's run continues what the model
    /// has done before, which a cassette cannot answer.
    async fn has_answers(&self, models: &Models, timer: &Timer) -> Result<bool, Failure> {
        let CassetteSession::Plays(cassette) = &models.cassette else { return Ok(true) };
        let is_schedule = timer.scheduled.is_some();
        let Some(conversation) = &timer.conversation else { return Ok(is_schedule) };
        let rows = self.store.client().conversations().runs(conversation).await?;
        let Some(last) = rows.first() else { return Ok(is_schedule) };
        rewind(cassette, self.store, &last.run).await?;
        Ok(has_answers_left(cassette))
    }
}

fn none(failure: &Failure, refusal: Option<ClaimRefusal>) -> NoRunner {
    NoRunner { message: failure.to_string(), refusal }
}

impl FindRunner for Runners<'_> {
    fn for_run<'a>(&'a self, run: &'a RunSummary) -> BoxFuture<'a, Result<Runner, NoRunner>> {
        Box::pin(self.find(run))
    }

    fn for_trigger<'a>(&'a self, timer: &'a Timer) -> BoxFuture<'a, Result<Runner, NoRunner>> {
        Box::pin(self.find_for(timer))
    }

    /// Returns a hash of the brains and of `--brain`.
    fn code(&self) -> Option<String> {
        let brains = self.project.brains.iter().map(|entry| &entry.definition);
        let mut parts: Vec<_> = brains.map(|brain| format!("{} {}", brain.title, brain.fingerprint())).collect();
        parts.sort();
        parts.push(format!("{:?}", self.served));
        Some(sha256(parts.join("\n").as_bytes()))
    }
}
