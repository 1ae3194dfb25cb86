//! The thread that copies the log of commits into the file, beside those who write.
//!
//! A copy waits for the disk, for some ten milliseconds, and for a second where others keep the disk busy. SQLite lets
//! others commit meanwhile, so a copy has a thread and a connection of its own. What they commit in that time is left
//! for the next copy, and a log that is never copied to its end never begins anew: once it is long, the rest of it is
//! copied while nobody writes. By then that is little.

use std::sync::Weak;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::failure::Trouble;
use super::writer::Desk;
use crate::store::StoreError;

/// How often the log is copied in a row at most, since it grows meanwhile, and how many pages are not worth another copy.
const PASSES: usize = 3;
const FEW: i64 = 64;
/// From how many pages on the log has to begin anew: 16 MB.
pub(super) const LONG: i64 = 8000;

/// The way to ask for a copy. One that is asked for already is not asked for twice.
pub(super) struct Copies(SyncSender<()>);

impl Copies {
    /// Makes the way to a thread that is yet to start.
    pub(super) fn new() -> (Self, Receiver<()>) {
        let (asked, receiver) = sync_channel(1);
        (Self(asked), receiver)
    }

    /// Asks for a copy soon.
    pub(super) fn ask(&self) {
        _ = self.0.try_send(());
    }
}

/// Starts the thread. It ends when nobody can ask any more.
pub(super) fn start(db: Connection, asked: Receiver<()>, desk: Weak<Desk>) -> Result<JoinHandle<()>, Trouble> {
    let thread = std::thread::Builder::new().name("positronic-copier".to_owned());
    let thread = thread.spawn(move || {
        while asked.recv().is_ok() {
            copy(|| pass(&db), &desk);
        }
    });
    thread.map_err(|error| StoreError::Failed { message: error.to_string() }.into())
}

/// Copies the log pass by pass, each of which says how many pages the log has, and lets it begin anew where it is long.
pub(super) fn copy(mut pass: impl FnMut() -> rusqlite::Result<i64>, desk: &Weak<Desk>) {
    let (mut length, mut copied) = (0, i64::MIN);
    for _ in 0..PASSES {
        match pass() {
            Ok(pages) => length = pages,
            Err(error) => {
                tracing::debug!(%error, "the log of commits is copied later");
                return;
            }
        }
        if length.saturating_sub(copied) <= FEW {
            break;
        }
        copied = length;
    }
    if length >= LONG
        && let Some(desk) = desk.upgrade()
    {
        desk.committer().copy();
    }
}

/// Copies what is in the log by now as far as nobody reads what is in its way, and says how many pages the log has.
pub(super) fn pass(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1))
}
