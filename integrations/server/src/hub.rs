//! The texts of answers in flight, kept in memory while they stream, for all streams of a run: those of the API and those of further routes. One that
//! joins late gets the text before, and a slow one gets several pieces as one. The first reader of a run that attaches in the middle of
//! an answer gets it when it is whole.
//!
//! One task per run follows the deltas as long as the run has a reader, and afterwards until the run settles, so that a page that
//! reloads finds the text again. Nothing of it is stored.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt as _;
use parking_lot::Mutex;
use positronic_core::record::{Delta, DeltaKind, Event, EventKind, Path, RunId, Seq};
use positronic_core::runner::{Client, RunUpdate};
use tokio::sync::{Notify, watch};

/// The runs with readers, by id. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hub(Arc<Mutex<HashMap<RunId, Arc<AnswersInFlight>>>>);

/// What is in flight in a run.
#[derive(Debug, Default)]
pub struct AnswersInFlight {
    answers: Mutex<HashMap<Path, PartialAnswer>>,
    readers: AtomicUsize,
    left: Notify,
    /// Counts the pieces.
    grown: watch::Sender<u64>,
}

/// A reader of a run; the run is watched as long as it has one.
#[derive(Debug)]
pub struct AnswerReader {
    watched: Arc<AnswersInFlight>,
    grown: watch::Receiver<u64>,
}

/// The pieces of an answer, joined: one for each of its parts.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PartialAnswer {
    /// The try of the request.
    pub attempt: u32,
    /// How often the answer has restarted within the try.
    pub generation: u32,
    /// The number of the next piece.
    pub next: u32,
    /// The text of each part so far.
    pub pieces: Vec<Delta>,
    /// Whether a piece is missing.
    is_broken: bool,
}

impl Hub {
    /// Adds a reader of a run, whose next event is `next`.
    pub(crate) fn read(&self, client: &Client, run: &RunId, next: Seq) -> AnswerReader {
        let mut runs = self.0.lock();
        if let Some(known) = runs.get(run) {
            known.readers.fetch_add(1, Ordering::AcqRel);
            return AnswerReader::of(Arc::clone(known));
        }
        let watched = Arc::new(AnswersInFlight { readers: AtomicUsize::new(1), ..AnswersInFlight::default() });
        runs.insert(run.clone(), Arc::clone(&watched));
        let updates = client.follow(run, next);
        let (hub, run, own) = (self.clone(), run.clone(), Arc::clone(&watched));
        drop(runs);
        tokio::spawn(async move { hub.watch(&run, &own, updates).await });
        AnswerReader::of(watched)
    }

    async fn watch<E>(
        &self,
        run: &RunId,
        watched: &AnswersInFlight,
        mut updates: impl futures::Stream<Item = Result<RunUpdate, E>> + Unpin,
    ) {
        let (mut is_settled, mut has_ended) = (false, false);
        loop {
            tokio::select! {
                update = updates.next(), if !has_ended => match update {
                    Some(Ok(RunUpdate::Event(event))) => {
                        is_settled = false;
                        watched.event(&event);
                    }
                    Some(Ok(RunUpdate::Delta(delta))) => watched.delta(&delta),
                    Some(Ok(RunUpdate::Settled(_))) => is_settled = true,
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => (is_settled, has_ended) = (true, true),
                },
                () = watched.left.notified() => {}
            }
            if is_settled && self.forget(run, watched) {
                return;
            }
        }
    }

    /// Forgets a run without readers.
    fn forget(&self, run: &RunId, watched: &AnswersInFlight) -> bool {
        let mut runs = self.0.lock();
        let is_unread = watched.readers.load(Ordering::Acquire) == 0;
        if is_unread {
            runs.remove(run);
        }
        is_unread
    }
}

impl AnswersInFlight {
    /// Reads what is known of the answer to a request, if no piece of it is missing.
    pub fn read(&self, path: &Path, read: impl FnOnce(&PartialAnswer)) {
        if let Some(answer) = self.answers.lock().get(path).filter(|answer| !answer.is_broken) {
            read(answer);
        }
    }

    /// Returns what is known of the answers in flight that are wanted, except those of which a piece is missing.
    pub(crate) fn all(&self, is_wanted: impl Fn(&Path, &PartialAnswer) -> bool) -> Vec<(Path, PartialAnswer)> {
        let answers = self.answers.lock();
        let known = answers.iter().filter(|(_, answer)| !answer.is_broken && answer.next > 0);
        let wanted = known.filter(|(path, answer)| is_wanted(path, answer));
        wanted.map(|(path, answer)| (path.clone(), answer.clone())).collect()
    }

    fn event(&self, event: &Event) {
        let mut answers = self.answers.lock();
        match &event.kind {
            EventKind::RunClaimed { .. } => answers.clear(),
            EventKind::LoopModelCall { .. }
            | EventKind::LoopModelResult { .. }
            | EventKind::LoopModelRetry { .. }
            | EventKind::LoopAnswerRefused { .. } => {
                answers.remove(&event.path);
            }
            _ => {}
        }
    }

    fn delta(&self, delta: &Delta) {
        if delta.kind == DeltaKind::Progress {
            return;
        }
        let mut answers = self.answers.lock();
        let answer = answers.entry(delta.path.clone()).or_default();
        if (answer.attempt, answer.generation) < (delta.attempt, delta.generation) {
            *answer =
                PartialAnswer { attempt: delta.attempt, generation: delta.generation, ..PartialAnswer::default() };
        }
        if (answer.attempt, answer.generation) != (delta.attempt, delta.generation) {
            return;
        }
        answer.is_broken |= delta.n != answer.next;
        answer.next = delta.n + 1;
        if answer.is_broken {
            answer.pieces.clear();
            return;
        }
        let is_same = |piece: &&mut Delta| (piece.part, piece.kind, piece.call) == (delta.part, delta.kind, delta.call);
        match answer.pieces.iter_mut().find(is_same) {
            Some(piece) => piece.text.push_str(&delta.text),
            None => answer.pieces.push(delta.clone()),
        }
        drop(answers);
        self.grown.send_modify(|count| *count += 1);
    }
}

impl AnswerReader {
    fn of(watched: Arc<AnswersInFlight>) -> Self {
        let grown = watched.grown.subscribe();
        Self { watched, grown }
    }

    /// Returns the answers in flight.
    #[must_use]
    pub fn answers(&self) -> &AnswersInFlight {
        &self.watched
    }

    /// Waits for a further piece. Cancel-safe.
    pub async fn more(&mut self) {
        if self.grown.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for AnswerReader {
    fn drop(&mut self) {
        self.watched.readers.fetch_sub(1, Ordering::AcqRel);
        self.watched.left.notify_one();
    }
}
