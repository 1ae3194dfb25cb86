//! How a run stands, in the words that lists show.

use std::collections::HashMap;
use std::sync::Arc;

use positronic_core::record::{Claim, RunSummary, Status};
use positronic_core::store::{EventStore, StoreError};

use super::error::{RefusedValue, nearest};

/// How a run stands: its status, or a word that lists show in the place of a status.
///
/// | word | runs with the status | that |
/// |---|---|---|
/// | `stuck` | running, waiting | have work that no worker can claim, or are claimed by a worker that has ended |
/// | `queued` | running | no worker has claimed yet |
/// | `sleeping` | waiting | wait for a time only |
/// | `parked` | paused | the engine has paused, because their process ended too often during the same work |
/// | `cut off` | completed | have a loop that a limit has ended |
///
/// ```
/// use positronic_core::record::Status;
/// use positronic_query::Standing;
///
/// assert_eq!(Standing::parse("failed,stuck"), Ok(vec![Standing::Status(Status::Failed), Standing::Stuck]));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// Has a status.
    Status(Status),
    /// Has work, and no live worker.
    Stuck,
    /// Has work, and was never claimed.
    Queued,
    /// Waits for a time.
    Sleeping,
    /// Was paused by the engine.
    Parked,
    /// Is completed, with a loop that a limit has ended.
    CutOff,
}

/// The words beside those of the statuses.
const WORDS: [Standing; 5] =
    [Standing::Stuck, Standing::Queued, Standing::Sleeping, Standing::Parked, Standing::CutOff];

impl Standing {
    /// Reads words that are separated by commas.
    ///
    /// # Errors
    ///
    /// What is wrong with a word, and what was probably meant.
    pub fn parse(text: &str) -> Result<Vec<Self>, RefusedValue> {
        let all = || Status::ALL.into_iter().map(Self::Status).chain(WORDS);
        let read = |word: &str| {
            let found = all().find(|standing| standing.as_str().eq_ignore_ascii_case(word));
            found.ok_or_else(|| {
                let names: Vec<_> = all().map(Self::as_str).collect();
                let near = nearest(&word.to_lowercase(), names.iter().copied());
                let hint = near.map(|near| format!("did you mean `{near}`?"));
                (format!("there is no status `{word}`: expected {}", names.join(", ")), hint)
            })
        };
        text.split(',').map(str::trim).map(read).collect()
    }

    /// Returns the word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Status(status) => status.as_str(),
            Self::Stuck => "stuck",
            Self::Queued => "queued",
            Self::Sleeping => "sleeping",
            Self::Parked => "parked",
            Self::CutOff => "cut off",
        }
    }

    /// Returns the statuses that runs which stand like this can have.
    pub(super) fn statuses(self) -> Vec<Status> {
        match self {
            Self::Status(status) => vec![status],
            Self::Stuck => vec![Status::Running, Status::Waiting],
            Self::Queued => vec![Status::Running],
            Self::Sleeping => vec![Status::Waiting],
            Self::Parked => vec![Status::Paused],
            Self::CutOff => vec![Status::Completed],
        }
    }
}

/// Says how runs stand. A worker is asked about once, since a list has many runs of few workers.
pub(super) struct Standings<'s> {
    store: &'s dyn EventStore,
    live: HashMap<Arc<str>, bool>,
}

impl<'s> Standings<'s> {
    pub(super) fn new(store: &'s dyn EventStore) -> Self {
        Self { store, live: HashMap::new() }
    }

    /// Returns whether a run stands in one of some ways.
    pub(super) async fn is_one_of(&mut self, wanted: &[Standing], row: &RunSummary) -> Result<bool, StoreError> {
        for standing in wanted {
            if standing.statuses().contains(&row.status) && self.is(*standing, row).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether a run that has one of the statuses stands like this.
    async fn is(&mut self, standing: Standing, row: &RunSummary) -> Result<bool, StoreError> {
        Ok(match standing {
            Standing::Status(_) => true,
            Standing::Stuck => match &row.claim {
                _ if row.refused.is_some() => true,
                Some(claim) if row.status == Status::Running => !self.is_live(claim).await?,
                Some(_) | None => false,
            },
            Standing::Queued => row.refused.is_none() && row.claim.is_none(),
            Standing::Sleeping => {
                row.refused.is_none() && row.why.as_deref().is_some_and(|why| why.starts_with("until "))
            }
            Standing::Parked => row.parked,
            Standing::CutOff => row.cut_off.is_some(),
        })
    }

    async fn is_live(&mut self, claim: &Claim) -> Result<bool, StoreError> {
        if claim.released {
            return Ok(false);
        }
        if let Some(live) = self.live.get(&claim.owner) {
            return Ok(*live);
        }
        let live = self.store.is_lease_live(&claim.owner).await?;
        self.live.insert(Arc::clone(&claim.owner), live);
        Ok(live)
    }
}
