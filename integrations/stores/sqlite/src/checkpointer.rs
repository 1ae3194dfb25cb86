//! The thread that checkpoints the write-ahead log (WAL) into the database file.
//!
//! A checkpoint waits for the disk: about ten milliseconds, or a second on a busy disk. SQLite allows commits meanwhile,
//! so the checkpoints have their own thread and connection. What is committed during a checkpoint is left to the next
//! one, but a WAL that is never checkpointed to its end never restarts at its beginning. So when it is long, the last,
//! small part is checkpointed while the writer is locked.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use positronic_core::store::StoreError;
use rusqlite::Connection;

use super::failure::DbError;

/// How many passes a checkpoint makes at most, since the WAL grows meanwhile.
const PASSES: usize = 3;
/// At most this many new pages are not worth another pass.
const FEW: i64 = 64;
/// From how many pages on the WAL has to restart: 16 MB.
pub(super) const LONG: i64 = 8000;

/// Requests checkpoints. A request that is still queued absorbs further ones.
pub(super) struct CheckpointRequests(SyncSender<()>);

impl CheckpointRequests {
    /// Creates the channel to the thread.
    pub(super) fn new() -> (Self, Receiver<()>) {
        let (requests, receiver) = sync_channel(1);
        (Self(requests), receiver)
    }

    /// Requests a checkpoint.
    pub(super) fn ask(&self) {
        _ = self.0.try_send(());
    }
}

/// Starts the thread. It ends when all senders are dropped. `restart` checkpoints while the writer is locked.
pub(super) fn start(
    db: Connection,
    requests: Receiver<()>,
    restart: impl Fn() + Send + 'static,
) -> Result<JoinHandle<()>, DbError> {
    let thread = std::thread::Builder::new().name("positronic-checkpointer".to_owned());
    let thread = thread.spawn(move || {
        while requests.recv().is_ok() {
            checkpoint(|| passive_checkpoint(&db), &restart);
        }
    });
    thread.map_err(|error| StoreError::Failed { message: error.to_string() }.into())
}

/// Checkpoints the WAL in passes, each of which returns the WAL's length in pages, and restarts the WAL if it is long.
pub(super) fn checkpoint(mut pass: impl FnMut() -> rusqlite::Result<i64>, restart: &impl Fn()) {
    let (mut length, mut copied) = (0, i64::MIN);
    for _ in 0..PASSES {
        match pass() {
            Ok(pages) => length = pages,
            Err(error) => {
                tracing::debug!(%error, "checkpoint postponed");
                return;
            }
        }
        if length.saturating_sub(copied) <= FEW {
            break;
        }
        copied = length;
    }
    if length >= LONG {
        restart();
    }
}

/// Checkpoints as far as no reader blocks it, and returns the WAL's length in pages.
pub(super) fn passive_checkpoint(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1))
}
