//! A network between workers and their store, which delays, loses and cuts off messages.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use positronic_core::record::{RunId, Seq};
use positronic_core::store::prelude::*;
use positronic_core::store::{BoxFuture, MemoryStore, StoreError, StoreWrapper, Watcher};
use tokio::sync::watch;

/// How long a client waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The methods that write nothing.
const READS: [&str; 18] = [
    "read",
    "accepted",
    "snapshot",
    "saved_prompts",
    "run",
    "runs",
    "unreadable",
    "pending",
    "search",
    "is_lease_live",
    "mail",
    "mailbox",
    "mailbox_entry",
    "timers",
    "blob",
    "entry",
    "entries",
    "sink_position",
];

/// Pseudo-random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// One machine's connection to the store.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    store: MemoryStore,
    line: Arc<Line>,
}

#[derive(Debug)]
struct Line {
    cut: watch::Sender<bool>,
    dice: Mutex<Dice>,
    /// One of so many messages is lost; zero for none.
    loses: u64,
    /// The longest delay of a message in milliseconds.
    delay: u64,
    watchers: Mutex<Vec<Arc<RemoteWatcher>>>,
}

impl Connection {
    /// Connects a machine. One of `loses` messages is lost in each direction.
    pub(crate) fn new(store: &MemoryStore, seed: u64, loses: u64, delay: u64) -> Self {
        let (cut, dice, watchers) = (watch::Sender::new(false), Mutex::new(Dice(seed)), Mutex::default());
        Self { store: store.clone(), line: Arc::new(Line { cut, dice, loses, delay, watchers }) }
    }

    /// Cuts the machine off, or connects it again.
    pub(crate) fn cut(&self, cut: bool) {
        self.line.cut.send_replace(cut);
        if !cut {
            for watcher in &*self.line.watchers.lock().unwrap() {
                watcher.catch_up();
            }
        }
    }

    /// Delivers a message, or fails if it does not arrive in time.
    async fn deliver(&self) -> Result<(), StoreError> {
        let (delay, lost) = {
            let (mut dice, line) = (self.line.dice.lock().unwrap(), &self.line);
            let delay = dice.below(line.delay + 1);
            (Duration::from_millis(delay), line.loses > 0 && dice.below(line.loses) == 0)
        };
        tokio::time::sleep(delay).await;
        let failed = || StoreError::Failed { message: "no answer".to_owned() };
        if lost {
            tokio::time::sleep(TIMEOUT).await;
            return Err(failed());
        }
        let mut cut = self.line.cut.subscribe();
        match tokio::time::timeout(TIMEOUT, cut.wait_for(|cut| !*cut)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(failed()),
        }
    }
}

/// A watcher that gets nothing while its machine is cut off, and everything afterwards.
struct RemoteWatcher {
    watcher: Weak<dyn Watcher>,
    cut: watch::Receiver<bool>,
    missed: Mutex<Vec<(RunId, Seq)>>,
}

impl RemoteWatcher {
    fn catch_up(&self) {
        let missed = std::mem::take(&mut *self.missed.lock().unwrap());
        for (run, next) in missed {
            self.appended(&run, next);
        }
    }
}

impl std::fmt::Debug for RemoteWatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RemoteWatcher")
    }
}

impl Watcher for RemoteWatcher {
    fn appended(&self, run: &RunId, next: Seq) {
        match self.watcher.upgrade() {
            Some(_) if *self.cut.borrow() => self.missed.lock().unwrap().push((run.clone(), next)),
            Some(watcher) => watcher.appended(run, next),
            None => {}
        }
    }
}

impl StoreWrapper for Connection {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    fn intercept<'a, T: Send + 'a>(
        &'a self,
        method: &'static str,
        operation: impl FnOnce(&'a MemoryStore) -> BoxFuture<'a, Result<T, StoreError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            self.deliver().await?;
            let answer = operation(&self.store).await;
            match self.deliver().await {
                Ok(()) => answer,
                Err(error) if READS.contains(&method) => Err(error),
                Err(_) => Err(StoreError::Unknown { message: "the answer was lost".to_owned() }),
            }
        })
    }

    fn watch(&self, run: Option<&RunId>, watcher: Weak<dyn Watcher>) {
        let cut = self.line.cut.subscribe();
        let remote = Arc::new(RemoteWatcher { watcher, cut, missed: Mutex::default() });
        let shared: Arc<dyn Watcher> = Arc::clone(&remote) as Arc<dyn Watcher>;
        self.store.watch(run, Arc::downgrade(&shared) as Weak<dyn Watcher>);
        let mut watchers = self.line.watchers.lock().unwrap();
        watchers.retain(|known| known.watcher.strong_count() > 0);
        watchers.push(remote);
    }
}
