//! The public methods of [`Runner`]; each calls the module that implements it.

use std::sync::Arc;

use serde_json::Value;

use super::client::{fork, retry};
use super::detached::{DetachedCall, PreparedCall, perform};
use super::effects::send_request::ask_once;
#[cfg(feature = "schedules")]
use super::schedules::ticks;
use super::serve::load_permits::LoadPermit;
use super::serve::{drive, triggers};
use super::start_on::Arrived;
use super::{
    Client, CodeCheck, Conversation, Delivered, DeliveryError, Driven, DueTrigger, FireError, Fork, ForkError, Release,
    ResumeError, Retried, RetryError, RunHandle, Runner, Service, StartError,
};
use super::{code_check, resume, start, start_on};
use crate::definition::{BrainDefinition, encode};
use crate::dsl::Runnable;
use crate::model::DeltaSink;
use crate::record::{Actor, ModelError, ModelRequest, ModelResponse, RunId, Seq, Settings, SignalId, Start, Timer};
use crate::store::StoreError;

impl Runner {
    /// Starts a run of a brain.
    ///
    /// The handle may be dropped: the runner continues the run, even after a wait, as long as the runner or a
    /// clone of it exists. From then on [`Runner::resume`] and [`Runner::serve`] find the brain's code.
    ///
    /// # Errors
    ///
    /// [`StartError::Options`] if the options cannot be stored or do not match their own schema,
    /// [`StartError::Action`] if the brain names an action that this runner does not have,
    /// [`StartError::Started`] if the store has another run with that id, [`StartError::Store`] if the store
    /// fails.
    pub async fn start<B: Runnable>(&self, brain: B, options: B::Options) -> Result<RunHandle<B::Result>, StartError> {
        self.start_with(brain, options, Start::default()).await
    }

    /// Starts a run of a brain and records who started it. `start.id` becomes the run's id: a second start with
    /// the same id and inputs returns the same run, which this runner then attends to as well, and to its child runs.
    ///
    /// # Errors
    ///
    /// As [`Runner::start`]; [`StartError::NoListener`] and [`StartError::Message`] if the run cannot begin with the
    /// message.
    pub async fn start_with<B: Runnable>(
        &self,
        brain: B,
        options: B::Options,
        start: Start,
    ) -> Result<RunHandle<B::Result>, StartError> {
        let (definition, options) = self.erased(&brain, &options)?;
        Ok(self.start_definition(definition, options, start).await?.typed())
    }

    /// Returns a brain and its options without their types.
    pub(super) fn erased<B: Runnable>(
        &self,
        brain: &B,
        options: &B::Options,
    ) -> Result<(Arc<BrainDefinition>, Value), StartError> {
        let definition = brain.definition();
        let options = encode(options, self.settings.max_document_bytes)
            .map_err(|error| StartError::Options { brain: definition.title.clone(), reason: error.to_string() })?;
        Ok((definition, options))
    }

    /// Starts a run of an untyped brain; its options and its result are JSON.
    ///
    /// # Errors
    ///
    /// As [`Runner::start`].
    pub async fn start_definition(
        &self,
        definition: Arc<BrainDefinition>,
        options: Value,
        start: Start,
    ) -> Result<RunHandle<Value>, StartError> {
        // Boxed, so that the futures of those who start many runs are small.
        Box::pin(start::start(self, definition, options, start, start::TakenOver::default())).await
    }

    /// Delivers a webhook to the run that waits for it, as [`Client::deliver`] does. If none waits and the webhook starts runs
    /// ([`Runner::start_on`]), it starts one. A repeated delivery finds the same run, and starts no other one for as long as the
    /// store has it. The event of a started run is number 0: [`Delivered::is_start`].
    ///
    /// # Errors
    ///
    /// [`DeliveryError`]; a retry under the same id is safe.
    pub async fn deliver(
        &self,
        id: SignalId,
        webhook: &str,
        identifier: &str,
        payload: Value,
        actor: Actor,
    ) -> Result<Delivered, DeliveryError> {
        let starts = self.code.starts.get(webhook).map(|start| &**start);
        start_on::deliver(self, starts, Arrived { id, webhook, identifier, payload, actor }).await
    }

    /// Opens a run to read it, to wait for it and to send signals. The runner does not claim it.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] if there is no such run; other variants if the store fails.
    pub async fn open(&self, run: &RunId) -> Result<RunHandle<Value>, StoreError> {
        resume::open(self, run).await
    }

    /// Claims a run that no worker has claimed, and works on it from then on. Also resumes the [child
    /// runs](crate::dsl::StepContext::start) that it has started, and theirs, if this runner knows their brains.
    ///
    /// # Errors
    ///
    /// [`ResumeError`]; the run is unchanged then, except for [`ResumeError::Store`], where the log has what
    /// could be written.
    pub async fn resume(&self, run: &RunId) -> Result<RunHandle<Value>, ResumeError> {
        let resumed = resume::resume(self, run, None, None).await?;
        resume::attend_children(self, &resumed);
        Ok(resumed)
    }

    /// Resumes a run with a permit to load it, or with this code of its brain.
    pub(super) async fn resume_with(
        &self,
        run: &RunId,
        permit: Option<LoadPermit>,
        definition: Option<Arc<BrainDefinition>>,
    ) -> Result<RunHandle<Value>, ResumeError> {
        resume::resume(self, run, permit, definition).await
    }

    /// Returns how the code differs from what a run needs ([`Runner::check_code`]).
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn changed(&self, run: &RunId) -> Result<Option<String>, StoreError> {
        let CodeCheck { brain, calls } = self.check_code(run).await?;
        Ok(brain.or(calls))
    }

    /// Compares the code with what a run needs. It finds nothing if the code matches or a migration leads to it, if the run has ended,
    /// and if this runner does not know the brain. It changes nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn check_code(&self, run: &RunId) -> Result<CodeCheck, StoreError> {
        code_check::check(self, run).await
    }

    /// Forks a run and resumes the fork; see [`Client::fork`].
    ///
    /// # Errors
    ///
    /// [`ForkError`]; after [`ForkError::Resume`] the fork exists, and another runner can resume it.
    pub async fn fork(&self, run: &RunId, at: Seq, fork: Fork) -> Result<RunHandle<Value>, ForkError> {
        fork::fork_and_resume(self, run, at, fork).await
    }

    /// Returns how the code of a run's brain differs from the code with which a fork after event `at` would have to continue.
    /// `None` if the fork can continue or has ended, and if this runner does not know the brain.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] if there is no such run; other variants if the store fails.
    pub async fn fork_difference(&self, run: &RunId, at: Seq) -> Result<Option<String>, StoreError> {
        Ok(fork::difference(self, &self.client().state_at(run, at).await?.0))
    }

    /// Returns the last event after which a fork of a run can continue with this runner's code, if the run itself
    /// cannot ([`ResumeError::Changed`]): before the open iteration, within the last step, or before the last
    /// stage up to which the code matches. `None` if it matches nowhere, as after a new version of the brain, or
    /// if this runner does not know the brain.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] if there is no such run; other variants if the store fails.
    pub async fn fork_point(&self, run: &RunId) -> Result<Option<Seq>, StoreError> {
        fork::point(self, run).await
    }

    /// Records a retry as [`Client::retry`] does, unless this runner knows the brain and its code cannot continue the run.
    ///
    /// # Errors
    ///
    /// [`RetryError`]; nothing has changed then.
    pub async fn record_retry(&self, run: &RunId, by: impl Into<Actor>) -> Result<Retried, RetryError> {
        retry::record(self, run, by.into()).await
    }

    /// Retries a run and works on it; see [`Runner::record_retry`].
    ///
    /// # Errors
    ///
    /// [`RetryError`]; after [`RetryError::Resume`] the retry is recorded, and another runner can resume the run.
    pub async fn retry(&self, run: &RunId, by: impl Into<Actor>) -> Result<RunHandle<Value>, RetryError> {
        retry::retry_and_resume(self, run, by.into()).await
    }

    /// Serves the store's runs with this runner until the result is dropped: claims every run that has work and
    /// no live worker, and starts due triggers. Logs to `tracing`; [`Server`](super::Server) yields the same as values.
    #[must_use = "dropping it stops serving"]
    pub fn serve(&self) -> Service {
        Service::start(self)
    }

    /// Releases all runs, so that other workers can claim them at once. No new work begins; work in flight is
    /// recorded if it ends within the builder's `release_grace`, and abandoned otherwise. Plugins that prepare an
    /// iteration are not waited for. From now on, neither this runner nor a clone of it starts or resumes a run.
    ///
    /// It returns when the last run is released, at the latest a second after the grace period, even if code
    /// blocks its thread or the store cannot be written. [`Release`] says which runs are released. A process that ends
    /// earlier leaves its work as a crash does.
    pub async fn release(&self) -> Release {
        self.state.registry.release(self.settings.release_grace).await
    }

    /// Starts the run of a due trigger, or of a schedule's tick. [`Runner::serve`] does this for all of them, once a
    /// second.
    ///
    /// A trigger starts one run, however many processes call this at the same time and whenever they crash: the
    /// append that begins the run also changes the timer. In a conversation it is the conversation's next run;
    /// otherwise its id consists of the trigger's id and due time.
    ///
    /// # Errors
    ///
    /// [`FireError`]; the trigger stays due, except after [`FireError::Gone`].
    pub async fn fire(&self, timer: &Timer) -> Result<RunHandle<Value>, FireError> {
        #[cfg(feature = "schedules")]
        if let Some(tick) = &timer.scheduled {
            return ticks::fire(self, timer, tick).await;
        }
        triggers::fire(self, timer).await
    }

    /// Starts the first due trigger that `chosen` accepts, as [`Runner::fire`] does. Returns `None` if none is due, or each of
    /// them waits for the last run of its conversation or for the end of its pause.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the triggers cannot be listed.
    pub async fn fire_first(&self, chosen: impl Fn(&Timer) -> bool) -> Result<Option<DueTrigger>, StoreError> {
        triggers::fire_first(self, chosen).await
    }

    /// Works on a run until it ends or waits, then releases it, and leaves it to the caller to continue it: this runner does
    /// not resume it after a wait. While another worker has claimed the run, it waits for that worker, and while the run is quarantined after
    /// crashes, for the other runs.
    ///
    /// If the future is dropped, the work goes on until the run waits.
    ///
    /// # Errors
    ///
    /// As [`Runner::resume`], except that a claimed run and one that has ended are not errors.
    pub async fn drive(&self, run: &RunId) -> Result<Driven, ResumeError> {
        drive::drive(self, run).await
    }

    /// Starts a run and works on it as [`Runner::drive`] does.
    ///
    /// # Errors
    ///
    /// As [`Runner::start`]. A worker that stops is in [`Driven::settled`].
    pub async fn start_driven(
        &self,
        definition: Arc<BrainDefinition>,
        options: Value,
        start: Start,
    ) -> Result<Driven, StartError> {
        drive::start(self, definition, options, start).await
    }

    /// Restores the tool of a detached call from the log. The runner does not claim the run. Nothing of the call has
    /// happened yet, so an executor can record that the tool is about to be called.
    ///
    /// # Errors
    ///
    /// [`ResumeError`] if the tool cannot be called now. A retry is safe.
    pub async fn prepare_call(&self, call: DetachedCall) -> Result<PreparedCall, ResumeError> {
        perform::prepare(self, call).await
    }

    /// Sends a request once to the runner's model of its tier, outside of a run: no log records it, and no other try follows a
    /// failure. It is for trying a request of a log with changes. Files of its messages are loaded from the store; those that the
    /// model makes are not stored.
    ///
    /// # Errors
    ///
    /// [`ModelError`] if the model fails, its answer is larger than [`Runner::max_document_bytes`] allows, or a file of the
    /// messages cannot be loaded.
    pub async fn ask(&self, request: &ModelRequest, deltas: &dyn DeltaSink) -> Result<ModelResponse, ModelError> {
        ask_once(self, request, deltas).await
    }

    /// Returns the model that answers a request with these settings, as `provider/model`: the one that they name of the tier's provider, else the
    /// tier's. The answers of a recording do not depend on it.
    #[must_use]
    pub fn model_name(&self, settings: &Settings) -> String {
        let model = self.model_of(settings.tier);
        let own = model.name();
        match (own.split_once('/'), &settings.model) {
            (Some((provider, _)), Some(named)) if !model.is_replay() => format!("{provider}/{named}"),
            _ => own,
        }
    }

    /// Returns the conversation with this id. It need not have begun.
    pub fn conversation(&self, id: impl Into<String>) -> Conversation {
        Conversation::of(self, id.into())
    }

    /// Returns a client of the store: lists, decisions, webhooks.
    #[must_use]
    pub fn client(&self) -> Client {
        let (store, clock, ids) = (Arc::clone(&self.store), Arc::clone(&self.clock), Arc::clone(&self.ids));
        Client::with(store, clock, ids, self.state.live.clone()).max_document_bytes(self.settings.max_document_bytes)
    }

    /// Streams the live deltas of this runner's workers to the readers of a client and its clones, as to those of
    /// [`Runner::client`]. Several runners of a process can stream to one client.
    #[must_use]
    pub fn stream_to(mut self, client: &Client) -> Self {
        Arc::make_mut(&mut self.state).live = client.live().clone();
        self
    }
}
