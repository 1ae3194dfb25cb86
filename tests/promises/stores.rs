//! The stores that the promises about durability and signals are tested on: all of them.

use std::sync::{Arc, mpsc};

use positronic_core::store::{BoxFuture, EventStore, MemoryStore, StoreError, StoreWrapper};
use positronic_sqlite::{Durability, SqliteOptions, SqliteStore};
use tempfile::TempDir;

/// Generates a test of each function for each store: `memory::promise_…` and `sqlite::promise_…`.
macro_rules! on_both_stores {
    ($($promise:ident)*) => {
        mod memory {
            $(#[tokio::test(start_paused = true)]
            async fn $promise() {
                super::$promise::<positronic_core::store::MemoryStore>().await;
            })*
        }

        mod sqlite {
            $(#[tokio::test(start_paused = true)]
            async fn $promise() {
                super::$promise::<crate::stores::OnDisk>().await;
            })*
        }
    };
}
pub(crate) use on_both_stores;

/// A kind of store that tests can create.
pub(crate) trait Fresh: EventStore + Clone {
    /// Creates an empty store.
    fn fresh() -> Self;

    /// Makes a worker look dead to the others, although it is alive.
    fn declare_dead(&self, owner: &str);
}

impl Fresh for MemoryStore {
    fn fresh() -> Self {
        Self::new()
    }

    fn declare_dead(&self, owner: &str) {
        self.declare_dead(owner);
    }
}

/// The embedded store, in its own folder. While it answers, the paused clock of a test stands still: tokio does not
/// know the store's threads, so it would take the wait for idleness and advance to the next timer.
#[derive(Clone)]
pub(crate) struct OnDisk {
    store: SqliteStore,
    folder: Arc<TempDir>,
}

impl Fresh for OnDisk {
    fn fresh() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions::builder().path(folder.path().join("runs.db")).durability(Durability::ProcessCrash);
        Self { store: SqliteStore::with(options.build()).unwrap(), folder: Arc::new(folder) }
    }

    fn declare_dead(&self, owner: &str) {
        std::fs::remove_file(self.folder.path().join("runs.db-workers").join(owner)).unwrap();
    }
}

impl OnDisk {
    /// Changes the file behind the store's back.
    pub(crate) fn execute(&self, sql: &str, value: &str) {
        let file = rusqlite::Connection::open(self.folder.path().join("runs.db")).unwrap();
        file.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
        assert_eq!(file.execute(sql, [value]).unwrap(), 1);
    }
}

/// Waits for an answer next to a task that keeps tokio busy.
fn keep_clock_still<'a, T: Send + 'a>(
    answer: BoxFuture<'a, Result<T, StoreError>>,
) -> BoxFuture<'a, Result<T, StoreError>> {
    Box::pin(async move {
        let (answered, until) = mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || until.recv());
        let answer: Result<T, StoreError> = answer.await;
        drop(answered);
        answer
    })
}

impl StoreWrapper for OnDisk {
    type Inner = SqliteStore;

    fn inner(&self) -> &SqliteStore {
        &self.store
    }

    fn intercept<'a, T: Send + 'a>(
        &'a self,
        _: &'static str,
        operation: impl FnOnce(&'a SqliteStore) -> BoxFuture<'a, Result<T, StoreError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        keep_clock_still(operation(&self.store))
    }
}
