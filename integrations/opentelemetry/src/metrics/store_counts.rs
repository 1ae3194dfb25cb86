//! Numbers of open runs and pending items, from a store.

use std::collections::BTreeMap;

use positronic_core::record::{PendingKind, Status, Timestamp};
use positronic_core::store::{EventStore, PendingFilter, PendingPages, RunFilter, RunPages, StoreError};

use crate::spans::WaitKind;

/// The kinds of pending items.
pub const PENDING_KINDS: [WaitKind; 4] = [WaitKind::Approval, WaitKind::Webhook, WaitKind::Reply, WaitKind::Budget];

/// The statuses of runs that have not ended.
const OPEN: [Status; 3] = [Status::Running, Status::Waiting, Status::Paused];

/// How many rows are read at most for each number, so that a scrape stays cheap.
const MOST: usize = 10_000;

/// How many runs of a store are open, and what is pending.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StoreCounts {
    /// The number of runs by status, of those that have not ended.
    pub runs: Vec<(Status, u64)>,
    /// The number of runs with work that no worker can claim.
    pub refused: u64,
    /// The pending items by kind.
    pub pending: BTreeMap<WaitKind, PendingCount>,
    /// Whether everything was counted: each list is read up to 10,000 rows.
    pub is_complete: bool,
}

/// The pending items of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PendingCount {
    /// How many there are.
    pub count: u64,
    /// Since when the oldest one waits.
    pub oldest: Option<Timestamp>,
}

impl StoreCounts {
    /// Counts the open runs and the pending items of a store.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    pub async fn read(store: &dyn EventStore) -> Result<Self, StoreError> {
        let mut counts = Self { is_complete: true, ..Self::default() };
        for status in OPEN {
            let filter = RunFilter::builder().status(vec![status]).limit(MOST).build();
            let (mut pages, mut count) = (RunPages::new(store, filter), 0);
            while let Some(page) = pages.next().await? {
                count += page.len();
                counts.refused += page.iter().filter(|row| row.refused.is_some()).count() as u64;
            }
            counts.is_complete &= count < MOST;
            counts.runs.push((status, count as u64));
        }
        counts.pending = PENDING_KINDS.map(|kind| (kind, PendingCount::default())).into();
        let mut pages = PendingPages::new(store, PendingFilter::builder().limit(MOST).build());
        let mut all = 0;
        while let Some(page) = pages.next().await? {
            all += page.len();
            for item in page {
                let count = counts.pending.entry(kind_of(&item.pending.kind)).or_default();
                count.count += 1;
                count.oldest = Some(count.oldest.map_or(item.at, |oldest| oldest.min(item.at)));
            }
        }
        counts.is_complete &= all < MOST;
        Ok(counts)
    }
}

fn kind_of(kind: &PendingKind) -> WaitKind {
    match kind {
        PendingKind::Approval { .. } => WaitKind::Approval,
        PendingKind::Budget(_) => WaitKind::Budget,
        PendingKind::Answer { waits } if waits.iter().any(|wait| wait.person) => WaitKind::Reply,
        PendingKind::Answer { .. } => WaitKind::Webhook,
    }
}
