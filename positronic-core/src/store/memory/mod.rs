//! In-memory store, for tests and for runs that need not outlive their process.

mod contents;
mod figures;
mod workers;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use self::contents::{Contents, StoredRun};
use self::workers::Workers;
use super::{
    Append, BlobStore, BoxFuture, Deferral, DeliveryState, DueFilter, DueRun, Entry, EntryFilter, EntryStore, EventLog,
    EventMatch, EventMatches, EventSearch, FigureFilter, Figures, InboundWebhook, Lease, LeaseStore, MailboxEntry,
    MailboxStore, PendingFilter, PendingItem, PostOutcome, REFUSALS, RunCounts, RunFilter, RunIndex, RunSums,
    SavedPrompts, SinkStore, Snapshot, StoreError, TimerFilter, TimerStore, Watcher, blob,
};
use crate::record::{Event, RunId, RunSummary, Seq, SignalId, Status, Timer, Timestamp, TriggerId};

/// Stores logs in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Mutex<Contents>>,
    workers: Arc<Mutex<Workers>>,
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time to live of leases that are acquired from now on. Without one, a lease is live until it is dropped.
    /// For tests of workers that lose their leases.
    #[must_use]
    pub fn lease_ttl(self, ttl: Duration) -> Self {
        self.workers.lock().ttl = Some(ttl);
        self
    }

    /// Lets a worker's lease lapse, as if its worker had not renewed it. For tests.
    pub fn declare_dead(&self, owner: &str) {
        self.workers.lock().end(owner);
    }

    fn append_now(&self, run: &RunId, append: Append) -> Result<(), StoreError> {
        let lines = append.lines()?;
        self.workers.lock().reserve_names(&append.events);
        let (watchers, next) = {
            let mut contents = self.shared.lock();
            let next = contents.append(run, append, lines)?;
            (contents.watchers.of(run), next)
        };
        for watcher in watchers {
            watcher.appended(run, next);
        }
        Ok(())
    }

    fn of<T>(&self, run: &RunId, f: impl FnOnce(&StoredRun) -> Result<T, StoreError>) -> Result<T, StoreError> {
        match self.shared.lock().runs.get(run) {
            Some(stored) => f(stored),
            None => Err(StoreError::NoSuchRun { run: run.clone() }),
        }
    }
}

fn ready<'a, T: Send + 'a>(answer: Result<T, StoreError>) -> BoxFuture<'a, Result<T, StoreError>> {
    Box::pin(std::future::ready(answer))
}

fn mailbox_entry((mail, taken): &(InboundWebhook, Option<(RunId, Seq)>)) -> MailboxEntry {
    MailboxEntry {
        id: mail.id.clone(),
        webhook: mail.webhook.clone(),
        identifier: mail.identifier.clone(),
        at: mail.at,
        expires: mail.expires,
        delivery: match taken {
            Some((run, seq)) => DeliveryState::Delivered { run: run.clone(), seq: *seq },
            None => DeliveryState::Undelivered(mail.clone()),
        },
    }
}

impl EventLog for MemoryStore {
    fn append<'a>(&'a self, run: &'a RunId, append: Append) -> BoxFuture<'a, Result<(), StoreError>> {
        ready(self.append_now(run, append))
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        ready(self.of(run, |stored| stored.read(run, from, most)))
    }

    fn accepted<'a>(&'a self, run: &'a RunId, signal: &'a SignalId) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        ready(self.of(run, |stored| Ok(stored.signals.get(signal).copied())))
    }

    fn snapshot<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Snapshot>, StoreError>> {
        ready(Ok(self.shared.lock().runs.get(run).and_then(|stored| stored.snapshot.clone())))
    }

    fn saved_prompts<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<SavedPrompts>, StoreError>> {
        let contents = self.shared.lock();
        ready(Ok(contents.runs.get(run).map(|stored| stored.prompts.clone()).unwrap_or_default()))
    }

    fn remove<'a>(&'a self, runs: &'a [RunId]) -> BoxFuture<'a, Result<usize, StoreError>> {
        let mut contents = self.shared.lock();
        let mut removed = 0;
        for run in runs {
            let is_needed = contents.runs.values().any(|stored| stored.summary.after.as_ref() == Some(run));
            if !is_needed && contents.runs.get(run).is_some_and(|stored| stored.summary.status.is_over()) {
                contents.remove(run);
                removed += 1;
            }
        }
        ready(Ok(removed))
    }

    fn watch(&self, run: Option<&RunId>, watcher: Weak<dyn Watcher>) {
        self.shared.lock().watchers.add(run, watcher);
    }
}

impl RunIndex for MemoryStore {
    fn run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunSummary, StoreError>> {
        ready(self.of(run, |stored| Ok(stored.summary.clone())))
    }

    fn runs<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunSummary>, StoreError>> {
        let contents = self.shared.lock();
        let rows = contents.rows(filter).take(filter.limit.unwrap_or(usize::MAX));
        ready(Ok(rows.map(|stored| stored.summary.clone()).collect()))
    }

    fn counts<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<RunCounts, StoreError>> {
        let filter = RunFilter { after: None, ..filter.clone() };
        let contents = self.shared.lock();
        let mut counts = RunCounts::default();
        contents.rows(&filter).for_each(|stored| counts.add(stored.summary.status, 1));
        ready(Ok(counts))
    }

    fn sums<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<RunSums, StoreError>> {
        let filter = RunFilter { after: None, ..filter.clone() };
        let contents = self.shared.lock();
        let mut sums = RunSums::default();
        contents.rows(&filter).for_each(|stored| sums.add(&stored.summary));
        ready(Ok(sums))
    }

    fn unreadable<'a>(&'a self, _: &'a RunFilter) -> BoxFuture<'a, Result<Vec<(RunId, StoreError)>, StoreError>> {
        // Summaries are not encoded.
        ready(Ok(Vec::new()))
    }

    fn pending<'a>(&'a self, filter: &'a PendingFilter) -> BoxFuture<'a, Result<Vec<PendingItem>, StoreError>> {
        let contents = self.shared.lock();
        let mut items: Vec<_> = contents.items().filter(|item| filter.passes(item)).collect();
        items.sort_by_cached_key(PendingItem::cursor);
        items.truncate(filter.limit.unwrap_or(usize::MAX));
        ready(Ok(items))
    }

    fn figures<'a>(&'a self, filter: &'a FigureFilter) -> BoxFuture<'a, Result<Figures, StoreError>> {
        ready(Ok(figures::figures(filter, &self.shared.lock())))
    }

    fn search<'a>(&'a self, search: &'a EventSearch) -> BoxFuture<'a, Result<EventMatches, StoreError>> {
        let text = search.text.to_lowercase();
        let contents = self.shared.lock();
        let runs = contents.rows(&search.runs);
        let (mut found, mut scanned, mut last) = (Vec::new(), 0, None);
        for stored in runs {
            let place = stored.summary.cursor();
            scanned += stored.next().index();
            if last.is_some() && search.scan.is_some_and(|most| scanned > most) {
                return ready(Ok(EventMatches::new(found, last)));
            }
            let hits = stored.lines.from(Seq(0)).filter(|(_, line)| line.to_lowercase().contains(&text));
            let hits = hits.take(if search.once { 1 } else { usize::MAX }).take(search.limit - found.len());
            found.extend(hits.map(|(seq, line)| EventMatch::new(place.run.clone(), seq, line.to_owned())));
            if found.len() == search.limit {
                break;
            }
            last = Some(place);
        }
        ready(Ok(EventMatches::new(found, None)))
    }
}

impl LeaseStore for MemoryStore {
    fn acquire_lease(&self) -> BoxFuture<'_, Result<Lease, StoreError>> {
        ready(Ok(Workers::acquire(&self.workers)))
    }

    fn renew_lease<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        ready(self.workers.lock().renew(owner))
    }

    fn is_lease_live<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(Ok(self.workers.lock().is_live(owner)))
    }

    fn due<'a>(&'a self, filter: &'a DueFilter) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        let now = Instant::now();
        let mut contents = self.shared.lock();
        let workers = self.workers.lock();
        let is_due = |stored: &&mut StoredRun| {
            let (row, queued) = (&stored.summary, &stored.queued);
            let is_claimed = row.claim.as_ref().is_some_and(|claim| !claim.released && workers.is_live(&claim.owner));
            let is_hidden = match &queued.until {
                Some((until, Some(owner))) => *until > now && workers.is_live(owner),
                Some((until, None)) => *until > now && !filter.paused,
                None => false,
            };
            let is_refused = [&filter.code, &filter.owner].into_iter().any(|code| queued.refusals.contains(code));
            (filter.runs.is_empty() || filter.runs.contains(&row.run))
                && (row.has_work(filter.now) || row.mail)
                && !(is_claimed || is_hidden || is_refused)
        };
        let mut due: Vec<_> = contents.runs.values_mut().filter(is_due).collect();
        due.sort_by_cached_key(|stored| {
            let row = &stored.summary;
            (row.wake.filter(|_| row.status == Status::Waiting && !row.mail), row.started, row.run.clone())
        });
        due.truncate(filter.limit);
        let reserved = due.into_iter().map(|stored| {
            stored.queued.until = Some((now + filter.reserve, Some(filter.owner.clone())));
            DueRun::new(stored.summary.clone(), stored.queued.failures)
        });
        ready(Ok(reserved.collect()))
    }

    fn defer<'a>(&'a self, run: &'a RunId, next: Seq, deferral: &'a Deferral) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut contents = self.shared.lock();
        if let Some(stored) = contents.runs.get_mut(run).filter(|stored| stored.next() == next) {
            let queued = &mut stored.queued;
            queued.until = None;
            match deferral {
                Deferral::Released => {}
                Deferral::Paused { failures, pause } => {
                    queued.until = Instant::now().checked_add(*pause).map(|until| (until, None));
                    queued.failures = *failures;
                }
                Deferral::Refused { code } => {
                    queued.refusals.retain(|known| known != code);
                    queued.refusals.push_back(code.clone());
                    if queued.refusals.len() > REFUSALS {
                        queued.refusals.pop_front();
                    }
                }
            }
        }
        ready(Ok(()))
    }
}

impl MailboxStore for MemoryStore {
    fn post<'a>(&'a self, mail: &'a InboundWebhook) -> BoxFuture<'a, Result<PostOutcome, StoreError>> {
        let mut contents = self.shared.lock();
        contents.mail.retain(|_, (stored, _)| stored.expires > mail.at);
        let posted = match contents.mail.get(&mail.id) {
            Some((_, Some((run, seq)))) => PostOutcome::Delivered { run: run.clone(), seq: *seq },
            Some((_, None)) => PostOutcome::Duplicate,
            None => {
                contents.mail.insert(mail.id.clone(), (mail.clone(), None));
                PostOutcome::New
            }
        };
        ready(Ok(posted))
    }

    fn mail<'a>(
        &'a self,
        webhook: &'a str,
        identifier: &'a str,
        since: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<InboundWebhook>, StoreError>> {
        let contents = self.shared.lock();
        let fits = |mail: &&InboundWebhook| {
            let is_in_time = mail.at >= since && mail.expires > now;
            mail.webhook == webhook && mail.identifier == identifier && is_in_time
        };
        let free = contents.mail.values().filter(|(_, taken)| taken.is_none()).map(|(mail, _)| mail).filter(fits);
        ready(Ok(free.min_by_key(|mail| (mail.at, &mail.id)).cloned()))
    }

    fn mailbox(&self) -> BoxFuture<'_, Result<Vec<MailboxEntry>, StoreError>> {
        let contents = self.shared.lock();
        let mut entries: Vec<_> = contents.mail.values().map(mailbox_entry).collect();
        entries.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        ready(Ok(entries))
    }

    fn mailbox_entry<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<Option<MailboxEntry>, StoreError>> {
        ready(Ok(self.shared.lock().mail.get(mail).map(mailbox_entry)))
    }

    fn discard<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut contents = self.shared.lock();
        if contents.mail.get(mail).is_some_and(|(_, taken)| taken.is_none()) {
            contents.mail.remove(mail);
        }
        ready(Ok(()))
    }
}

impl TimerStore for MemoryStore {
    fn timers<'a>(&'a self, filter: &'a TimerFilter) -> BoxFuture<'a, Result<Vec<Timer>, StoreError>> {
        let contents = self.shared.lock();
        let mut timers: Vec<_> = contents.timers.values().filter(|timer| filter.passes(timer)).cloned().collect();
        timers.sort_by(|a, b| (a.trigger.due, &a.trigger.id).cmp(&(b.trigger.due, &b.trigger.id)));
        timers.truncate(filter.limit.unwrap_or(usize::MAX));
        ready(Ok(timers))
    }

    fn remove_timer<'a>(&'a self, id: &'a TriggerId) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(Ok(self.shared.lock().timers.remove(id).is_some()))
    }
}

impl BlobStore for MemoryStore {
    fn put_blob(&self, bytes: Vec<u8>, at: Timestamp) -> BoxFuture<'_, Result<String, StoreError>> {
        ready(blob::content_hash(&bytes).inspect(|name| {
            let mut contents = self.shared.lock();
            let stored = contents.blobs.entry(name.clone()).or_insert_with(|| (at, bytes));
            stored.0 = stored.0.max(at);
        }))
    }

    fn blob<'a>(&'a self, sha256: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        let stored = self.shared.lock().blobs.get(sha256).map(|(_, bytes)| bytes.clone());
        ready(stored.map(|bytes| blob::verify_content(sha256, bytes)).transpose())
    }

    fn sweep_blobs(&self, before: Timestamp) -> BoxFuture<'_, Result<usize, StoreError>> {
        let mut contents = self.shared.lock();
        let Contents { runs, blobs, .. } = &mut *contents;
        let count = blobs.len();
        blobs.retain(|name, (at, _)| *at >= before || runs.values().any(|stored| stored.blobs.contains(name)));
        ready(Ok(count - blobs.len()))
    }
}

impl EntryStore for MemoryStore {
    fn entry<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, StoreError>> {
        let contents = self.shared.lock();
        ready(Ok(contents.entries.get(kind).and_then(|entries| entries.get(key)).cloned()))
    }

    fn entries<'a>(&'a self, filter: &'a EntryFilter) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        let contents = self.shared.lock();
        let entries = contents.entries.get(&filter.kind).into_iter().flat_map(BTreeMap::values);
        let mut found: Vec<_> = entries.filter(|entry| filter.passes(&entry.key)).cloned().collect();
        if filter.reverse {
            found.reverse();
        }
        found.truncate(filter.limit.unwrap_or(usize::MAX));
        ready(Ok(found))
    }

    fn put_entry<'a>(
        &'a self,
        kind: &'a str,
        key: &'a str,
        value: &'a Value,
        expected: Option<u64>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        let mut contents = self.shared.lock();
        let entries = contents.entries.entry(kind.to_owned()).or_default();
        if entries.get(key).map(|entry| entry.revision) != expected {
            return ready(Err(StoreError::EntryChanged { kind: kind.to_owned(), key: key.to_owned() }));
        }
        let revision = expected.unwrap_or_default().saturating_add(1);
        entries.insert(key.to_owned(), Entry::new(key, revision, value.clone()));
        ready(Ok(revision))
    }

    fn remove_entry<'a>(&'a self, kind: &'a str, key: &'a str, expected: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut contents = self.shared.lock();
        let Some(entries) = contents.entries.get_mut(kind) else { return ready(Ok(())) };
        if entries.get(key).is_some_and(|entry| entry.revision != expected) {
            return ready(Err(StoreError::EntryChanged { kind: kind.to_owned(), key: key.to_owned() }));
        }
        entries.remove(key);
        ready(Ok(()))
    }
}

impl SinkStore for MemoryStore {
    fn sink_position<'a>(&'a self, run: &'a RunId, sink: &'a str) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        let contents = self.shared.lock();
        ready(Ok(contents.runs.get(run).and_then(|stored| stored.sinks.get(sink)).map(|(next, _)| *next)))
    }

    fn set_sink_position<'a>(
        &'a self,
        run: &'a RunId,
        sink: &'a str,
        next: Seq,
        done: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut contents = self.shared.lock();
        if let Some(stored) = contents.runs.get_mut(run) {
            let end = stored.next();
            if let Some((position, feeder)) = stored.sinks.get_mut(sink) {
                *position = next.max(*position);
                if *position >= end && feeder.as_deref() == done {
                    *feeder = None;
                }
            }
        }
        ready(Ok(()))
    }

    fn take_sink<'a>(
        &'a self,
        sink: &'a str,
        owner: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunId>, StoreError>> {
        let mut contents = self.shared.lock();
        let workers = self.workers.lock();
        let feeders = contents.runs.iter_mut().filter_map(|(run, stored)| Some((run, stored.sinks.get_mut(sink)?)));
        let lost = feeders.filter_map(|(run, (_, feeder))| {
            let feeder = feeder.as_mut().filter(|feeder| !workers.is_live(feeder))?;
            owner.clone_into(feeder);
            Some(run.clone())
        });
        ready(Ok(lost.take(limit).collect()))
    }
}
