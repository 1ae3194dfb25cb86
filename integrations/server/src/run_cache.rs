//! A bounded cache by run, from which the run that was used longest ago goes first.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use positronic_core::record::{RunId, RunSummary, Seq};

/// What is cached of the runs that were used last.
pub(crate) struct RunCache<T> {
    most: usize,
    /// The last used run at the end.
    cached: Mutex<VecDeque<(RunId, T)>>,
}

impl<T: Clone> RunCache<T> {
    /// Creates a cache of at most so many runs.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, cached: Mutex::default() }
    }

    /// Returns what is cached of a run, which is created if it is not cached.
    pub(crate) fn get(&self, run: &RunId, create: impl FnOnce() -> T) -> T {
        let mut cached = self.cached.lock();
        let known = cached.iter().position(|(known, _)| known == run).and_then(|index| cached.remove(index));
        let (run, value) = known.unwrap_or_else(|| (run.clone(), create()));
        if cached.len() >= self.most {
            cached.pop_front();
        }
        cached.push_back((run, value.clone()));
        value
    }
}

/// What was computed of a run, and the number of its next event at that time.
type AtHead<T> = Arc<tokio::sync::Mutex<Option<(Seq, T)>>>;

/// What was computed of runs, until their next events.
pub(crate) struct HeadCache<T> {
    cached: RunCache<AtHead<T>>,
}

impl<T: Clone> HeadCache<T> {
    /// Creates a cache of at most so many runs.
    pub(crate) fn new(most: usize) -> Self {
        Self { cached: RunCache::new(most) }
    }

    /// Returns what is cached of a run with this head, or else computes it; requests at the same time wait for one computation. It
    /// is cached if it holds until the run's next event.
    pub(crate) async fn get<E>(
        &self,
        row: &RunSummary,
        holds: impl FnOnce(&T) -> bool,
        compute: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let cached = self.cached.get(&row.run, Arc::default);
        let mut cached = cached.lock().await;
        if let Some((next, value)) = &*cached
            && *next == row.next
        {
            return Ok(value.clone());
        }
        let value = compute.await?;
        *cached = holds(&value).then(|| (row.next, value.clone()));
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_that_was_used_longest_ago_goes_first() {
        let recent = RunCache::new(2);
        let get = |run: &str, number| recent.get(&RunId::new(run), || number);

        assert_eq!((get("a", 1), get("b", 2), get("a", 3)), (1, 2, 1));
        assert_eq!((get("c", 4), get("a", 5), get("b", 6)), (4, 1, 6));
    }
}
