//! What a store in memory contains: runs, mail, timers, entries and files.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use tokio::time::Instant;

use super::super::{
    Append, Entry, InboundWebhook, PendingItem, RunCursor, RunFilter, SavedPrompts, Snapshot, StoreError, TimerChange,
    WaitingRun, watchers::Watchers,
};
use crate::record::{Epoch, Event, Pending, RunId, RunSummary, Seq, SignalId, Timer, Timestamp, TriggerId};

/// Everything that a store contains.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) runs: BTreeMap<RunId, StoredRun>,
    /// The runs in the order of lists.
    listed: BTreeSet<RunCursor>,
    /// The runs of each conversation, in the order of lists.
    conversations: BTreeMap<String, BTreeSet<RunCursor>>,
    pub(super) mail: BTreeMap<SignalId, (InboundWebhook, Option<(RunId, Seq)>)>,
    pub(super) timers: BTreeMap<TriggerId, Timer>,
    /// By kind and key.
    pub(super) entries: BTreeMap<String, BTreeMap<String, Entry>>,
    /// File contents by hash, with the time of their last storing.
    pub(super) blobs: BTreeMap<String, (Timestamp, Vec<u8>)>,
    pub(super) watchers: Watchers,
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} runs, {} mails", self.runs.len(), self.mail.len())
    }
}

impl Contents {
    /// Appends events to a run, or changes nothing. Returns the number of the run's next event.
    pub(super) fn append(&mut self, run: &RunId, append: Append, lines: Box<str>) -> Result<Seq, StoreError> {
        let stored = self.runs.get(run);
        let next = stored.map_or(Seq(0), StoredRun::next);
        if next != append.expected {
            return Err(StoreError::Conflict { next });
        }
        if let Some(current) =
            stored.map(|stored| stored.epoch).filter(|current| append.epoch.is_some_and(|own| own < *current))
        {
            return Err(StoreError::Fenced { current });
        }
        if stored.is_none()
            && let Some(before) = &append.index.summary.after
            && !self.runs.contains_key(before)
        {
            return Err(StoreError::NoRunBefore { run: run.clone(), before: before.clone() });
        }
        for id in &append.deliveries {
            if let Some((_, Some((run, seq)))) = self.mail.get(id) {
                return Err(StoreError::Taken { mail: id.clone(), run: run.clone(), seq: *seq });
            }
        }
        for change in &append.timers {
            if let TimerChange::Fired { id, due, .. } = change
                && self.timers.get(id).is_none_or(|timer| timer.trigger.due != *due)
            {
                return Err(StoreError::NotDue { trigger: id.clone() });
            }
        }
        for change in &append.timers {
            self.change(change);
        }
        for id in &append.deliveries {
            if let Some((_, taken)) = self.mail.get_mut(id) {
                *taken = Some((run.clone(), append.expected));
            }
        }
        if append.expected == Seq(0) {
            self.list(&append.index.summary);
        }
        let stored = self.runs.entry(run.clone()).or_insert_with(|| StoredRun {
            lines: Lines::default(),
            epoch: Epoch::default(),
            summary: append.index.summary.clone(),
            pending: Vec::new(),
            snapshot: None,
            prompts: Vec::new(),
            sinks: BTreeMap::new(),
            blobs: BTreeSet::new(),
            signals: BTreeMap::new(),
            queued: Queued::default(),
        });
        stored.take(append, lines);
        Ok(stored.next())
    }

    fn list(&mut self, row: &RunSummary) {
        self.listed.insert(row.cursor());
        if let Some(conversation) = &row.conversation {
            self.conversations.entry(conversation.clone()).or_default().insert(row.cursor());
        }
    }

    /// Lists the rows that pass a filter, in the order of lists.
    pub(super) fn rows<'a>(&'a self, filter: &'a RunFilter) -> impl Iterator<Item = &'a StoredRun> {
        let listed = match &filter.conversation {
            Some(conversation) => self.conversations.get(conversation),
            None => Some(&self.listed),
        };
        let runs = listed.into_iter().flatten().filter_map(|cursor| self.runs.get(&cursor.run));
        runs.filter(|stored| stored.passes(filter))
    }

    /// Returns all pending items.
    pub(super) fn items(&self) -> impl Iterator<Item = PendingItem> {
        self.runs.iter().flat_map(|(run, stored)| {
            stored.pending.iter().map(move |(at, pending)| PendingItem {
                run: run.clone(),
                brain: Arc::clone(&stored.summary.brain),
                at: *at,
                pending: pending.clone(),
                about: WaitingRun::from(&stored.summary),
            })
        })
    }

    pub(super) fn remove(&mut self, run: &RunId) {
        let Some(StoredRun { summary, .. }) = self.runs.remove(run) else { return };
        self.listed.remove(&summary.cursor());
        if let Some(conversation) = &summary.conversation
            && let Some(runs) = self.conversations.get_mut(conversation)
        {
            runs.remove(&summary.cursor());
            if runs.is_empty() {
                self.conversations.remove(conversation);
            }
        }
    }

    fn change(&mut self, change: &TimerChange) {
        match change {
            TimerChange::Set(timer) => {
                self.timers.insert(timer.trigger.id.clone(), timer.clone());
            }
            TimerChange::Deleted(id) => {
                self.timers.remove(id);
            }
            TimerChange::Fired { id, next, .. } => {
                if let Some(timer) = self.timers.remove(id)
                    && let Some(next) = next
                {
                    self.timers.insert(id.clone(), timer.put_off(*next));
                }
            }
        }
    }
}

/// When a run is due again, and for whom.
#[derive(Debug, Default)]
pub(super) struct Queued {
    /// Until when the run is reserved or paused, and the owner of the reservation's lease.
    pub(super) until: Option<(Instant, Option<String>)>,
    pub(super) failures: u32,
    /// The codes that have refused it.
    pub(super) refusals: VecDeque<String>,
}

/// How many lines of a log are looked at to find one of them, at most.
const BLOCK: usize = 64;

/// The events of a run as lines of JSON, which take a tenth of the memory of decoded events.
#[derive(Default)]
pub(super) struct Lines {
    /// The lines of each append in blocks, with the number of their first event.
    blocks: Vec<(Seq, Box<str>)>,
    next: Seq,
}

impl Lines {
    fn append(&mut self, events: usize, lines: Box<str>) {
        if events <= BLOCK {
            self.push(events, lines);
            return;
        }
        // The copy of a log is one append.
        let lines: Vec<&str> = lines.split_inclusive('\n').collect();
        for block in lines.chunks(BLOCK) {
            self.push(block.len(), block.concat().into());
        }
    }

    fn push(&mut self, events: usize, lines: Box<str>) {
        self.blocks.push((self.next, lines));
        self.next = Seq(self.next.0 + events as u64);
    }

    /// Returns the lines from an event on, with their numbers.
    pub(super) fn from(&self, from: Seq) -> impl Iterator<Item = (Seq, &str)> {
        let block = self.blocks.partition_point(|(first, _)| *first <= from).saturating_sub(1);
        let blocks = self.blocks.get(block..).unwrap_or_default().iter();
        let lines = blocks.flat_map(|(first, lines)| (first.0..).map(Seq).zip(lines.lines()));
        lines.skip_while(move |(seq, _)| *seq < from)
    }
}

/// One stored run.
pub(super) struct StoredRun {
    pub(super) lines: Lines,
    epoch: Epoch,
    pub(super) summary: RunSummary,
    /// The pending items, with the time since when each waits.
    pub(super) pending: Vec<(Timestamp, Pending)>,
    pub(super) snapshot: Option<Snapshot>,
    pub(super) prompts: Vec<SavedPrompts>,
    /// The durable sinks: the next event for each, and the worker that feeds it.
    pub(super) sinks: BTreeMap<String, (Seq, Option<String>)>,
    /// The hashes of its files.
    pub(super) blobs: BTreeSet<String>,
    /// The accepted signals.
    pub(super) signals: BTreeMap<SignalId, Seq>,
    pub(super) queued: Queued,
}

impl StoredRun {
    /// Returns whether the run is in a list with this filter.
    fn passes(&self, filter: &RunFilter) -> bool {
        filter.passes(&self.summary) && (!filter.person || self.waits_for_person())
    }

    /// Returns whether a person can decide or answer something.
    pub(super) fn waits_for_person(&self) -> bool {
        self.pending.iter().any(|(_, pending)| pending.kind.is_for_person())
    }

    pub(super) fn next(&self) -> Seq {
        self.lines.next
    }

    pub(super) fn read(&self, run: &RunId, from: Seq, most: usize) -> Result<Vec<Arc<Event>>, StoreError> {
        let lines = self.lines.from(from).take(most);
        lines
            .map(|(_, line)| Event::from_json(line).map(Arc::new).map_err(|error| StoreError::corrupt_log(run, error)))
            .collect()
    }

    fn take(&mut self, append: Append, lines: Box<str>) {
        if let Some(owner) = append.claimant() {
            for sink in &append.sinks {
                self.sinks.entry(sink.clone()).or_insert((Seq(0), None)).1 = Some(owner.to_owned());
            }
        }
        if let Some(epoch) = append.claims() {
            self.epoch = self.epoch.max(epoch);
        }
        if append.ends_deferral() {
            self.queued = Queued { failures: self.queued.failures, ..Queued::default() };
        }
        self.blobs.extend(Append::files(&lines).map(str::to_owned));
        for (signal, seq) in append.signals() {
            self.signals.entry(signal.clone()).or_insert(seq);
        }
        if let Some(pending) = append.index.pending {
            let at = append.index.summary.at;
            let before = std::mem::take(&mut self.pending);
            let known: HashMap<_, _> = before.iter().map(|(since, old)| ((&old.call, old.since), *since)).collect();
            let since = |new: &Pending| known.get(&(&new.call, new.since)).copied().unwrap_or(at);
            self.pending = pending.into_iter().map(|new| (since(&new), new)).collect();
        }
        if append.snapshot.is_some() {
            self.snapshot = append.snapshot;
        }
        if let Some(part) = append.prompts {
            if part.from == Seq(0) {
                self.prompts.clear();
            }
            self.prompts.push(part);
        }
        self.summary = append.index.summary;
        self.lines.append(append.events.len(), lines);
    }
}
