//! Development cache of answers to identical requests: a file for each answer. Files are small and only for development, so I/O is
//! blocking.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::{after, wraps};
use crate::model::plain::emit_pieces;
use crate::model::{DeltaSink, Model};
use crate::private;
use crate::record::{ContentHash, ModelError, ModelRequest, ModelResponse, ResponseMetadata, RoutingStep, hash_text};

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
        make_folder(&folder)?;
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
        match read(&self.folder, &key) {
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
            && let Err(error) = write(&self.folder, &key, &self.model.name(), &cacheable(response))
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

/// The version of the format.
const VERSION: u32 = 1;

/// The reason why a development cache or one of its answers cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DevCacheError {
    /// The folder cannot be created.
    #[error("cannot create the folder {} of the development cache: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("cannot read {} in the development cache: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file is not a complete answer to this request.
    #[error("{} in the development cache is damaged ({reason}); asking the model again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A file cannot be written.
    #[error("cannot write {} in the development cache: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

#[derive(Serialize, Deserialize)]
struct CachedAnswer {
    dev_cache: u32,
    key: String,
    model: String,
    /// The hash of the answer's JSON.
    hash: ContentHash,
    response: ModelResponse,
}

fn make_folder(folder: &Path) -> Result<(), DevCacheError> {
    private::make_folder(folder).map_err(|source| DevCacheError::Folder { path: folder.to_owned(), source })
}

/// Reads an answer if it exists.
fn read(folder: &Path, key: &str) -> Result<Option<ModelResponse>, DevCacheError> {
    let path = file(folder, key);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(DevCacheError::Read { path, source }),
    };
    match decode(&bytes, key) {
        Ok(response) => Ok(Some(response)),
        Err(reason) => Err(DevCacheError::Damaged { path, reason }),
    }
}

fn decode(bytes: &[u8], key: &str) -> Result<ModelResponse, String> {
    let entry: CachedAnswer = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if entry.dev_cache != VERSION {
        return Err(format!("unsupported format {}; this version reads format {VERSION}", entry.dev_cache));
    }
    if entry.key != key {
        return Err("it belongs to another request".to_owned());
    }
    match hash_of(&entry.response) {
        Some(hash) if hash == entry.hash => Ok(entry.response),
        _ => Err("its hash does not match its answer".to_owned()),
    }
}

/// Writes an answer to a temporary file, and renames it when it is complete.
fn write(folder: &Path, key: &str, model: &str, response: &ModelResponse) -> Result<(), DevCacheError> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let path = file(folder, key);
    // Several processes, and several runs of one, may write the same answer at once.
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!("{key}.{}.{number}.tmp", std::process::id()));
    let written = (|| {
        let refuse = |error: serde_json::Error| io::Error::new(ErrorKind::InvalidData, error);
        let hash = hash_of(response).ok_or_else(|| io::Error::from(ErrorKind::InvalidData))?;
        let entry = CachedAnswer {
            dev_cache: VERSION,
            key: key.to_owned(),
            model: model.to_owned(),
            hash,
            response: response.clone(),
        };
        let text = serde_json::to_string(&entry).map_err(refuse)?;
        make_folder(folder).map_err(io::Error::other)?;
        let mut out = private::options().write(true).create_new(true).open(&temporary)?;
        out.write_all(text.as_bytes())?;
        drop(out);
        fs::rename(&temporary, &path)
    })();
    written.map_err(|source| {
        _ = fs::remove_file(&temporary);
        DevCacheError::Write { path, source }
    })
}

fn file(folder: &Path, key: &str) -> PathBuf {
    folder.join(format!("{key}.json"))
}

fn hash_of(response: &ModelResponse) -> Option<ContentHash> {
    serde_json::to_string(response).ok().map(|text| hash_text(&text))
}
