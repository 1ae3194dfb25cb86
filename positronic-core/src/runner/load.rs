//! Loading of a run from its last snapshot and its log.

use futures::{StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};

use super::append::follow;
use super::shared::Folded;
use crate::machine::{self, RunState};
use crate::projection::{History, Prompts};
use crate::record::{Event, EventKind, RunId, Seq};
use crate::store::{EventStore, Snapshot, StoreError};

/// The version of a snapshot's content. It must be increased whenever [`RunState`] changes its form.
const VERSION: u32 = 7;

#[derive(Serialize, Deserialize)]
struct Content {
    state: RunState,
}

/// Creates a snapshot of a state.
pub(super) fn snapshot(state: &RunState) -> Option<Snapshot> {
    let content = serde_json::to_string(&Content { state: state.clone() }).ok()?;
    Some(Snapshot { next: state.next, version: VERSION, content })
}

/// Decodes a snapshot; an undecodable one is ignored.
fn of_snapshot(snapshot: &Snapshot) -> Option<RunState> {
    if snapshot.version != VERSION {
        return None;
    }
    let Content { state } = serde_json::from_str(&snapshot.content).ok()?;
    (state.next == snapshot.next).then_some(state)
}

/// Loads the state of a run from its last snapshot and the events after it.
pub(super) async fn state(store: &dyn EventStore, run: &RunId) -> Result<RunState, StoreError> {
    let state = store.snapshot(run).await?.as_ref().and_then(of_snapshot).unwrap_or_default();
    let events = store.read(run, state.next, usize::MAX).await?;
    follow(&state, &events).map_err(|error| StoreError::corrupt_log(run, error))
}

/// The number of events per read, and of concurrent reads.
const CHUNK: usize = 1024;
const AHEAD: usize = 2;

/// Loads a run with its prompts, which takes the whole log.
pub(super) async fn whole(store: &dyn EventStore, run: &RunId) -> Result<Folded, StoreError> {
    let summary = store.run(run).await?;
    let mut state = store.snapshot(run).await?.as_ref().and_then(of_snapshot).unwrap_or_default();
    let snapshot = state.next;
    let mut prompts = Prompts::default().in_run(run);
    // One more read than the row requires: the log may have grown since.
    let last = summary.next.index() / CHUNK;
    let starts = (0..=last).map(|chunk| Seq((chunk * CHUNK) as u64));
    let reads = starts.map(|from| store.read(run, from, if from.index() / CHUNK == last { usize::MAX } else { CHUNK }));
    let mut chunks = futures::stream::iter(reads).buffered(AHEAD);
    while let Some(events) = chunks.try_next().await? {
        if let Some(before) = events.first().and_then(|first| before(first)) {
            prompts = Prompts::after(history(store, before).await?).in_run(run);
        }
        let after = events.iter().position(|event| event.seq >= state.next).unwrap_or(events.len());
        state = follow(&state, events.get(after..).unwrap_or_default())
            .map_err(|error| StoreError::corrupt_log(run, error))?;
        for event in &events {
            prompts.apply(event);
        }
    }
    let summary = if summary.next == state.next { summary } else { machine::summary(run, &state, Some(&summary)) };
    Ok(Folded { state, prompts, summary, snapshot })
}

/// Returns the previous run of a conversation, from a run's first event.
fn before(first: &Event) -> Option<&RunId> {
    match &first.kind {
        EventKind::BrainStart(begin) if first.seq == Seq(0) => begin.start.as_ref()?.after.as_ref(),
        _ => None,
    }
}

/// Returns the history of a conversation up to the end of a run.
pub(super) async fn history(store: &dyn EventStore, last: &RunId) -> Result<History, StoreError> {
    let mut logs = Vec::new();
    let mut next = Some(last.clone());
    while let Some(run) = next {
        let log = store.read(&run, Seq(0), usize::MAX).await?;
        next = log.first().and_then(|first| before(first)).cloned();
        logs.push(log);
    }
    let mut history = History::default();
    for log in logs.iter().rev() {
        let mut prompts = Prompts::after(history);
        for event in log {
            prompts.apply(event);
        }
        history = prompts.conversation();
    }
    Ok(history)
}
