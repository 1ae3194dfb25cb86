//! One answer as a file. What it reads and writes is small, and for development, so it is done where it is asked for.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::private;
use crate::record::{ContentHash, ModelResponse, hash_text};

/// The version of the format.
const VERSION: u32 = 1;

/// Says why a development cache cannot be used, or one answer in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DevCacheError {
    /// The folder cannot be made.
    #[error("the folder {} of the development cache cannot be made: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("{} in the development cache cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is no whole answer to this request.
    #[error("{} in the development cache is damaged ({reason}); the model is asked again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file cannot be written.
    #[error("{} in the development cache cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

#[derive(Serialize, Deserialize)]
struct Entry {
    dev_cache: u32,
    key: String,
    model: String,
    /// The hash of the answer's JSON.
    hash: ContentHash,
    response: ModelResponse,
}

pub(super) fn make_folder(folder: &Path) -> Result<(), DevCacheError> {
    private::make_folder(folder).map_err(|source| DevCacheError::Folder { path: folder.to_owned(), source })
}

/// Reads an answer, if there is one.
pub(super) fn read(folder: &Path, key: &str) -> Result<Option<ModelResponse>, DevCacheError> {
    let path = file(folder, key);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(DevCacheError::Read { path, source }),
    };
    match understood(&bytes, key) {
        Ok(response) => Ok(Some(response)),
        Err(reason) => Err(DevCacheError::Damaged { path, reason }),
    }
}

fn understood(bytes: &[u8], key: &str) -> Result<ModelResponse, String> {
    let entry: Entry = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if entry.dev_cache != VERSION {
        return Err(format!("it has format {}, this version reads format {VERSION}", entry.dev_cache));
    }
    if entry.key != key {
        return Err("it answers another request".to_owned());
    }
    match hash_of(&entry.response) {
        Some(hash) if hash == entry.hash => Ok(entry.response),
        _ => Err("its answer is not the one that was written".to_owned()),
    }
}

/// Writes an answer aside, and gives it its name when it is whole.
pub(super) fn write(folder: &Path, key: &str, model: &str, response: &ModelResponse) -> Result<(), DevCacheError> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let path = file(folder, key);
    // Two processes, and two runs of one, can write the same answer at once.
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let aside = folder.join(format!("{key}.{}.{number}.tmp", std::process::id()));
    let written = (|| {
        let refuse = |error: serde_json::Error| io::Error::new(ErrorKind::InvalidData, error);
        let hash = hash_of(response).ok_or_else(|| io::Error::from(ErrorKind::InvalidData))?;
        let entry = Entry {
            dev_cache: VERSION,
            key: key.to_owned(),
            model: model.to_owned(),
            hash,
            response: response.clone(),
        };
        let text = serde_json::to_string(&entry).map_err(refuse)?;
        make_folder(folder).map_err(io::Error::other)?;
        let mut out = private::options().write(true).create_new(true).open(&aside)?;
        out.write_all(text.as_bytes())?;
        drop(out);
        fs::rename(&aside, &path)
    })();
    written.map_err(|source| {
        _ = fs::remove_file(&aside);
        DevCacheError::Write { path, source }
    })
}

fn file(folder: &Path, key: &str) -> PathBuf {
    folder.join(format!("{key}.json"))
}

fn hash_of(response: &ModelResponse) -> Option<ContentHash> {
    serde_json::to_string(response).ok().map(|text| hash_text(&text))
}
