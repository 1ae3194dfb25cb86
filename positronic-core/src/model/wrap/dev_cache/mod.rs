//! Answers to identical requests, kept in a folder: for development.

mod entry;

use std::fmt;
use std::path::{Path, PathBuf};

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::after;
use crate::model::plain::give_pieces;
use crate::model::{DeltaSink, Model};
use crate::record::{ModelError, ModelRequest, ModelResponse, ResponseMetadata, RoutingStep, hash_text};

pub use entry::DevCacheError;

/// Answers a request that was sent before with the answer that it got then. **For development**: whoever works on step 9 of a
/// brain need not pay for steps 1 to 8 again.
///
/// ```no_run
/// # use positronic_core::model::scripted::{Reply, ScriptedModel};
/// # let model = ScriptedModel::from_fn(|_| Reply::text("Yes."));
/// use positronic_core::model::wrap::DevCache;
///
/// let model = DevCache::new(model, ".positronic/dev-cache")?;
/// # Ok::<(), positronic_core::model::wrap::DevCacheError>(())
/// ```
///
/// Identical is what the model's name and the body that would be sent ([`Model::wire`]) say: system prompt, messages, tools, settings. Where
/// in a run it is asked makes no difference, so a loop that asks the same twice is told the same twice, whatever its temperature. Two
/// endpoints need two names.
///
/// An answer from the cache uses no tokens and costs nothing; it is marked with [`RoutingStep::Cached`], which says what it had used. Failures are
/// not kept. Each answer is a file of its own, written aside and renamed, so a crash leaves no half of one. One that cannot be read, or is damaged, is
/// as if it were not there, is said with [`RoutingStep::CacheFailed`], and is written anew. Nothing expires: delete the folder, or
/// files in it. The files hold what models said, in plain text, for their owner alone.
pub struct DevCache<M> {
    model: M,
    folder: PathBuf,
}

impl<M: Model> DevCache<M> {
    /// Makes a cache in a folder, which is made if there is none.
    ///
    /// # Errors
    ///
    /// [`DevCacheError`] when the folder cannot be made.
    pub fn new(model: M, folder: impl Into<PathBuf>) -> Result<Self, DevCacheError> {
        let folder = folder.into();
        entry::make_folder(&folder)?;
        Ok(Self { model, folder })
    }

    /// Returns the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    async fn ask(&self, request: &ModelRequest, deltas: &dyn DeltaSink) -> Result<ModelResponse, ModelError> {
        let key = self.key(request);
        let mut steps = Vec::new();
        let failed = |error: &DevCacheError| RoutingStep::CacheFailed { message: error.to_string() };
        match entry::read(&self.folder, &key) {
            Ok(Some(mut response)) => {
                give_pieces(&response, deltas);
                let usage = std::mem::take(&mut response.metadata.usage);
                response.metadata.via = vec![RoutingStep::Cached { key, usage }];
                return Ok(response);
            }
            Ok(None) => {}
            Err(error) => steps.push(failed(&error)),
        }
        let outcome = self.model.call(request, deltas).await;
        if let Ok(response) = &outcome
            && let Err(error) = entry::write(&self.folder, &key, &self.model.name(), &kept(response))
        {
            steps.push(failed(&error));
        }
        after(steps, outcome)
    }

    fn key(&self, request: &ModelRequest) -> String {
        // A name holds no line break.
        hash_text(&format!("{}\n{}", self.model.name(), self.model.wire(request))).as_str().to_owned()
    }
}

/// Returns what is kept of an answer: all but what happened on the way to it, and what it took and cost that time.
fn kept(response: &ModelResponse) -> ModelResponse {
    let metadata = ResponseMetadata { first_chunk: None, cost: None, via: Vec::new(), ..response.metadata.clone() };
    ModelResponse { metadata, ..response.clone() }
}

impl<M: Model> fmt::Debug for DevCache<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevCache").field("model", &self.model.name()).field("folder", &self.folder).finish()
    }
}

impl<M: Model> Model for DevCache<M> {
    fn name(&self) -> String {
        self.model.name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        self.ask(request, deltas).boxed()
    }

    fn inner(&self) -> Option<&dyn Model> {
        Some(&self.model)
    }

    fn wire(&self, request: &ModelRequest) -> String {
        self.model.wire(request)
    }
}
