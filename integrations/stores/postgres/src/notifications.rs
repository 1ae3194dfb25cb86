//! Watching: how a store notices appends of other processes.
//!
//! An append does not notify in its own transaction: commits that notify wait for each other on the whole server. A
//! task sends the notifications of all appends since its last ones, at most every ten milliseconds. Another task listens,
//! on a connection of its own, and a third one asks for changed runs before a second is over, so that a lost
//! notification, connection or process delays a change by no more than that. A watcher may hear of one change twice.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use positronic_core::record::{RunId, Seq, sha256};
use positronic_core::store::{Watcher, Watchers};
use serde::{Deserialize, Serialize};
use sqlx_postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::columns::seq;
use crate::connections::{Connections, get, statement};
use crate::failure::DbError;
use crate::text::value;

/// How often the store asks for changed runs while it has watchers.
const POLL: Duration = Duration::from_millis(750);
/// How far back a poll looks, in units of 15 seconds: transactions that began earlier have ended.
const LOOK_BACK: i64 = 4;
/// The shortest pause between two notifications of one store.
const PAUSE: Duration = Duration::from_millis(10);
/// How long to wait before listening again after a failure.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// The largest payload of a notification in bytes; the server's limit is 8000.
const PAYLOAD: usize = 7900;

/// What the watchers of a store know.
pub(crate) struct StoreChanges {
    /// Tells this store's notifications from those of others.
    id: String,
    schema: String,
    channel: String,
    known: Mutex<WatcherState>,
    unsent: Notify,
    reconnected: Notify,
}

#[derive(Default)]
struct WatcherState {
    watchers: Watchers,
    /// The next numbers of runs that changed lately, as the watchers know them.
    seen: HashMap<RunId, Seq>,
    /// The appends that no notification has told yet.
    unsent: HashMap<RunId, Seq>,
}

/// The content of a notification.
#[derive(Serialize, Deserialize)]
struct Notification {
    from: String,
    /// The runs with their next numbers. Those with ids too long for a notification are found by polls.
    runs: Vec<(RunId, Seq)>,
}

impl StoreChanges {
    pub(crate) fn new(id: String, schema_name: &str, schema: &str) -> Self {
        // The name of a channel has at most 63 bytes.
        let channel = format!("positronic_{}", sha256(schema_name.as_bytes()).get(..32).unwrap_or_default());
        let (known, unsent, reconnected) = (Mutex::default(), Notify::new(), Notify::new());
        Self { id, schema: schema.to_owned(), channel, known, unsent, reconnected }
    }

    /// Starts the tasks. They end when their handles are aborted.
    pub(crate) fn start(
        self: &Arc<Self>,
        connections: &Arc<Connections>,
        listens_with: Option<&PgConnectOptions>,
        read_only: bool,
    ) -> Vec<AbortHandle> {
        let mut tasks = vec![tokio::spawn(poll(Arc::clone(self), Arc::clone(connections))).abort_handle()];
        if let Some(options) = listens_with {
            tasks.push(tokio::spawn(listen(Arc::clone(self), options.clone())).abort_handle());
        }
        if !read_only {
            tasks.push(tokio::spawn(send(Arc::clone(self), Arc::clone(connections))).abort_handle());
        }
        tasks
    }

    pub(crate) fn watch(&self, run: Option<&RunId>, watcher: Weak<dyn Watcher>) {
        self.known.lock().watchers.add(run, watcher);
    }

    /// Notifies the watchers of this store, and later those of others, of an append of this store.
    pub(crate) fn appended(&self, run: &RunId, next: Seq) {
        let watchers = {
            let mut known = self.known.lock();
            known.unsent.insert(run.clone(), next);
            known.learn(run, next)
        };
        self.unsent.notify_one();
        call(&watchers, run, next);
    }

    /// Notifies the watchers of this store of an append by another one.
    fn learn(&self, run: &RunId, next: Seq) {
        let watchers = self.known.lock().learn(run, next);
        call(&watchers, run, next);
    }

    /// Replaces what is known by the runs that changed lately.
    fn polled(&self, rows: Vec<(RunId, Seq)>) {
        for (run, next) in &rows {
            self.learn(run, *next);
        }
        self.known.lock().seen = rows.into_iter().collect();
    }

    fn heard(&self, payload: &str) {
        match serde_json::from_str::<Notification>(payload) {
            Ok(payload) if payload.from == self.id => {}
            Ok(payload) => payload.runs.iter().for_each(|(run, next)| self.learn(run, *next)),
            Err(error) => tracing::debug!(%error, "skipped a notification"),
        }
    }

    /// Returns the notifications of all untold appends.
    fn payloads(&self) -> Vec<String> {
        let unsent = std::mem::take(&mut self.known.lock().unsent);
        let (mut payloads, mut runs, mut size) = (Vec::new(), Vec::new(), 0);
        let encode = |runs| serde_json::to_string(&Notification { from: self.id.clone(), runs }).ok();
        for (run, next) in unsent {
            // A character of an id has at most six in JSON.
            let own = serde_json::to_string(&(&run, next)).map_or(PAYLOAD, |text| text.len() + 1);
            if own + 100 > PAYLOAD {
                continue;
            }
            if size + own + 100 > PAYLOAD {
                payloads.extend(encode(std::mem::take(&mut runs)));
                size = 0;
            }
            size += own;
            runs.push((run, next));
        }
        if !runs.is_empty() {
            payloads.extend(encode(runs));
        }
        payloads
    }
}

impl WatcherState {
    /// Returns the watchers that do not know this number yet.
    fn learn(&mut self, run: &RunId, next: Seq) -> Vec<Arc<dyn Watcher>> {
        // A smaller number is that of a run that was removed and has begun again.
        if self.seen.insert(run.clone(), next) == Some(next) {
            return Vec::new();
        }
        self.watchers.of(run).collect()
    }
}

fn call(watchers: &[Arc<dyn Watcher>], run: &RunId, next: Seq) {
    for watcher in watchers {
        watcher.appended(run, next);
    }
}

/// Listens for notifications of other processes.
async fn listen(changes: Arc<StoreChanges>, options: PgConnectOptions) {
    loop {
        let listened = async {
            let pool = PgPoolOptions::new().max_connections(1).idle_timeout(None).max_lifetime(None);
            let pool = pool.test_before_acquire(false).connect_lazy_with(options.clone());
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.listen(&changes.channel).await?;
            loop {
                match listener.try_recv().await? {
                    Some(notification) => changes.heard(notification.payload()),
                    None => tracing::debug!("listens again for appends of other processes"),
                }
            }
        };
        tokio::select! {
            failed = listened => {
                let Err(error): Result<std::convert::Infallible, sqlx_core::Error> = failed;
                tracing::debug!(%error, "cannot listen for appends of other processes; polls find them");
                tokio::time::sleep(LISTEN_AGAIN).await;
            }
            // A connection that was cut without notice seems to be open for hours.
            () = changes.reconnected.notified() => {}
        }
    }
}

/// Asks for changed runs again and again, while there are watchers.
async fn poll(changes: Arc<StoreChanges>, connections: Arc<Connections>) {
    let mut last: Option<i64> = None;
    let mut failed = false;
    loop {
        tokio::time::sleep(POLL).await;
        {
            let mut known = changes.known.lock();
            if known.watchers.is_empty() {
                known.seen.clear();
                last = None;
                continue;
            }
        }
        match changed(&changes.schema, &connections, last).await {
            Ok((now, rows)) => {
                last = Some(now);
                if std::mem::take(&mut failed) {
                    changes.reconnected.notify_one();
                }
                changes.polled(rows);
            }
            Err(error) => {
                tracing::debug!(?error, "cannot ask for appends of other processes");
                failed = true;
            }
        }
    }
}

/// Returns the runs that changed since a time of the server's clock, and that time now.
async fn changed(
    schema: &str,
    connections: &Connections,
    since: Option<i64>,
) -> Result<(i64, Vec<(RunId, Seq)>), DbError> {
    let sql = format!(
        "SELECT c.now, r.run, r.next FROM (SELECT {schema}.change_time() AS now OFFSET 0) c
         LEFT JOIN {schema}.runs r ON r.changed >= coalesce($1, c.now) - {LOOK_BACK}"
    );
    let rows = connections.rows(|| statement(sql.clone()).bind(since)).await?;
    let now = rows.first().map_or(Ok(0), |row| get(row, 0))?;
    let mut runs = Vec::with_capacity(rows.len());
    for row in &rows {
        if let Some(run) = get::<Option<String>>(row, 1)? {
            runs.push((RunId::from(value(run)), seq(get(row, 2)?)));
        }
    }
    Ok((now, runs))
}

/// Sends notifications of appends of this store.
async fn send(changes: Arc<StoreChanges>, connections: Arc<Connections>) {
    // A commit of notifications alone need not wait for the disk.
    const SQL: &str = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, payload)
                       FROM unnest($2::text[]) payload";
    loop {
        changes.unsent.notified().await;
        let payloads = changes.payloads();
        if !payloads.is_empty() {
            let sent = connections
                .rows_once(|| statement(SQL.to_owned()).bind(changes.channel.clone()).bind(payloads.clone()))
                .await;
            if let Err(error) = sent {
                tracing::debug!(?error, "cannot notify other processes of appends; their polls find them");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_stay_within_the_limit_of_the_server() {
        let changes = StoreChanges::new("one".to_owned(), "positronic", "positronic");
        for number in 0..1000_u64 {
            changes.appended(&RunId::from(format!("run \0\u{1F600}\"{number}")), Seq(u64::MAX - number));
        }
        changes.appended(&RunId::from("x".repeat(9000)), Seq(1));

        let payloads = changes.payloads();

        assert!(payloads.iter().all(|payload| payload.len() < 8000 && !payload.contains('\0')));
        let runs: usize =
            payloads.iter().map(|payload| serde_json::from_str::<Notification>(payload).unwrap().runs.len()).sum();
        assert_eq!(runs, 1000);
        assert!(payloads.len() > 1 && changes.payloads().is_empty());
    }
}
