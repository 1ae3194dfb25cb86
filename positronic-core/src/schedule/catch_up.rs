//! Which of the due times still start a run.

use super::policy::CatchUp;
use super::state::MAX_QUEUED;
use super::tick_outcome::TickReason;
use crate::record::Timestamp;

/// Divides due times, each with the time at which it was to start, into those that start a run and those that are
/// missed. Both are in order.
pub(super) fn catch_up(
    policy: CatchUp,
    due: &[(Timestamp, Timestamp)],
    now: Timestamp,
) -> (Vec<Timestamp>, Vec<(Timestamp, TickReason)>) {
    let (late, on_time): (Vec<_>, Vec<_>) = due.iter().partition(|(_, starts)| now.since(*starts) > CatchUp::ON_TIME);
    let in_time = late.iter().filter(|(_, starts)| now.since(*starts) <= policy.within()).count();
    let most = match policy {
        CatchUp::None => 0,
        CatchUp::Latest { .. } => usize::from(on_time.is_empty()),
        CatchUp::All { most, .. } => usize::try_from(most).unwrap_or(MAX_QUEUED).min(MAX_QUEUED),
    };
    let (missed, caught) = late.split_at(late.len() - in_time.min(most));
    // With `Latest`, the last one that starts replaces those that are late but in time.
    let latest = match policy {
        CatchUp::Latest { .. } => caught.iter().chain(&on_time).map(|(nominal, _)| *nominal).next(),
        CatchUp::None | CatchUp::All { .. } => None,
    };
    let reason = |starts: Timestamp| match latest {
        Some(by) if now.since(starts) <= policy.within() => TickReason::Replaced { by },
        Some(_) | None => TickReason::Late { error: None },
    };
    let missed = missed.iter().map(|(nominal, starts)| (*nominal, reason(*starts))).collect();
    (caught.iter().chain(&on_time).map(|(nominal, _)| *nominal).collect(), missed)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: i64 = 1_000_000;
    const HOUR: Duration = Duration::from_hours(1);

    /// Returns which of the times that were `ago` seconds ago start a run.
    fn started(policy: CatchUp, ago: &[i64]) -> (Vec<i64>, Vec<i64>) {
        let now = Timestamp(1_000_000 * SECOND);
        let at = |ago: i64| Timestamp(now.0 - ago * SECOND);
        let due: Vec<_> = ago.iter().map(|ago| (at(*ago), at(*ago))).collect();
        let (started, missed) = catch_up(policy, &due, now);
        let ago = |time: &Timestamp| (now.0 - time.0) / SECOND;
        (started.iter().map(ago).collect(), missed.iter().map(|(time, _)| ago(time)).collect())
    }

    #[test]
    fn times_within_ten_seconds_always_start() {
        for policy in [CatchUp::None, CatchUp::default(), CatchUp::All { within: HOUR, most: 1 }] {
            assert_eq!(started(policy, &[10, 5, 0]).0, [10, 5, 0], "{policy:?}");
        }
        assert_eq!(started(CatchUp::None, &[60, 11, 3]), (vec![3], vec![60, 11]));
    }

    #[test]
    fn latest_starts_one_time_of_the_window() {
        assert_eq!(started(CatchUp::default(), &[7200, 3600, 60]), (vec![60], vec![7200, 3600]));
        assert_eq!(started(CatchUp::default(), &[3600, 60, 3]), (vec![3], vec![3600, 60]));
        assert_eq!(started(CatchUp::default(), &[7200, 3601]), (vec![], vec![7200, 3601]));
        assert_eq!(started(CatchUp::default(), &[3601, 3600]), (vec![3600], vec![3601]));
    }

    #[test]
    fn all_starts_the_latest_times_of_the_window() {
        let policy = |most| CatchUp::All { within: HOUR, most };
        assert_eq!(started(policy(2), &[4000, 3000, 2000, 1000, 5]), (vec![2000, 1000, 5], vec![4000, 3000]));
        assert_eq!(started(policy(9), &[4000, 3000, 2000]), (vec![3000, 2000], vec![4000]));
        assert_eq!(started(policy(0), &[3000]), (vec![], vec![3000]));
    }
}
