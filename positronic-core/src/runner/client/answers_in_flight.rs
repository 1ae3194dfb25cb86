//! The answers of a run in flight, as far as its models have streamed them.
//!
//! The worker keeps the pieces of an answer from its first one until the event that ends the request, so a reader that joins in
//! the middle of an answer gets the text so far. Nothing of it is stored.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::live::LiveRun;
use crate::record::{Delta, DeltaKind, Event, EventKind, PartialAnswer, Path};

/// The answers of a run in flight, by the path of their request.
#[derive(Debug, Default)]
pub(in crate::runner) struct AnswersInFlight {
    by_path: Mutex<HashMap<Path, PartialAnswer>>,
    /// Counts the pieces.
    grown: watch::Sender<u64>,
}

/// A reader of the answers of a run in flight, from [`Client::answers`](crate::runner::Client::answers).
pub struct AnswerReader {
    live: Arc<LiveRun>,
    grown: watch::Receiver<u64>,
}

impl AnswersInFlight {
    /// Removes the answers that an event ends.
    pub(in crate::runner) fn event(&self, event: &Event) {
        let path = &event.path;
        match &event.kind {
            EventKind::RunClaimed { .. } => self.by_path.lock().clear(),
            EventKind::LoopModelCall { .. }
            | EventKind::LoopModelResult { .. }
            | EventKind::LoopModelRetry { .. }
            | EventKind::LoopAnswerRefused { .. } => _ = self.by_path.lock().remove(path),
            EventKind::LoopComplete { .. }
            | EventKind::BrainComplete { .. }
            | EventKind::BrainError(_)
            | EventKind::BrainCancelled { .. } => self.by_path.lock().retain(|answer, _| !answer.is_within(path)),
            _ => {}
        }
    }

    /// Adds a piece.
    pub(super) fn delta(&self, delta: &Delta) {
        if delta.kind == DeltaKind::Progress {
            return;
        }
        let mut answers = self.by_path.lock();
        let answer = answers.entry(delta.path.clone()).or_default();
        let Delta { attempt, generation, .. } = *delta;
        if (answer.attempt, answer.generation) != (attempt, generation) {
            *answer = PartialAnswer { attempt, generation, ..PartialAnswer::default() };
        }
        answer.next = delta.n + 1;
        let is_same = |piece: &&mut Delta| (piece.part, piece.kind, piece.call) == (delta.part, delta.kind, delta.call);
        match answer.pieces.iter_mut().find(is_same) {
            Some(piece) => piece.text.push_str(&delta.text),
            None => answer.pieces.push(delta.clone()),
        }
        drop(answers);
        self.grown.send_modify(|count| *count = count.wrapping_add(1));
    }
}

impl AnswerReader {
    pub(super) fn new(live: Arc<LiveRun>) -> Self {
        let grown = live.answers.grown.subscribe();
        Self { live, grown }
    }

    /// Reads what is known of the answer to a request.
    pub fn read(&self, path: &Path, read: impl FnOnce(&PartialAnswer)) {
        if let Some(answer) = self.live.answers.by_path.lock().get(path) {
            read(answer);
        }
    }

    /// Returns what is known of the answers in flight that are wanted.
    pub fn all(&self, is_wanted: impl Fn(&Path, &PartialAnswer) -> bool) -> Vec<(Path, PartialAnswer)> {
        let answers = self.live.answers.by_path.lock();
        let wanted = answers.iter().filter(|(path, answer)| is_wanted(path, answer));
        wanted.map(|(path, answer)| (path.clone(), answer.clone())).collect()
    }

    /// Waits for a further piece. Cancel-safe.
    pub async fn more(&mut self) {
        if self.grown.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl fmt::Debug for AnswerReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerReader").field("answers", &self.live.answers).finish_non_exhaustive()
    }
}
