//! The store's operations, each a few statements.

use std::sync::{Arc, Weak};

use positronic_core::record::{Event, RunId, RunSummary, Seq, SignalId, Timer, Timestamp, TriggerId};
use positronic_core::store::{
    Append, BlobStore, BoxFuture, Deferral, DueFilter, DueRun, Entry, EntryFilter, EntryStore, EventLog, EventMatches,
    EventSearch, FigureFilter, Figures, InboundWebhook, Lease, LeaseStore, MailboxEntry, MailboxStore, PendingFilter,
    PendingItem, PostOutcome, RunCounts, RunFilter, RunIndex, RunSums, SavedPrompts, SinkStore, Snapshot, StoreError,
    TimerFilter, TimerStore, Watcher, content_hash, verify_content,
};
use serde_json::Value;

use super::{REMOVED, SqliteStore};
use crate::append::{self, Encoded};
use crate::columns::encode;
use crate::group_commit::Tx;
use crate::options::Durability;
use crate::{blobs, due, entries, figures, mailbox, pending, query, remove, sinks, sums, timers};

impl EventLog for SqliteStore {
    fn append<'a>(&'a self, run: &'a RunId, append: Append) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let encoded = Encoded::new(run, append)?;
            let (writer, work) = (self.writer()?, move |tx: &mut Tx<'_>| append::write(tx, &encoded));
            match self.shared.durability {
                Durability::ProcessCrash => writer.write_here(run, work).await,
                Durability::PowerLoss => writer.write(work).await,
            }
        })
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        let run = run.clone();
        Box::pin(self.ask(move |db| query::read(db, &run, from, most)))
    }

    fn accepted<'a>(&'a self, run: &'a RunId, signal: &'a SignalId) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        let (run, signal) = (run.clone(), signal.clone());
        Box::pin(self.ask(move |db| query::accepted(db, &run, &signal)))
    }

    fn snapshot<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Snapshot>, StoreError>> {
        let run = run.clone();
        Box::pin(self.ask(move |db| query::snapshot(db, &run)))
    }

    fn saved_prompts<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<SavedPrompts>, StoreError>> {
        let run = run.clone();
        Box::pin(self.ask(move |db| query::saved_prompts(db, &run)))
    }

    fn remove<'a>(&'a self, runs: &'a [RunId]) -> BoxFuture<'a, Result<usize, StoreError>> {
        Box::pin(async move {
            let mut removed = 0;
            // In groups, so that concurrent appends do not wait for the full removal.
            for group in runs.chunks(REMOVED) {
                let group = group.to_vec();
                removed += self.write(move |tx| remove::runs(tx, &group)).await?;
            }
            while removed > 0 && self.write(remove::free).await? {}
            Ok(removed)
        })
    }

    fn watch(&self, run: Option<&RunId>, watcher: Weak<dyn Watcher>) {
        if let Some(writer) = &self.shared.writer {
            writer.watch(|watchers| watchers.add(run, watcher));
        }
    }
}

impl RunIndex for SqliteStore {
    fn run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunSummary, StoreError>> {
        let run = run.clone();
        Box::pin(self.ask(move |db| query::run(db, &run)))
    }

    fn runs<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunSummary>, StoreError>> {
        let filter = filter.clone();
        Box::pin(self.ask(move |db| query::runs(db, &filter)))
    }

    fn counts<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<RunCounts, StoreError>> {
        let filter = filter.clone();
        Box::pin(self.ask(move |db| query::counts(db, &filter)))
    }

    fn sums<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<RunSums, StoreError>> {
        let filter = filter.clone();
        Box::pin(self.ask(move |db| sums::sums(db, &filter)))
    }

    fn unreadable<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<(RunId, StoreError)>, StoreError>> {
        let filter = filter.clone();
        Box::pin(async move {
            let found = self.ask(move |db| query::unreadable(db, &filter)).await?;
            let store_file = &self.shared.store_file;
            Ok(found.into_iter().map(|(run, db_error)| (run, store_file.explain(db_error))).collect())
        })
    }

    fn pending<'a>(&'a self, filter: &'a PendingFilter) -> BoxFuture<'a, Result<Vec<PendingItem>, StoreError>> {
        let filter = filter.clone();
        Box::pin(self.ask(move |db| pending::list(db, &filter)))
    }

    fn figures<'a>(&'a self, filter: &'a FigureFilter) -> BoxFuture<'a, Result<Figures, StoreError>> {
        let filter = filter.clone();
        Box::pin(self.ask(move |db| figures::figures(db, &filter)))
    }

    fn search<'a>(&'a self, search: &'a EventSearch) -> BoxFuture<'a, Result<EventMatches, StoreError>> {
        let search = search.clone();
        Box::pin(async move {
            match &self.shared.searches {
                Some(searches) => searches.ask(move |db| query::search(db, &search)).await,
                None => Err(crate::failure::store_closed()),
            }
        })
    }
}

impl LeaseStore for SqliteStore {
    fn acquire_lease(&self) -> BoxFuture<'_, Result<Lease, StoreError>> {
        let workers = self.shared.workers.clone();
        Box::pin(async move {
            self.writes()?;
            self.ask(move |_| Ok(workers.acquire_lease()?)).await
        })
    }

    fn renew_lease<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        // A lease has no time to live: it is live until it is dropped.
        Box::pin(async move {
            let lapsed = || StoreError::LeaseLapsed { owner: owner.to_owned() };
            self.is_lease_live(owner).await?.then_some(()).ok_or_else(lapsed)
        })
    }

    fn is_lease_live<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        let (workers, owner) = (self.shared.workers.clone(), owner.to_owned());
        Box::pin(self.ask(move |_| Ok(workers.is_lease_live(&owner)?)))
    }

    fn due<'a>(&'a self, filter: &'a DueFilter) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        let (workers, filter) = (self.shared.workers.clone(), filter.clone());
        Box::pin(async move {
            let (read_workers, read_filter) = (workers.clone(), filter.clone());
            // Usually nothing is due, and then nothing is written.
            match self.ask(move |db| due::any(db, &read_workers, &read_filter)).await? {
                true => self.write(move |tx| due::reserve(tx.db(), &workers, &filter)).await,
                false => Ok(Vec::new()),
            }
        })
    }

    fn defer<'a>(&'a self, run: &'a RunId, next: Seq, deferral: &'a Deferral) -> BoxFuture<'a, Result<(), StoreError>> {
        let (run, deferral) = (run.clone(), deferral.clone());
        Box::pin(self.write(move |tx| due::defer(tx.db(), &run, next, &deferral)))
    }
}

impl MailboxStore for SqliteStore {
    fn post<'a>(&'a self, mail: &'a InboundWebhook) -> BoxFuture<'a, Result<PostOutcome, StoreError>> {
        let mail = mail.clone();
        Box::pin(async move {
            let content = encode(&mail)?;
            self.write(move |tx| mailbox::post(tx.db(), &mail, &content)).await
        })
    }

    fn mail<'a>(
        &'a self,
        webhook: &'a str,
        identifier: &'a str,
        since: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<InboundWebhook>, StoreError>> {
        let (webhook, identifier) = (webhook.to_owned(), identifier.to_owned());
        Box::pin(self.ask(move |db| mailbox::oldest(db, &webhook, &identifier, since, now)))
    }

    fn mailbox(&self) -> BoxFuture<'_, Result<Vec<MailboxEntry>, StoreError>> {
        Box::pin(self.ask(mailbox::all))
    }

    fn mailbox_entry<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<Option<MailboxEntry>, StoreError>> {
        let mail = mail.clone();
        Box::pin(self.ask(move |db| mailbox::one(db, &mail)))
    }

    fn discard<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<(), StoreError>> {
        let mail = mail.clone();
        Box::pin(self.write(move |tx| mailbox::discard(tx.db(), &mail)))
    }
}

impl TimerStore for SqliteStore {
    fn timers<'a>(&'a self, filter: &'a TimerFilter) -> BoxFuture<'a, Result<Vec<Timer>, StoreError>> {
        let filter = filter.clone();
        Box::pin(self.ask(move |db| timers::list(db, &filter)))
    }

    fn remove_timer<'a>(&'a self, id: &'a TriggerId) -> BoxFuture<'a, Result<bool, StoreError>> {
        let id = id.clone();
        Box::pin(self.write(move |tx| timers::remove(tx.db(), &id)))
    }
}

impl BlobStore for SqliteStore {
    fn put_blob(&self, bytes: Vec<u8>, at: Timestamp) -> BoxFuture<'_, Result<String, StoreError>> {
        Box::pin(async move {
            self.writes()?;
            // Not on the executor's thread: hashing 32 MiB takes 100 ms.
            let (name, bytes) = self.ask(move |_| Ok((content_hash(&bytes)?, bytes))).await?;
            let key = name.clone();
            self.write(move |tx| blobs::put(tx.db(), &key, &bytes, at)).await?;
            Ok(name)
        })
    }

    fn blob<'a>(&'a self, sha256: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        let sha256 = sha256.to_owned();
        Box::pin(self.ask(move |db| {
            let bytes = blobs::get(db, &sha256)?;
            Ok(bytes.map(|bytes| verify_content(&sha256, bytes)).transpose()?)
        }))
    }

    fn sweep_blobs(&self, before: Timestamp) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(async move {
            if !self.ask(move |db| blobs::any_unreferenced(db, before)).await? {
                return Ok(0);
            }
            let swept = self.write(move |tx| blobs::sweep(tx.db(), before)).await?;
            while swept > 0 && self.write(remove::free).await? {}
            Ok(swept)
        })
    }
}

impl EntryStore for SqliteStore {
    fn entry<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, StoreError>> {
        let (kind, key) = (kind.to_owned(), key.to_owned());
        Box::pin(self.ask(move |db| entries::one(db, &kind, &key)))
    }

    fn entries<'a>(&'a self, filter: &'a EntryFilter) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        let filter = filter.clone();
        Box::pin(self.ask(move |db| entries::list(db, &filter)))
    }

    fn put_entry<'a>(
        &'a self,
        kind: &'a str,
        key: &'a str,
        value: &'a Value,
        expected: Option<u64>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        let (kind, key) = (kind.to_owned(), key.to_owned());
        Box::pin(async move {
            let value = encode(value)?;
            self.write(move |tx| entries::put(tx.db(), &kind, &key, &value, expected)).await
        })
    }

    fn remove_entry<'a>(&'a self, kind: &'a str, key: &'a str, expected: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        let (kind, key) = (kind.to_owned(), key.to_owned());
        Box::pin(self.write(move |tx| entries::remove(tx.db(), &kind, &key, expected)))
    }
}

impl SinkStore for SqliteStore {
    fn sink_position<'a>(&'a self, run: &'a RunId, sink: &'a str) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        let (run, sink) = (run.clone(), sink.to_owned());
        Box::pin(self.ask(move |db| sinks::position(db, &run, &sink)))
    }

    fn set_sink_position<'a>(
        &'a self,
        run: &'a RunId,
        sink: &'a str,
        next: Seq,
        done: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (run, sink, done) = (run.clone(), sink.to_owned(), done.map(str::to_owned));
        Box::pin(self.write(move |tx| sinks::set(tx.db(), &run, &sink, next, done.as_deref())))
    }

    fn take_sink<'a>(
        &'a self,
        sink: &'a str,
        owner: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunId>, StoreError>> {
        let (workers, sink, owner) = (self.shared.workers.clone(), sink.to_owned(), owner.to_owned());
        Box::pin(async move {
            let (known, name) = (workers.clone(), sink.clone());
            // Mostly there are none, and a question delays no writer.
            if !self.ask(move |db| sinks::any_lost(db, &known, &name)).await? {
                return Ok(Vec::new());
            }
            self.write(move |tx| sinks::take(tx.db(), &workers, &sink, &owner, limit)).await
        })
    }
}
