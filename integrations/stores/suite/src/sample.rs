//! Sample runs.

use std::sync::Arc;

use positronic_core::record::{
    Actor, ClaimRefusal, Epoch, Event, EventKind, FileRef, Path, Pending, RunId, RunSummary, Seq, SideOutput, SignalId,
    Status, Timestamp, Usage, sha256,
};
use positronic_core::store::{Append, EventStore, Index, SavedPrompts, Snapshot, StoreError, TimerChange};
use serde_json::json;

/// Makes an event with a text.
#[must_use]
pub fn event(seq: u64, text: &str) -> Arc<Event> {
    Arc::new(Event {
        seq: Seq(seq),
        at: Timestamp(1_000_000 + i64::try_from(seq).unwrap()),
        epoch: None,
        clock: None,
        with_next: false,
        path: Path::root(),
        kind: EventKind::BrainComplete { result: json!(text) },
    })
}

/// A sample run, and its next append.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The run.
    pub run: RunId,
    /// The next append.
    pub append: Append,
}

impl Sample {
    /// Creates a run without events.
    #[must_use]
    pub fn new(run: &str) -> Self {
        let run = RunId::from(run);
        let summary = RunSummary {
            run: run.clone(),
            brain: "Sample".into(),
            version: 1,
            user: None,
            starter: None,
            tags: Vec::new(),
            conversation: None,
            after: None,
            forked_from: None,
            parent: None,
            status: Status::Running,
            why: None,
            last_event: None,
            input: None,
            result: None,
            cut_off: None,
            stopped_by: None,
            tools: Arc::default(),
            since: Timestamp(1_000_000),
            started: Timestamp(1_000_000),
            at: Timestamp(1_000_000),
            next: Seq(0),
            usage: Usage::default(),
            active: None,
            cost: None,
            models: Arc::default(),
            cause: None,
            claim: None,
            refused: None,
            crashes: None,
            parked: false,
            wake: None,
            mail: false,
            pending: None,
            older_answers: Arc::default(),
        };
        let append = Append {
            expected: Seq(0),
            epoch: None,
            events: Vec::new(),
            index: Index { summary, pending: None },
            deliveries: Vec::new(),
            timers: Vec::new(),
            snapshot: None,
            prompts: None,
            sinks: Vec::new(),
        };
        Self { run, append }
    }

    /// Adds an event with a text.
    #[must_use]
    pub fn says(mut self, text: &str) -> Self {
        let seq = self.append.expected.0 + self.append.events.len() as u64;
        let event = event(seq, text);
        self.append.index.summary.at = event.at;
        self.append.index.summary.next = Seq(seq + 1);
        self.append.events.push(event);
        self
    }

    /// Adds an event that records a file whose blob is stored.
    #[must_use]
    pub fn saves(mut self, name: &str, bytes: &[u8]) -> Self {
        self = self.says("");
        let event = self.append.events.pop().unwrap();
        let path = Path::root().stage("Work").call(0, 0);
        let file = FileRef::stored(name, "text/plain", bytes.len() as u64, sha256(bytes));
        let kind = EventKind::LoopOutput { id: path.public_id(), output: SideOutput::File(file.into()) };
        self.append.events.push(Arc::new(Event { path, kind, ..(*event).clone() }));
        self
    }

    /// Adds an event that accepts a signal.
    #[must_use]
    pub fn hears(mut self, signal: &SignalId) -> Self {
        self = self.says("");
        let event = self.append.events.pop().unwrap();
        let kind = EventKind::BrainPaused { signal: signal.clone(), actor: Actor::default(), failure: None };
        self.append.events.push(Arc::new(Event { kind, ..(*event).clone() }));
        self
    }

    /// Adds an event by which a worker claims the run.
    #[must_use]
    pub fn claimed(mut self, epoch: u64) -> Self {
        self = self.says("");
        let event = self.append.events.pop().unwrap();
        let kind = EventKind::RunClaimed { owner: "somebody".to_owned(), trace: None };
        self.append.events.push(Arc::new(Event { epoch: Some(Epoch(epoch)), kind, ..(*event).clone() }));
        self.by(epoch)
    }

    /// Adds an event by which the owner of a lease claims the run, and feeds a durable sink.
    #[must_use]
    pub fn fed(mut self, epoch: u64, owner: &str, sink: &str) -> Self {
        self = self.claimed(epoch);
        let event = self.append.events.pop().unwrap();
        let kind = EventKind::RunClaimed { owner: owner.to_owned(), trace: None };
        self.append.events.push(Arc::new(Event { kind, ..(*event).clone() }));
        self.append.sinks.push(sink.to_owned());
        self
    }

    /// Adds a note that no worker claims the run.
    #[must_use]
    pub fn not_claimed(mut self) -> Self {
        self = self.says("");
        let event = self.append.events.pop().unwrap();
        let (owner, reason, message) = ("worker".to_owned(), ClaimRefusal::Changed, "other code".to_owned());
        let kind = EventKind::RunNotClaimed { owner, reason, message };
        self.append.events.push(Arc::new(Event { kind, ..(*event).clone() }));
        self
    }

    /// Sets the epoch of the append.
    #[must_use]
    pub const fn by(mut self, epoch: u64) -> Self {
        self.append.epoch = Some(Epoch(epoch));
        self
    }

    /// Changes the summary.
    #[must_use]
    pub fn row(mut self, change: impl FnOnce(&mut RunSummary)) -> Self {
        change(&mut self.append.index.summary);
        self
    }

    /// Sets the pending items.
    #[must_use]
    pub fn waits(mut self, pending: Vec<Pending>) -> Self {
        self.append.index.pending = Some(pending);
        self
    }

    /// Takes a webhook from the mailbox.
    #[must_use]
    pub fn delivers(mut self, mail: &SignalId) -> Self {
        self.append.deliveries.push(mail.clone());
        self
    }

    /// Changes a timer.
    #[must_use]
    pub fn changes(mut self, change: TimerChange) -> Self {
        self.append.timers.push(change);
        self
    }

    /// Adds a snapshot.
    #[must_use]
    pub fn snapshot(mut self, next: u64, content: &str) -> Self {
        self.append.snapshot = Some(Snapshot { next: Seq(next), version: 1, content: content.to_owned() });
        self
    }

    /// Adds a part of the saved prompts.
    #[must_use]
    pub fn prompts(mut self, from: u64, next: u64, content: &str) -> Self {
        self.append.prompts =
            Some(SavedPrompts { from: Seq(from), next: Seq(next), version: 1, content: content.to_owned() });
        self
    }

    /// Appends, and continues with the next append if the store accepts it.
    ///
    /// # Errors
    ///
    /// The store's error.
    pub async fn append(&mut self, store: &impl EventStore) -> Result<(), StoreError> {
        store.append(&self.run, self.append.clone()).await?;
        self.append.expected = Seq(self.append.expected.0 + self.append.events.len() as u64);
        self.append.events.clear();
        self.append.index.pending = None;
        self.append.deliveries.clear();
        self.append.timers.clear();
        self.append.snapshot = None;
        self.append.prompts = None;
        self.append.sinks.clear();
        Ok(())
    }

    /// Appends, and panics if the store refuses.
    #[must_use]
    pub async fn appended(mut self, store: &impl EventStore) -> Self {
        self.append(store).await.expect("the store appends");
        self
    }
}
