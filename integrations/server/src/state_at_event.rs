//! Cached states of runs: the state as of an event is folded from the nearest kept state before it, and not from the
//! beginning of the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use positronic_core::machine::RunState;
use positronic_core::record::{RunId, Seq};
use positronic_core::runner::Client;
use positronic_core::store::StoreError;

use crate::run_cache::RunCache;

/// How many runs are cached.
const CACHED: usize = 16;
/// A state is kept after each of this many events.
const STEP: u64 = 256;
/// How many states of a run are kept; those of the beginning go first.
const KEPT: usize = 256;

/// The states of the runs that were read last.
pub(crate) struct CachedStates {
    client: Client,
    cached: RunCache<KeptStates>,
}

/// States by the number of the event after them.
type KeptStates = Arc<Mutex<BTreeMap<Seq, RunState>>>;

impl CachedStates {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, cached: RunCache::new(CACHED) }
    }

    /// Returns the state of a run as of an event.
    pub(crate) async fn at(&self, run: &RunId, at: Seq) -> Result<RunState, StoreError> {
        let kept = self.cached.get(run, KeptStates::default);
        let nearest = kept.lock().range(..=at.next()).next_back().map(|(_, state)| state.clone());
        let mut state = nearest.unwrap_or_default();
        while state.next <= at {
            // Up to the next state that is kept.
            let end = (state.next.0 / STEP + 1) * STEP;
            let most = Seq(end.min(at.next().0) - state.next.0).index();
            let events = self.client.store().read(run, state.next, most).await?;
            for event in &events {
                state.apply(event).map_err(|error| StoreError::Corrupt {
                    what: format!("the log of the run `{run}`"),
                    reason: error.to_string(),
                })?;
            }
            if events.len() < most {
                break;
            }
            if state.next.0 == end {
                let mut kept = kept.lock();
                kept.insert(state.next, state.clone());
                if kept.len() > KEPT {
                    kept.pop_first();
                }
            }
        }
        Ok(state)
    }
}
