//! The only writer to the file: on the caller's thread, or in groups on a thread of its own.
//!
//! The thread commits all waiting jobs in one transaction while the next group collects. Where a commit does not wait for
//! the disk, a run without concurrent writers is written on the caller's thread: the hop to another thread and back
//! costs more than the commit.
//!
//! The thread also polls for commits of other processes: before each group, and, while there are watchers, when idle.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use futures::channel::oneshot;
use parking_lot::Mutex;
use positronic_core::record::RunId;
use positronic_core::store::StoreError;
use positronic_core::store::Watchers;
use rusqlite::Connection;

use super::checkpointer::{self, CheckpointRequests};
use super::failure::{DbError, StoreFile, store_closed};
use super::group_commit::{Answers, Committer, GROUP, Job, Task, Tx};

/// How often the thread polls for changes of other processes, while there are watchers.
const POLL: Duration = Duration::from_millis(50);

/// A message to the thread.
enum WriterMessage {
    /// A job to write.
    Job(Box<dyn Job>),
    /// A watcher was added.
    Watched,
}

/// Sends all writes to the file.
pub(super) struct Writer {
    shared: Arc<WriterShared>,
    jobs: Sender<WriterMessage>,
    watchers: Arc<Mutex<Watchers>>,
}

/// State shared by the threads and their callers.
struct WriterShared {
    committer: Mutex<Committer>,
    /// The number of queued jobs. Callers do not overtake them.
    waiting: AtomicUsize,
}

impl Writer {
    /// Starts the writer thread and the checkpoint thread, each with its connection.
    pub(super) fn start(
        db: Connection,
        checkpoints: Connection,
        store_file: StoreFile,
    ) -> Result<(Self, JoinHandle<()>), DbError> {
        let (jobs, receiver) = channel();
        let watchers = Arc::new(Mutex::new(Watchers::default()));
        let (asks, requests) = CheckpointRequests::new();
        let committer = Mutex::new(Committer::new(db, store_file, Arc::clone(&watchers), asks)?);
        let shared = Arc::new(WriterShared { committer, waiting: AtomicUsize::new(0) });
        let weak = Arc::downgrade(&shared);
        let restart = move || {
            if let Some(shared) = weak.upgrade() {
                shared.committer.lock().checkpoint();
            }
        };
        let checkpointer = checkpointer::start(checkpoints, requests, restart)?;
        let thread =
            Thread { shared: Arc::clone(&shared), jobs: receiver, watchers: Arc::clone(&watchers), checkpointer };
        let thread = std::thread::Builder::new().name("positronic-writer".to_owned()).spawn(move || thread.work());
        let thread = thread.map_err(|error| StoreError::Failed { message: error.to_string() })?;
        Ok((Self { shared, jobs, watchers }, thread))
    }

    /// Queues a write, which the thread commits together with the others that wait.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Tx<'_>) -> Result<T, DbError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Box::new(Task::new(work, reply)))?;
        answer.await.map_err(|_| store_closed())?
    }

    /// Writes a small job on this thread if the run has no concurrent writers; else like [`write`](Self::write).
    pub(super) async fn write_here<T: Send + 'static>(
        &self,
        run: &RunId,
        work: impl FnMut(&mut Tx<'_>) -> Result<T, DbError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        if let Some(job) = self.commit_here(run, Box::new(Task::new(work, reply))) {
            self.send(job)?;
        }
        answer.await.map_err(|_| store_closed())?
    }

    /// Adds a watcher of later appends.
    pub(super) fn watch(&self, add: impl FnOnce(&mut Watchers)) {
        add(&mut self.watchers.lock());
        _ = self.jobs.send(WriterMessage::Watched);
    }

    /// Commits a job on this thread, or returns it if it would have to wait.
    fn commit_here(&self, run: &RunId, job: Box<dyn Job>) -> Option<Box<dyn Job>> {
        let committed = match self.shared.committer.try_lock() {
            Some(mut committer) if self.shared.waiting.load(Ordering::Acquire) == 0 => committer.commit_alone(run, job),
            _ => Err(job),
        };
        committed.map(Answers::send).err()
    }

    fn send(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        self.shared.waiting.fetch_add(1, Ordering::AcqRel);
        self.jobs.send(WriterMessage::Job(job)).map_err(|_| store_closed())
    }
}

struct Thread {
    shared: Arc<WriterShared>,
    jobs: Receiver<WriterMessage>,
    watchers: Arc<Mutex<Watchers>>,
    checkpointer: JoinHandle<()>,
}

impl Thread {
    fn work(self) {
        while let Some(first) = self.next() {
            let mut committer = self.shared.committer.lock();
            let mut group = vec![first];
            while group.len() < GROUP
                && let Ok(message) = self.jobs.try_recv()
            {
                if let WriterMessage::Job(job) = message {
                    group.push(job);
                }
            }
            self.shared.waiting.fetch_sub(group.len(), Ordering::AcqRel);
            let answers = committer.commit(group);
            drop(committer);
            answers.send();
        }
        self.shared.committer.lock().stop_checkpoints();
        _ = self.checkpointer.join();
        // Closing the last connection to the file checkpoints it; another process may have one open.
        self.shared.committer.lock().checkpoint();
    }

    /// Waits for a job, and polls for changes of other processes meanwhile. Returns `None` at the end.
    fn next(&self) -> Option<Box<dyn Job>> {
        loop {
            let message = if self.is_watched() {
                match self.jobs.recv_timeout(POLL) {
                    Ok(message) => message,
                    Err(RecvTimeoutError::Timeout) => {
                        self.shared.committer.lock().poll();
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => return None,
                }
            } else {
                self.jobs.recv().ok()?
            };
            if let WriterMessage::Job(job) = message {
                return Some(job);
            }
        }
    }

    fn is_watched(&self) -> bool {
        !self.watchers.lock().is_empty()
    }
}

#[cfg(test)]
mod tests;
