//! A store in memory: for tests, and for runs that need not outlive their process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures::future::BoxFuture;

use super::{Append, EventStore, StoreError, Watcher};
use crate::record::{Body, Epoch, Event, EventError, RunId, Seq};

/// Keeps logs in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    logs: Arc<Mutex<BTreeMap<RunId, Log>>>,
}

#[derive(Default)]
struct Log {
    /// The events' lines of JSON, as any store keeps them: a tenth of what the decoded events would take.
    lines: Vec<Box<str>>,
    epoch: Epoch,
    watchers: Vec<Weak<dyn Watcher>>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} events", self.lines.len())
    }
}

impl Log {
    fn next(&self) -> Seq {
        Seq(self.lines.len() as u64)
    }
}

impl MemoryStore {
    /// Makes an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn logs(&self) -> MutexGuard<'_, BTreeMap<RunId, Log>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append_now(&self, run: &RunId, append: &Append) -> Result<(), StoreError> {
        let lines: Result<Vec<_>, _> =
            append.events.iter().map(|event| event.to_json().map(String::into_boxed_str)).collect();
        let lines = lines.map_err(broken)?;
        let (watchers, next) = {
            let mut logs = self.logs();
            if !logs.contains_key(run) {
                if append.expected != Seq(0) {
                    return Err(StoreError::Conflict { next: Seq(0) });
                }
                logs.insert(run.clone(), Log::default());
            }
            let Some(log) = logs.get_mut(run) else { return Err(StoreError::NoSuchRun { run: run.clone() }) };
            if log.next() != append.expected {
                return Err(StoreError::Conflict { next: log.next() });
            }
            if append.epoch.is_some_and(|epoch| epoch < log.epoch) {
                return Err(StoreError::Fenced { held: log.epoch });
            }
            let claimed = append.events.iter().filter(|event| matches!(event.body, Body::RunClaimed { .. }));
            if let Some(epoch) = claimed.filter_map(|event| event.epoch).max() {
                log.epoch = log.epoch.max(epoch);
            }
            log.lines.extend(lines);
            log.watchers.retain(|watcher| watcher.strong_count() > 0);
            (log.watchers.iter().filter_map(Weak::upgrade).collect::<Vec<_>>(), log.next())
        };
        for watcher in watchers {
            watcher.appended(next);
        }
        Ok(())
    }
}

impl EventStore for MemoryStore {
    fn append<'a>(&'a self, run: &'a RunId, append: Append) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(std::future::ready(self.append_now(run, &append)))
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        let events = match self.logs().get(run) {
            Some(log) => {
                let lines = log.lines.get(from.index()..).unwrap_or_default().iter().take(most);
                lines.map(|line| Event::from_json(line).map(Arc::new).map_err(broken)).collect()
            }
            None => Err(StoreError::NoSuchRun { run: run.clone() }),
        };
        Box::pin(std::future::ready(events))
    }

    fn runs(&self) -> BoxFuture<'_, Result<Vec<RunId>, StoreError>> {
        Box::pin(std::future::ready(Ok(self.logs().keys().cloned().collect())))
    }

    fn watch(&self, run: &RunId, watcher: Weak<dyn Watcher>) {
        if let Some(log) = self.logs().get_mut(run) {
            log.watchers.push(watcher);
        }
    }
}

fn broken(error: EventError) -> StoreError {
    StoreError::Failed { message: error.to_string() }
}
