//! The way to the file for all that is written: at once on the caller's thread, or in company on a thread of its own.
//!
//! The thread takes all jobs that wait into one transaction, and by the time it is committed, the next group has come
//! together. A job that comes alone is committed at once. Where a commit does not wait for the disk, a run that nobody
//! else writes beside is written to on its caller's thread: the way to another thread and back costs more than the commit.
//!
//! The thread also notices what other processes have committed: before each group, and while somebody watches also when
//! there is nothing to do.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use futures::channel::oneshot;
use rusqlite::Connection;

use super::copier::{self, Copies};
use super::failure::{Place, Trouble, ended};
use super::group::{Answers, Committer, Job, Task, Unit};
use crate::record::RunId;
use crate::store::StoreError;
use crate::store::watchers::Watchers;

/// How many jobs are committed at once.
const GROUP: usize = 512;
/// How often the file is asked whether another process has written, while somebody watches.
const LOOK: Duration = Duration::from_millis(50);

/// What the thread is sent.
enum Message {
    /// Something to write.
    Job(Box<dyn Job>),
    /// Somebody watches from now on.
    Watched,
}

/// The way to the file for all that is written.
pub(super) struct Writer {
    desk: Arc<Desk>,
    jobs: Sender<Message>,
    watchers: Arc<Mutex<Watchers>>,
}

/// What the threads and their callers share.
pub(super) struct Desk {
    committer: Mutex<Committer>,
    /// How many jobs the thread has yet to take. While there are any, nobody overtakes them.
    waiting: AtomicUsize,
}

impl Desk {
    pub(super) fn committer(&self) -> MutexGuard<'_, Committer> {
        self.committer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// Starts the thread that writes, with a connection to write by, and the one that copies, with one of its own.
    pub(super) fn start(db: Connection, copies: Connection, place: Place) -> Result<(Self, JoinHandle<()>), Trouble> {
        let (jobs, receiver) = channel();
        let watchers = Arc::new(Mutex::new(Watchers::default()));
        let (asks, asked) = Copies::new();
        let committer = Mutex::new(Committer::new(db, place, Arc::clone(&watchers), asks)?);
        let desk = Arc::new(Desk { committer, waiting: AtomicUsize::new(0) });
        let copier = copier::start(copies, asked, Arc::downgrade(&desk))?;
        let thread = Thread { desk: Arc::clone(&desk), jobs: receiver, watchers: Arc::clone(&watchers), copier };
        let thread = std::thread::Builder::new().name("positronic-writer".to_owned()).spawn(move || thread.work());
        let thread = thread.map_err(|error| StoreError::Failed { message: error.to_string() })?;
        Ok((Self { desk, jobs, watchers }, thread))
    }

    /// Has something written by the thread, together with whatever else waits to be.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Unit<'_>) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Box::new(Task::new(work, reply)))?;
        answer.await.map_err(|_| ended())?
    }

    /// Has something small written to a run: here and now where the run is alone, else as [`write`](Self::write) does.
    pub(super) async fn write_here<T: Send + 'static>(
        &self,
        run: &RunId,
        work: impl FnMut(&mut Unit<'_>) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        if let Some(job) = self.commit_here(run, Box::new(Task::new(work, reply))) {
            self.send(job)?;
        }
        answer.await.map_err(|_| ended())?
    }

    /// Tells a watcher of appends from now on.
    pub(super) fn watch(&self, add: impl FnOnce(&mut Watchers)) {
        add(&mut self.watchers.lock().unwrap_or_else(PoisonError::into_inner));
        _ = self.jobs.send(Message::Watched);
    }

    /// Commits a job on this thread, or gives it back where it would have to wait.
    fn commit_here(&self, run: &RunId, job: Box<dyn Job>) -> Option<Box<dyn Job>> {
        let committed = match self.desk.committer.try_lock() {
            Ok(mut committer) if self.desk.waiting.load(Ordering::Acquire) == 0 => committer.commit_alone(run, job),
            _ => Err(job),
        };
        committed.map(Answers::send).err()
    }

    fn send(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        self.desk.waiting.fetch_add(1, Ordering::AcqRel);
        self.jobs.send(Message::Job(job)).map_err(|_| ended())
    }
}

struct Thread {
    desk: Arc<Desk>,
    jobs: Receiver<Message>,
    watchers: Arc<Mutex<Watchers>>,
    copier: JoinHandle<()>,
}

impl Thread {
    fn work(self) {
        while let Some(first) = self.next() {
            let mut committer = self.desk.committer();
            let mut group = vec![first];
            while group.len() < GROUP
                && let Ok(message) = self.jobs.try_recv()
            {
                if let Message::Job(job) = message {
                    group.push(job);
                }
            }
            self.desk.waiting.fetch_sub(group.len(), Ordering::AcqRel);
            let answers = committer.commit(group);
            drop(committer);
            answers.send();
        }
        self.desk.committer().ends_copies();
        _ = self.copier.join();
        // Closing the last connection to the file checkpoints it; another one may be open elsewhere.
        self.desk.committer().copy();
    }

    /// Waits for a job, and tells of what others write meanwhile. `None` at the end.
    fn next(&self) -> Option<Box<dyn Job>> {
        loop {
            let message = if self.is_watched() {
                match self.jobs.recv_timeout(LOOK) {
                    Ok(message) => message,
                    Err(RecvTimeoutError::Timeout) => {
                        self.desk.committer().look();
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => return None,
                }
            } else {
                self.jobs.recv().ok()?
            };
            if let Message::Job(job) = message {
                return Some(job);
            }
        }
    }

    fn is_watched(&self) -> bool {
        !self.watchers.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

#[cfg(test)]
mod tests;
