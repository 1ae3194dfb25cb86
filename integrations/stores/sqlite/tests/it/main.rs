//! The embedded store: the suite of all stores, and its own specifics.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails as the test does"
)]

mod backup;
mod closing;
mod disk_space;
mod format;
mod groups;
#[cfg(unix)]
mod permissions;
mod processes;
mod refusals;
mod suite;
mod torn;

use std::path::Path;

use positronic_core::record::{RunId, Seq};
use positronic_core::store::prelude::*;
use positronic_sqlite::{Durability, SqliteOptions, SqliteStore};

/// Opens a store that does not wait for the disk.
fn quick(path: &Path) -> SqliteStore {
    SqliteStore::with(SqliteOptions::builder().path(path).durability(Durability::ProcessCrash).build()).unwrap()
}

/// Reads a run's log as lines.
async fn lines(store: &SqliteStore, run: &RunId) -> Vec<String> {
    let events = store.read(run, Seq(0), usize::MAX).await.unwrap();
    events.iter().map(|event| event.to_json().unwrap()).collect()
}

/// Returns a file's name with something after it.
fn beside(path: &Path, ending: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
