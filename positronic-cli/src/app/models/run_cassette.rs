//! A cassette that answers in one run, which other processes may work on in between.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::channel::oneshot;
use futures::future::{BoxFuture, Shared};
use positronic_core::model::cassette::Cassette;
use positronic_core::model::{DeltaSink, Model};
use positronic_core::record::{Epoch, EventKind, ModelError, ModelErrorKind, ModelRequest, ModelResponse, RunId, Seq};
use positronic_core::store::StoreError;
use tokio::sync::Mutex;

use crate::app::{Failure, ProjectStore, rewind};
use crate::cli::Exit;

/// A played cassette at the position of a run: it is wound on once the run is claimed, over what other workers have recorded.
pub(crate) struct RunCassette {
    cassette: Arc<Cassette>,
    /// Plays the cassette.
    model: Arc<dyn Model>,
    store: ProjectStore,
    run: Shared<oneshot::Receiver<RunId>>,
    /// The last claim of the run whose answers are accounted for.
    position: Mutex<Option<Epoch>>,
}

/// Names the run of a [`RunCassette`], whose model calls wait for it.
pub(crate) struct NameRun(Option<oneshot::Sender<RunId>>);

impl NameRun {
    pub(super) const fn without_cassette() -> Self {
        Self(None)
    }

    pub(crate) fn name(self, run: &RunId) {
        // The model calls are gone.
        _ = self.0.map(|sender| sender.send(run.clone()));
    }
}

impl RunCassette {
    pub(super) fn new(cassette: &Arc<Cassette>, model: Arc<dyn Model>, store: &ProjectStore) -> (Self, NameRun) {
        let (sender, run) = oneshot::channel();
        let (cassette, store, position) = (Arc::clone(cassette), store.clone(), Mutex::default());
        (Self { cassette, model, store, run: run.shared(), position }, NameRun(Some(sender)))
    }

    /// Returns the cassette at the run's position, for the worker `own`.
    pub(crate) async fn at_position(&self, own: &str) -> Result<&Cassette, Failure> {
        self.wind(Some(own)).await?;
        Ok(&self.cassette)
    }

    /// Winds the cassette on if another worker has claimed the run since the last call. Without a name, the worker is that of the
    /// last claim.
    async fn wind(&self, own: Option<&str>) -> Result<(), Failure> {
        let Ok(run) = self.run.clone().await else { return Ok(()) };
        let mut position = self.position.lock().await;
        let claim = match self.store.client().store().run(&run).await {
            Ok(row) => row.claim,
            Err(StoreError::NoSuchRun { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let Some(claim) = claim.filter(|claim| *position != Some(claim.epoch)) else { return Ok(()) };
        let own = own.unwrap_or(&claim.owner);
        let log = self.store.client().events(&run, Seq(0)).await?;
        let is_foreign = log.iter().any(|event| match &event.kind {
            EventKind::RunClaimed { owner, .. } => event.epoch > *position && **owner != *own,
            _ => false,
        });
        if position.is_none() || is_foreign {
            self.cassette.restart();
            rewind(&self.cassette, &self.store, &run).await?;
        }
        *position = Some(claim.epoch);
        Ok(())
    }
}

impl Model for RunCassette {
    fn name(&self) -> String {
        self.model.name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        async move {
            if let Err(failure) = self.wind(None).await {
                let kind = match failure.exit {
                    Exit::NoModel => ModelErrorKind::Unscripted,
                    _ => ModelErrorKind::Connection,
                };
                return Err(ModelError::new(
                    kind,
                    format!("cannot wind the cassette to the run's position: {failure}"),
                ));
            }
            self.model.call(request, deltas).await
        }
        .boxed()
    }

    fn inner(&self) -> Option<&dyn Model> {
        Some(&*self.model)
    }

    fn wire(&self, request: &ModelRequest) -> String {
        self.model.wire(request)
    }
}
