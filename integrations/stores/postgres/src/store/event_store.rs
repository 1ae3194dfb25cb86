//! The store's operations, each a few statements.

use std::sync::{Arc, Weak};

use positronic_core::record::{Event, RunId, RunSummary, Seq, SignalId, Status, Timer, Timestamp, TriggerId};
use positronic_core::store::{
    Append, BlobStore, BoxFuture, Deferral, DueFilter, DueRun, Entry, EntryFilter, EntryStore, EventLog, EventMatches,
    EventSearch, FigureFilter, Figures, InboundWebhook, Lease, LeaseStore, MailboxEntry, MailboxStore, PendingFilter,
    PendingItem, PostOutcome, RunCounts, RunFilter, RunIndex, RunSums, SavedPrompts, SinkStore, Snapshot, StoreError,
    TimerFilter, TimerStore, Watcher,
};
use serde_json::Value;
use sqlx_postgres::PgRow;

use super::PostgresStore;
use crate::append::{Encoded, owned};
use crate::columns::{encode, no_such, seq};
use crate::connections::{get, statement};
use crate::failure::{DbError, StatementKind};
use crate::{blobs, entries, leases, mailbox, query, sinks, timers};

impl EventLog for PostgresStore {
    fn append<'a>(&'a self, run: &'a RunId, append: Append) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.writes()?;
            let encoded = Encoded::new(run, append)?;
            self.append_encoded(run, &encoded).await
        })
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        Box::pin(self.read_rows(
            move |schema| query::read(schema, run, from, most),
            move |rows| query::events(&rows, run, from, most),
        ))
    }

    fn accepted<'a>(&'a self, run: &'a RunId, signal: &'a SignalId) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        Box::pin(self.read_rows(
            move |schema| {
                let sql = format!(
                    "SELECT s.seq FROM {schema}.runs r LEFT JOIN {schema}.signals s ON s.key = r.key AND s.signal = $2
                     WHERE r.run = $1"
                );
                statement(sql).bind(owned(run.as_str())).bind(owned(signal.as_str()))
            },
            move |rows| {
                let row = rows.first().ok_or_else(|| no_such(run))?;
                Ok(get::<Option<i64>>(row, 0)?.map(seq))
            },
        ))
    }

    fn snapshot<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Snapshot>, StoreError>> {
        Box::pin(self.read_rows(
            move |schema| {
                let sql = format!(
                    "SELECT s.next, s.version, s.content FROM {schema}.runs r
                     JOIN {schema}.snapshots s ON s.key = r.key WHERE r.run = $1"
                );
                statement(sql).bind(owned(run.as_str()))
            },
            |rows| {
                let Some(row) = rows.first() else { return Ok(None) };
                let version = get::<i64>(row, 1)?.try_into().unwrap_or_default();
                Ok(Some(Snapshot { next: seq(get(row, 0)?), version, content: get(row, 2)? }))
            },
        ))
    }

    fn saved_prompts<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<SavedPrompts>, StoreError>> {
        Box::pin(self.read_rows(
            move |schema| {
                let sql = format!(
                    "SELECT p.first, p.next, p.version, p.content FROM {schema}.runs r
                     JOIN {schema}.saved_prompts p ON p.key = r.key WHERE r.run = $1 ORDER BY p.next"
                );
                statement(sql).bind(owned(run.as_str()))
            },
            |rows| {
                let part = |row: &PgRow| {
                    let version = get::<i64>(row, 2)?.try_into().unwrap_or_default();
                    let (from, next) = (seq(get(row, 0)?), seq(get(row, 1)?));
                    Ok(SavedPrompts { from, next, version, content: get(row, 3)? })
                };
                rows.iter().map(part).collect()
            },
        ))
    }

    fn remove<'a>(&'a self, runs: &'a [RunId]) -> BoxFuture<'a, Result<usize, StoreError>> {
        Box::pin(async move {
            let mut removed = 0;
            for run in runs {
                let remove =
                    |schema: &str| statement(format!("SELECT {schema}.remove_run($1)")).bind(owned(run.as_str()));
                let first = |rows: Vec<PgRow>| rows.first().map_or(Ok(false), |row| get(row, 0));
                removed += usize::from(self.write_rows(remove, first).await?);
            }
            Ok(removed)
        })
    }

    fn watch(&self, run: Option<&RunId>, watcher: Weak<dyn Watcher>) {
        self.shared.changes.watch(run, watcher);
    }
}

impl RunIndex for PostgresStore {
    fn run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunSummary, StoreError>> {
        Box::pin(self.read_rows(
            move |schema| {
                statement(format!("SELECT summary FROM {schema}.runs WHERE run = $1")).bind(owned(run.as_str()))
            },
            move |rows| {
                let row = rows.first().ok_or_else(|| no_such(run))?;
                query::summary(run.as_str(), get(row, 0)?)
            },
        ))
    }

    fn runs<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunSummary>, StoreError>> {
        Box::pin(self.list_runs(filter))
    }

    fn counts<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<RunCounts, StoreError>> {
        Box::pin(self.read_rows(
            move |schema| query::counts(schema, filter),
            move |rows| {
                let mut counts = RunCounts::default();
                for row in &rows {
                    let word: &str = get(row, 0)?;
                    if let Some(status) = Status::ALL.into_iter().find(|status| status.as_str() == word) {
                        counts.add(status, u64::try_from(get::<i64>(row, 1)?).unwrap_or_default());
                    }
                }
                Ok(counts)
            },
        ))
    }

    fn sums<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<RunSums, StoreError>> {
        Box::pin(self.sum_runs(filter))
    }

    fn unreadable<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<(RunId, StoreError)>, StoreError>> {
        let after = filter.after.as_ref().map(|after| (after.started.0, owned(after.run.as_str())));
        Box::pin(self.read_rows(
            move |schema| query::runs(schema, filter, after.as_ref(), filter.limit),
            move |rows| {
                let mut unreadable = Vec::new();
                for row in &rows {
                    let run = crate::text::value(get(row, 1)?);
                    let error = query::summary(&run, get(row, 0)?).err();
                    let explain = |error| self.shared.place.explain(error, StatementKind::Read);
                    unreadable.extend(error.map(|error| (RunId::from(run), explain(error))));
                }
                Ok(unreadable)
            },
        ))
    }

    fn pending<'a>(&'a self, filter: &'a PendingFilter) -> BoxFuture<'a, Result<Vec<PendingItem>, StoreError>> {
        Box::pin(self.list_pending(filter))
    }

    fn figures<'a>(&'a self, filter: &'a FigureFilter) -> BoxFuture<'a, Result<Figures, StoreError>> {
        Box::pin(self.add_up(filter))
    }

    fn search<'a>(&'a self, search: &'a EventSearch) -> BoxFuture<'a, Result<EventMatches, StoreError>> {
        Box::pin(self.find_text(search))
    }
}

impl LeaseStore for PostgresStore {
    fn acquire_lease(&self) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Box::pin(self.new_lease())
    }

    fn renew_lease<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let ttl = self.shared.options.lease_ttl;
            match self.lease_rows(|schema| leases::renew(schema, owner, ttl)).await?.is_empty() {
                true => Err(StoreError::LeaseLapsed { owner: owner.to_owned() }),
                false => Ok(()),
            }
        })
    }

    fn is_lease_live<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.read_rows(move |schema| leases::find(schema, owner), |rows| Ok(!rows.is_empty())))
    }

    fn due<'a>(&'a self, filter: &'a DueFilter) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        Box::pin(async move {
            self.writes()?;
            // Not repeated if the connection is lost: the first try may have reserved runs, which the caller does not know.
            let rows = self.shared.connections.rows_once(|| leases::due(&self.shared.schema, filter)).await;
            let due = rows.and_then(|rows| leases::due_runs(&rows));
            due.map_err(|error| self.shared.place.explain(error, StatementKind::Write))
        })
    }

    fn defer<'a>(&'a self, run: &'a RunId, next: Seq, deferral: &'a Deferral) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.write_rows(move |schema| leases::defer(schema, run, next, deferral), |_| Ok(())))
    }
}

impl MailboxStore for PostgresStore {
    fn post<'a>(&'a self, mail: &'a InboundWebhook) -> BoxFuture<'a, Result<PostOutcome, StoreError>> {
        Box::pin(async move {
            let content = encode(mail)?;
            let outcome = |rows: Vec<PgRow>| {
                let row = rows.first().ok_or_else(|| DbError::unreadable("the outcome of a post", "it has no row"))?;
                mailbox::posted(row)
            };
            self.write_rows(|schema| mailbox::post(schema, mail, &content), outcome).await
        })
    }

    fn mail<'a>(
        &'a self,
        webhook: &'a str,
        identifier: &'a str,
        since: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<InboundWebhook>, StoreError>> {
        Box::pin(self.read_rows(
            move |schema| mailbox::oldest(schema, webhook, identifier, since, now),
            |rows| rows.first().map(|row| crate::columns::decode("a webhook", get(row, 0)?)).transpose(),
        ))
    }

    fn mailbox(&self) -> BoxFuture<'_, Result<Vec<MailboxEntry>, StoreError>> {
        Box::pin(
            self.read_rows(|schema| mailbox::entries(schema, None), |rows| rows.iter().map(mailbox::entry).collect()),
        )
    }

    fn mailbox_entry<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<Option<MailboxEntry>, StoreError>> {
        Box::pin(self.read_rows(
            move |schema| mailbox::entries(schema, Some(mail)),
            |rows| rows.first().map(mailbox::entry).transpose(),
        ))
    }

    fn discard<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.write_rows(
            move |schema| {
                let sql = format!("DELETE FROM {schema}.mail WHERE id = $1 AND taken_by IS NULL");
                statement(sql).bind(owned(mail.as_str()))
            },
            |_| Ok(()),
        ))
    }
}

impl TimerStore for PostgresStore {
    fn timers<'a>(&'a self, filter: &'a TimerFilter) -> BoxFuture<'a, Result<Vec<Timer>, StoreError>> {
        Box::pin(
            self.read_rows(
                move |schema| timers::select(schema, filter),
                |rows| rows.iter().map(timers::timer).collect(),
            ),
        )
    }

    fn remove_timer<'a>(&'a self, id: &'a TriggerId) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.write_rows(
            move |schema| {
                let sql = format!("DELETE FROM {schema}.timers WHERE id = $1 RETURNING id");
                statement(sql).bind(owned(id.as_str()))
            },
            |rows| Ok(!rows.is_empty()),
        ))
    }
}

impl BlobStore for PostgresStore {
    fn put_blob(&self, bytes: Vec<u8>, at: Timestamp) -> BoxFuture<'_, Result<String, StoreError>> {
        Box::pin(self.store_blob(bytes, at))
    }

    fn blob<'a>(&'a self, sha256: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(self.load_blob(sha256))
    }

    fn sweep_blobs(&self, before: Timestamp) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.write_rows(move |schema| blobs::sweep(schema, before), |rows| Ok(rows.len())))
    }
}

impl EntryStore for PostgresStore {
    fn entry<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, StoreError>> {
        Box::pin(self.read_rows(
            move |schema| entries::one(schema, kind, key),
            |rows| rows.first().map(entries::entry).transpose(),
        ))
    }

    fn entries<'a>(&'a self, filter: &'a EntryFilter) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        Box::pin(
            self.read_rows(
                move |schema| entries::select(schema, filter),
                |rows| rows.iter().map(entries::entry).collect(),
            ),
        )
    }

    fn put_entry<'a>(
        &'a self,
        kind: &'a str,
        key: &'a str,
        value: &'a Value,
        expected: Option<u64>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            self.writes()?;
            let document = encode(value)?;
            // A repetition after a lost answer would find the entry changed.
            let put = || entries::put(&self.shared.schema, kind, key, &document, expected);
            let rows = self.shared.connections.rows_once(put).await;
            let revision = rows.and_then(|rows| rows.first().map(|row| get::<i64>(row, 0)).transpose());
            let revision = revision.map_err(|error| self.shared.place.explain(error, StatementKind::Write))?;
            revision.and_then(|revision| revision.try_into().ok()).ok_or_else(|| entries::changed(kind, key))
        })
    }

    fn remove_entry<'a>(&'a self, kind: &'a str, key: &'a str, expected: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let remove = |schema: &str| entries::remove(schema, kind, key, expected);
            let has_changed = |rows: Vec<PgRow>| rows.first().map_or(Ok(false), |row| get(row, 0));
            if self.write_rows(remove, has_changed).await? { Err(entries::changed(kind, key)) } else { Ok(()) }
        })
    }
}

impl SinkStore for PostgresStore {
    fn sink_position<'a>(&'a self, run: &'a RunId, sink: &'a str) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        Box::pin(self.read_rows(move |schema| sinks::position(schema, run, sink), |rows| sinks::next(&rows)))
    }

    fn set_sink_position<'a>(
        &'a self,
        run: &'a RunId,
        sink: &'a str,
        next: Seq,
        done: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.write_rows(move |schema| sinks::set(schema, run, sink, next, done), |_| Ok(())))
    }

    fn take_sink<'a>(
        &'a self,
        sink: &'a str,
        owner: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunId>, StoreError>> {
        Box::pin(self.write_rows(move |schema| sinks::take(schema, sink, owner, limit), |rows| sinks::taken(&rows)))
    }
}
