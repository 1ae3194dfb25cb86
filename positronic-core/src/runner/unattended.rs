//! Runs whose handle was dropped before they ended.
//!
//! A runner continues the runs that it started or resumed, whether their handles are held or not. Of one that waits it keeps
//! the id and the brain's code, watches its log, and claims it again when there is work: an answer came, a time is up, or a
//! failure has rested. This ends with the runner and its clones, so what is kept here does not keep them alive.
//!
//! ```text
//! attend ──handle dropped──▶ Runs ──an append, a time──▶ look at the row ──work──▶ claim ──▶ attend
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::{Notify, OnceCell};

use super::clock::sleep_until;
use super::open::Resumption;
use super::shared::Shared;
use super::{Clock, ResumeError, Runner};
use crate::definition::BrainDefinition;
use crate::record::{RunId, Seq, Timestamp};
use crate::store::{Lease, StoreError, Watcher};

/// How long it takes until a run is looked at again that another worker has, or whose row could not be read.
const LOOK: Duration = Duration::from_secs(1);

/// The brains that a runner has started, by title. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Started(Arc<Mutex<HashMap<String, Arc<BrainDefinition>>>>);

impl Started {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<BrainDefinition>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a brain, in the place of an earlier one of its title.
    pub(super) fn insert(&self, definition: &Arc<BrainDefinition>) {
        let mut all = self.all();
        if all.get(&definition.title).is_none_or(|known| !Arc::ptr_eq(known, definition)) {
            all.insert(definition.title.clone(), Arc::clone(definition));
        }
    }

    pub(super) fn get(&self, title: &str) -> Option<Arc<BrainDefinition>> {
        self.all().get(title).cloned()
    }
}

/// A runner's part in its unattended runs. Clones share it; when the last one is dropped, the runs are left to others.
#[derive(Clone)]
pub(super) struct Unattended {
    runs: Arc<Runs>,
    /// None in the task itself, and in the runs that it continues until their handles are gone.
    _owner: Option<Arc<Owner>>,
}

impl Unattended {
    /// Makes the part of a new runner.
    pub(super) fn new() -> Self {
        let runs = Arc::<Runs>::default();
        Self { _owner: Some(Arc::new(Owner(Arc::clone(&runs)))), runs }
    }

    /// Makes a part that keeps no runner alive.
    fn weak(&self) -> Self {
        Self { runs: Arc::clone(&self.runs), _owner: None }
    }
}

struct Owner(Arc<Runs>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
        self.0.known().clear();
        self.0.bell.notify_one();
    }
}

#[derive(Default)]
struct Runs {
    known: Mutex<HashMap<RunId, Known>>,
    rung: Mutex<HashSet<RunId>>,
    bell: Notify,
    closed: AtomicBool,
    /// Whether the task is there that waits for work.
    works: AtomicBool,
}

/// What is kept of an unattended run.
struct Known {
    runner: Asleep,
    definition: Arc<BrainDefinition>,
    /// When it is looked at although nothing is appended.
    wake: Option<Timestamp>,
    _watch: Arc<Watch>,
}

/// Rings when something is appended to a run.
struct Watch(Weak<Runs>);

impl Watcher for Watch {
    fn appended(&self, run: &RunId, _: Seq) {
        if let Some(runs) = self.0.upgrade() {
            runs.ring(run.clone());
        }
    }
}

impl Runs {
    fn known(&self) -> MutexGuard<'_, HashMap<RunId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rung(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self, run: RunId) {
        self.rung().insert(run);
        self.bell.notify_one();
    }

    /// Takes the runs out that are to be looked at, and says when the next one is.
    fn ready(&self, now: Timestamp) -> (Vec<(RunId, Known)>, Option<Timestamp>) {
        let mut rung = std::mem::take(&mut *self.rung());
        let mut known = self.known();
        let timed = known.iter().filter(|(_, known)| known.wake.is_some_and(|wake| wake <= now));
        rung.extend(timed.map(|(run, _)| run.clone()));
        let ready = rung.into_iter().filter_map(|run| known.remove_entry(&run)).collect();
        (ready, known.values().filter_map(|known| known.wake).min())
    }

    /// Keeps a run, unless its runner is gone or has taken it in again meanwhile.
    fn keep(&self, run: RunId, known: Known) {
        let mut all = self.known();
        if !self.closed.load(Ordering::Acquire) {
            all.entry(run).or_insert(known);
        }
    }
}

/// A runner without its liveness: other workers may claim its runs as soon as the runner itself is gone.
struct Asleep {
    runner: Runner,
    owner: Weak<OnceCell<Lease>>,
}

impl Asleep {
    fn of(runner: &Runner) -> Self {
        let owner = Arc::downgrade(&runner.owner);
        let runner =
            Runner { unattended: runner.unattended.weak(), owner: Arc::new(OnceCell::new()), ..runner.clone() };
        Self { runner, owner }
    }

    fn wake(&self) -> Option<Runner> {
        Some(Runner { owner: self.owner.upgrade()?, ..self.runner.clone() })
    }
}

/// What is known of a run when its last handle is dropped.
pub(super) struct Unheld {
    runner: Asleep,
    run: RunId,
    definition: Arc<BrainDefinition>,
}

impl Unheld {
    /// Makes it of a run that the runner continues by itself.
    pub(super) fn of(shared: &Shared) -> Option<Self> {
        let definition = shared.definition.clone().filter(|_| !shared.served)?;
        Some(Self { runner: Asleep::of(&shared.runner), run: shared.run.clone(), definition })
    }

    /// Keeps the run, and looks at it at once: an answer may have come just before.
    pub(super) fn keep(self) {
        let Self { runner, run, definition } = self;
        let Runner { unattended, store, clock, .. } = &runner.runner;
        let (runs, clock) = (Arc::clone(&unattended.runs), Arc::clone(clock));
        let watch = Arc::new(Watch(Arc::downgrade(&runs)));
        let watcher: Arc<dyn Watcher> = Arc::clone(&watch) as Arc<dyn Watcher>;
        store.watch(Some(&run), Arc::downgrade(&watcher) as Weak<dyn Watcher>);
        runs.keep(run.clone(), Known { runner, definition, wake: None, _watch: watch });
        runs.ring(run);
        if !runs.closed.load(Ordering::Acquire) && !runs.works.swap(true, Ordering::AcqRel) {
            tokio::spawn(work(runs, clock));
        }
    }
}

/// Continues unattended runs until their runner is gone.
async fn work(runs: Arc<Runs>, clock: Arc<dyn Clock>) {
    let mut looks = FuturesUnordered::new();
    while !runs.closed.load(Ordering::Acquire) {
        let (ready, wake) = runs.ready(clock.now());
        looks.extend(ready.into_iter().map(|(run, known)| look(&runs, run, known)));
        tokio::select! {
            Some(()) = looks.next() => {}
            () = runs.bell.notified() => {}
            () = sleep_until(&*clock, wake) => {}
        }
    }
}

/// Looks at a run, and continues it where there is work that no worker does.
async fn look(runs: &Runs, run: RunId, mut known: Known) {
    let now = known.runner.runner.clock.now();
    known.wake = match continued(&known.runner, &run, &known.definition, now).await {
        Ok(Looked::Gone) => return,
        Ok(Looked::Waits(wake)) => wake,
        Err(error) => {
            tracing::warn!(%run, %error, "the run cannot be looked at for now");
            Some(now.after(LOOK))
        }
    };
    runs.keep(run, known);
}

enum Looked {
    /// It is over, or attended to again.
    Gone,
    /// There is nothing to do before this time, unless something is appended.
    Waits(Option<Timestamp>),
}

async fn continued(
    asleep: &Asleep,
    run: &RunId,
    definition: &Arc<BrainDefinition>,
    now: Timestamp,
) -> Result<Looked, StoreError> {
    let runner = &asleep.runner;
    let row = match runner.store.run(run).await {
        Ok(row) => row,
        Err(StoreError::NoSuchRun { .. }) => return Ok(Looked::Gone),
        Err(error) => return Err(error),
    };
    if row.status.is_over() || runner.in_hand.is_leaving() || runner.in_hand.has(run) {
        return Ok(Looked::Gone);
    }
    if !row.has_work(now) {
        return Ok(Looked::Waits(row.wake));
    }
    if let Some(rest) = runner.backoffs.rest(run)
        && !runner.backoffs.hear(run, &runner.store.read(run, rest.since, usize::MAX).await?)
    {
        return Ok(Looked::Waits(Some(now.after(rest.left))));
    }
    // Up to here nothing needs the runner to be alive, and a look must not make a dropped runner count as alive.
    let Some(runner) = asleep.wake() else { return Ok(Looked::Gone) };
    let how = Resumption { definition: Some(Arc::clone(definition)), ..Resumption::default() };
    Ok(match runner.resume_as(run, how).await {
        Ok(_) | Err(ResumeError::Over { .. } | ResumeError::Leaves) => Looked::Gone,
        Err(ResumeError::Claimed { .. }) => Looked::Waits(Some(now.after(LOOK))),
        Err(error) => {
            tracing::warn!(%run, %error, "the run cannot go on for now");
            runner.backoffs.add(run, row.next, Some(error));
            let rest = runner.backoffs.rest(run).map_or(LOOK, |rest| rest.left);
            Looked::Waits(Some(now.after(rest)))
        }
    })
}
