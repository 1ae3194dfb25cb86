//! Loading of a run from its last snapshot and its log, and of the conversation before it.

use futures::{StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};

use super::append::{follow, summary_after};
use super::shared::Folded;
use crate::machine::RunState;
use crate::projection::{History, Prompts, PromptsPart, TurnBlock};
use crate::record::{Event, EventKind, RunId, RunSummary, Seq};
use crate::runner::conversation::histories::Histories;
use crate::store::{EventStore, SavedPrompts, Snapshot, StoreError};

/// The version of the content of snapshots and of saved prompts. It must be increased whenever [`RunState`], a record or
/// a turn changes its form.
const VERSION: u32 = 1;

/// The content of a snapshot.
#[derive(Serialize, Deserialize)]
struct SnapshotContent {
    state: RunState,
}

/// The content of saved prompts.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SavedContent {
    /// Changes of the prompts of a run that is open.
    Part(PromptsPart),
    /// The last turns of a conversation, up to that of a run that has ended.
    Turns(TurnBlock),
}

/// Creates a snapshot of a state.
pub(super) fn snapshot(state: &RunState) -> Option<Snapshot> {
    let content = serde_json::to_string(&SnapshotContent { state: state.clone() }).ok()?;
    Some(Snapshot { next: state.next, version: VERSION, content })
}

/// Encodes saved prompts.
pub(super) fn encoded(from: Seq, next: Seq, content: &SavedContent) -> Option<SavedPrompts> {
    Some(SavedPrompts { from, next, version: VERSION, content: serde_json::to_string(content).ok()? })
}

/// Creates what replaces the parts of a run that has ended.
pub(super) const fn nothing(next: Seq) -> SavedPrompts {
    SavedPrompts { from: Seq(0), next, version: VERSION, content: String::new() }
}

/// Decodes a snapshot; an undecodable one is ignored.
fn of_snapshot(snapshot: &Snapshot) -> Option<RunState> {
    if snapshot.version != VERSION {
        return None;
    }
    let SnapshotContent { state } = serde_json::from_str(&snapshot.content).ok()?;
    (state.next == snapshot.next).then_some(state)
}

/// Decodes saved prompts and returns the event up to which they go; undecodable ones are ignored, with those after them.
fn of_saved(saved: &[SavedPrompts]) -> (Seq, Vec<SavedContent>) {
    let (mut next, mut contents) = (Seq(0), Vec::new());
    for part in saved {
        let fits = part.version == VERSION && part.from == next && part.next > next;
        let Some(content) = fits.then(|| serde_json::from_str(&part.content).ok()).flatten() else { break };
        contents.push(content);
        next = part.next;
    }
    (next, contents)
}

/// Loads the state of a run from its last snapshot and the events after it.
pub(in crate::runner) async fn state(store: &dyn EventStore, run: &RunId) -> Result<RunState, StoreError> {
    let state = store.snapshot(run).await?.as_ref().and_then(of_snapshot).unwrap_or_default();
    let events = store.read(run, state.next, usize::MAX).await?;
    follow(&state, &events).map_err(|error| StoreError::corrupt_log(run, error))
}

/// The number of events per read, and of concurrent reads.
const CHUNK: usize = 1024;
const AHEAD: usize = 2;

/// Loads a run with its prompts: what was saved of them and the events after that, and its conversation.
pub(in crate::runner) async fn whole(
    store: &dyn EventStore,
    run: &RunId,
    histories: &Histories,
) -> Result<Folded, StoreError> {
    let summary = store.run(run).await?;
    let mut state = store.snapshot(run).await?.as_ref().and_then(of_snapshot).unwrap_or_default();
    let snapshot = state.next;
    let history = match &summary.after {
        Some(before) => history(store, before, histories).await?,
        None => History::default(),
    };
    let saved = saved_prompts(store, run, &history).await?;
    let (from, prompts) = saved.unwrap_or_else(|| (Seq(0), Prompts::after(history)));
    let mut prompts = prompts.in_run(run).dropping_ended();
    let first = from.min(state.next).min(summary.next);
    // One more read than the row requires: the log may have grown since.
    let last = Seq(summary.next.0.saturating_sub(first.0)).index() / CHUNK;
    let starts = (0..=last).map(|chunk| Seq(first.0 + (chunk * CHUNK) as u64));
    let end = first.0 + (last * CHUNK) as u64;
    let mut newer = Vec::new();
    let reads = starts.map(|from| store.read(run, from, if from.0 == end { usize::MAX } else { CHUNK }));
    let mut chunks = futures::stream::iter(reads).buffered(AHEAD);
    while let Some(events) = chunks.try_next().await? {
        let after = events.iter().position(|event| event.seq >= state.next).unwrap_or(events.len());
        state = follow(&state, events.get(after..).unwrap_or_default())
            .map_err(|error| StoreError::corrupt_log(run, error))?;
        for event in events.iter().filter(|event| event.seq >= from) {
            prompts.apply(event);
        }
        newer.extend(events.iter().filter(|event| event.seq >= summary.next).cloned());
    }
    let summary = if newer.is_empty() { summary } else { summary_after(run, &state, Some(&summary), &newer) };
    Ok(Folded { state, prompts, summary, snapshot })
}

/// Restores the saved prompts of an open run, with the event up to which they go.
async fn saved_prompts(
    store: &dyn EventStore,
    run: &RunId,
    history: &History,
) -> Result<Option<(Seq, Prompts)>, StoreError> {
    let (next, contents) = of_saved(&store.saved_prompts(run).await?);
    let parts: Option<Vec<_>> = contents
        .into_iter()
        .map(|content| match content {
            SavedContent::Part(part) => Some(part),
            SavedContent::Turns(_) => None,
        })
        .collect();
    let restored = parts.filter(|parts| !parts.is_empty());
    Ok(restored.and_then(|parts| Some((next, Prompts::restored(history.clone(), parts, next)?))))
}

/// What a run adds to the history of its conversation.
enum Added {
    Turns(TurnBlock),
    Log(Vec<std::sync::Arc<Event>>),
}

/// Returns the history of a conversation up to the end of a run. It reads back from the last run, to a run whose history
/// is known, or to the conversation's begin: saved turns where there are any, else whole logs.
pub(in crate::runner) async fn history(
    store: &dyn EventStore,
    last: &RunId,
    histories: &Histories,
) -> Result<History, StoreError> {
    let (mut history, mut added) = (History::default(), Vec::new());
    let (mut row, mut next) = (None, Some(last.clone()));
    while let Some(run) = next {
        if added.is_empty() || histories.may_have(&run) {
            let found = store.run(&run).await?;
            if let Some(known) = histories.get(&found) {
                history = known;
                break;
            }
            row = row.or(Some(found));
        }
        let (before, found) = match saved_turns(store, &run).await? {
            Some(block) => (block.before().cloned(), Added::Turns(block)),
            None => {
                let log = store.read(&run, Seq(0), usize::MAX).await?;
                (log.first().and_then(|first| before(first)).cloned(), Added::Log(log))
            }
        };
        next = before;
        added.push(found);
    }
    for added in added.into_iter().rev() {
        history = match added {
            Added::Turns(block) => history.with(block),
            Added::Log(log) => Prompts::after(history).with(log.iter().map(|event| &**event)).conversation(),
        };
    }
    // A log that has grown since its row was read does not match it later.
    if let Some(row) = row.filter(|row: &RunSummary| row.status.is_over()) {
        histories.put(&row, history.clone());
    }
    Ok(history)
}

/// Returns the saved turns of a run that has ended.
async fn saved_turns(store: &dyn EventStore, run: &RunId) -> Result<Option<TurnBlock>, StoreError> {
    let (_, contents) = of_saved(&store.saved_prompts(run).await?);
    Ok(contents.into_iter().find_map(|content| match content {
        SavedContent::Turns(block) => Some(block),
        SavedContent::Part(_) => None,
    }))
}

/// Returns the previous run of a conversation, from a run's first event.
fn before(first: &Event) -> Option<&RunId> {
    match &first.kind {
        EventKind::BrainStart(begin) if first.seq == Seq(0) => begin.start.as_ref()?.after.as_ref(),
        _ => None,
    }
}
