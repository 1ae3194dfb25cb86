//! Development cache of answers to identical requests.

mod entry;

use std::path::{Path, PathBuf};

use super::{after, wraps};
use crate::model::plain::emit_pieces;
use crate::model::{DeltaSink, Model};
use crate::record::{ModelError, ModelRequest, ModelResponse, ResponseMetadata, RoutingStep, hash_text};

pub use entry::DevCacheError;

/// Answers a repeated request from a cache. **For development**: while you work on step 9 of a brain, you need not pay for
/// steps 1 to 8 again.
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
/// Requests are identical if the model's name and the body ([`Model::wire`]) are: system prompt, messages, tools, settings. The
/// position in a run does not matter, so a loop that repeats a request gets the same answer, whatever its temperature. Two
/// endpoints need different names.
///
/// A cached answer uses no tokens and costs nothing; it is marked with [`RoutingStep::Cached`], which states the original usage.
/// Failures are not cached. Each answer is written to a temporary file and renamed, so a crash leaves no partial file. An
/// unreadable or damaged file is reported with [`RoutingStep::CacheFailed`] and replaced. Nothing expires: delete the folder or
/// files in it. The files contain answers in plain text and are readable only by their owner.
pub struct DevCache<M> {
    model: M,
    folder: PathBuf,
}

impl<M: Model> DevCache<M> {
    /// Creates a cache in a folder, and the folder if it does not exist.
    ///
    /// # Errors
    ///
    /// [`DevCacheError`] when the folder cannot be created.
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
                emit_pieces(&response, deltas);
                let usage = std::mem::take(&mut response.metadata.usage);
                response.metadata.via = vec![RoutingStep::Cached { key, usage }];
                return Ok(response);
            }
            Ok(None) => {}
            Err(error) => steps.push(failed(&error)),
        }
        let outcome = self.model.call(request, deltas).await;
        // A file that the model made is stored with the run that asked, and not here.
        if let Ok(response) = &outcome
            && response.files().next().is_none()
            && let Err(error) = entry::write(&self.folder, &key, &self.model.name(), &cacheable(response))
        {
            steps.push(failed(&error));
        }
        after(steps, outcome)
    }

    fn key(&self, request: &ModelRequest) -> String {
        // A name contains no line break.
        hash_text(&format!("{}\n{}", self.model.name(), self.model.wire(request))).as_str().to_owned()
    }
}

/// Returns the cacheable part of an answer: without its routing, timing and cost.
fn cacheable(response: &ModelResponse) -> ModelResponse {
    let metadata = ResponseMetadata { first_chunk: None, cost: None, via: Vec::new(), ..response.metadata.clone() };
    ModelResponse { metadata, ..response.clone() }
}

wraps!(DevCache, folder: folder);
