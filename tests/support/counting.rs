//! A store that counts what is read from it.

use std::sync::{Arc, Mutex};

use positronic_core::record::{Event, RunId, RunSummary, Seq, SignalId};
use positronic_core::store::{
    Append, BoxFuture, EventStore, RunFilter, SavedPrompts, Snapshot, StoreError, StoreWrapper,
};

/// What was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reads {
    /// Queries, and appends.
    pub(crate) operations: usize,
    pub(crate) events: usize,
    pub(crate) rows: usize,
    pub(crate) snapshots: usize,
}

/// Counts the reads of another store. Clones share the counts.
#[derive(Clone)]
pub(crate) struct Counting {
    store: Arc<dyn EventStore>,
    reads: Arc<Mutex<Reads>>,
    spoils: fn(SavedPrompts) -> Option<SavedPrompts>,
}

impl Counting {
    pub(crate) fn over(store: impl EventStore) -> Self {
        Self { store: Arc::new(store), reads: Arc::default(), spoils: Some }
    }

    /// Changes what is read of saved prompts. It shares the counts.
    pub(crate) fn spoiling(&self, spoils: fn(SavedPrompts) -> Option<SavedPrompts>) -> Self {
        Self { spoils, ..self.clone() }
    }

    /// Returns what was read since the last call.
    pub(crate) fn take(&self) -> Reads {
        std::mem::take(&mut self.reads.lock().unwrap())
    }

    /// Counts an operation and, by `add`, its result.
    fn counted<'a, T: Send + 'a>(
        &'a self,
        answer: BoxFuture<'a, Result<T, StoreError>>,
        add: impl FnOnce(&mut Reads, &T) + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            let answer = answer.await;
            let mut reads = self.reads.lock().unwrap();
            reads.operations += 1;
            if let Ok(read) = &answer {
                add(&mut reads, read);
            }
            drop(reads);
            answer
        })
    }
}

impl StoreWrapper for Counting {
    type Inner = dyn EventStore;

    fn inner(&self) -> &Self::Inner {
        &*self.store
    }

    fn append<'a>(&'a self, run: &'a RunId, append: Append) -> BoxFuture<'a, Result<(), StoreError>> {
        self.counted(self.store.append(run, append), |_, ()| ())
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        self.counted(self.store.read(run, from, most), |reads, events| reads.events += events.len())
    }

    fn run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunSummary, StoreError>> {
        self.counted(self.store.run(run), |reads, _| reads.rows += 1)
    }

    fn runs<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunSummary>, StoreError>> {
        self.counted(self.store.runs(filter), |reads, rows| reads.rows += rows.len())
    }

    fn snapshot<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Snapshot>, StoreError>> {
        self.counted(self.store.snapshot(run), |reads, found| reads.snapshots += usize::from(found.is_some()))
    }

    fn saved_prompts<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<SavedPrompts>, StoreError>> {
        let spoiled =
            async move { Ok(self.store.saved_prompts(run).await?.into_iter().filter_map(self.spoils).collect()) };
        self.counted(Box::pin(spoiled), |reads, parts: &Vec<_>| reads.snapshots += parts.len())
    }

    fn accepted<'a>(&'a self, run: &'a RunId, signal: &'a SignalId) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        self.counted(self.store.accepted(run, signal), |_, _| ())
    }
}
