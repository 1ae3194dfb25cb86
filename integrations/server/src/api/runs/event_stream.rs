//! A followed run as server-sent events: its events, the pieces of answers in flight, settled states and the end.
//!
//! A piece comes as it is streamed (`delta`). A reader that joins in the middle of an answer, or lacks a piece, gets the answer as far as it is (`partial`),
//! in place of the pieces before.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use futures::stream::{BoxStream, Stream, StreamExt as _, unfold};
use positronic_core::record::{Delta, DeltaKind, Event, EventKind, PartialAnswer, Path, RunId, Seq};
use positronic_core::runner::{AnswerReader, RunUpdate, Settled};
use positronic_core::store::StoreError;
use serde_json::json;

use crate::problem::Reporter;
use crate::routes::RequestContext;
use crate::sse;

/// An update of a followed run.
pub(crate) enum Update {
    Event(Arc<Event>),
    Other(sse::Event),
}

/// Follows a run.
pub(crate) fn updates(cx: &RequestContext, run: &RunId, from: Seq) -> impl Stream<Item = Update> + Send + use<> {
    let mut following = Following {
        updates: cx.app.client.follow(run, from),
        reader: cx.app.client.answers(run),
        reporter: cx.reporter.clone(),
        redacts: cx.app.settings.redact.is_some(),
        next: HashMap::new(),
        lacking: HashSet::new(),
        ready: VecDeque::new(),
        is_over: false,
    };
    following.catch_up();
    unfold(following, |mut following| async move { following.next().await.map(|update| (update, following)) })
}

/// The number of the next piece of an answer, after its try and its generation.
type Position = (u32, u32, u32);

struct Following {
    updates: BoxStream<'static, Result<RunUpdate, StoreError>>,
    reader: AnswerReader,
    reporter: Reporter,
    redacts: bool,
    /// What was sent of each answer in flight.
    next: HashMap<Path, Position>,
    /// The answers that continue with what the worker keeps, until a piece follows what was sent.
    lacking: HashSet<Path>,
    ready: VecDeque<Update>,
    is_over: bool,
}

impl Following {
    async fn next(&mut self) -> Option<Update> {
        while self.ready.is_empty() && !self.is_over {
            tokio::select! {
                biased;
                update = self.updates.next() => self.update(update),
                () = self.reader.more(), if !self.redacts => self.catch_up(),
            }
        }
        self.ready.pop_front()
    }

    fn update(&mut self, update: Option<Result<RunUpdate, StoreError>>) {
        match update {
            Some(Ok(RunUpdate::Event(event))) => self.event(event),
            Some(Ok(RunUpdate::Delta(delta))) => self.delta(delta),
            Some(Ok(RunUpdate::Settled(settled))) => self.ready.extend(settled_updates(&settled)),
            Some(Ok(_)) => {}
            Some(Err(error)) => self.ready.push_back(Update::Other(sse::failed(&self.reporter, &error.into()))),
            None => self.is_over = true,
        }
    }

    fn event(&mut self, event: Arc<Event>) {
        let (path, begins) = (event.path.clone(), matches!(event.kind, EventKind::LoopModelCall { .. }));
        if matches!(
            event.kind,
            EventKind::LoopModelResult { .. } | EventKind::LoopModelRetry { .. } | EventKind::LoopAnswerRefused { .. }
        ) {
            self.next.remove(&path);
            self.lacking.remove(&path);
        }
        self.ready.push_back(Update::Event(event));
        if begins {
            // What was sent before came to a client that did not know the request.
            self.next.remove(&path);
            self.catch_up();
        }
    }

    fn delta(&mut self, mut delta: Delta) {
        // A field may be split between pieces of an answer. The progress of a tool is a whole text.
        if delta.kind == DeltaKind::Progress || self.redacts {
            if delta.kind != DeltaKind::Progress {
                delta.text.clear();
            }
            return self.send("delta", &delta);
        }
        let of = (delta.attempt, delta.generation);
        let known = self.next.get(&delta.path).copied().unwrap_or_default();
        let next = if (known.0, known.1) == of { known.2 } else { 0 };
        if (known.0, known.1) > of || delta.n < next {
            return;
        }
        if delta.n > next {
            let mut is_known = false;
            self.reader.read(&delta.path, |partial| is_known = (partial.attempt, partial.generation) == of);
            if is_known {
                // The worker keeps the pieces before, and this one.
                self.lacking.insert(delta.path);
                return self.catch_up();
            }
        }
        self.lacking.remove(&delta.path);
        self.next.insert(delta.path.clone(), (delta.attempt, delta.generation, delta.n + 1));
        self.send("delta", &delta);
    }

    /// Sends what the worker keeps of the answers of which nothing was sent, or a piece is missing.
    fn catch_up(&mut self) {
        if self.redacts {
            return;
        }
        let (next, lacking) = (&self.next, &self.lacking);
        let partials = self.reader.all(|path, partial| {
            let position = (partial.attempt, partial.generation, partial.next);
            next.get(path).is_none_or(|known| lacking.contains(path) && *known < position)
        });
        for (path, partial) in partials {
            let PartialAnswer { attempt, generation, next, pieces } = partial;
            let answer =
                json!({ "path": path, "attempt": attempt, "generation": generation, "next": next, "pieces": pieces });
            self.send("partial", &answer);
            self.lacking.insert(path.clone());
            self.next.insert(path, (attempt, generation, next));
        }
    }

    fn send<T: serde::Serialize>(&mut self, name: &'static str, data: &T) {
        self.ready.push_back(Update::Other(sse::event(name, data)));
    }
}

fn settled_updates(settled: &Settled) -> Vec<Update> {
    let (status, is_over) = match settled {
        Settled::Completed(_) => ("completed", true),
        Settled::Failed(_) => ("failed", true),
        Settled::Cancelled => ("cancelled", true),
        Settled::Waiting(_) => ("waiting", false),
        Settled::Paused => ("paused", false),
        Settled::Stopped(_) => ("stopped", false),
    };
    let settled = Update::Other(sse::event("settled", &json!({ "status": status })));
    let end = is_over.then(|| Update::Other(sse::end()));
    [settled].into_iter().chain(end).collect()
}
