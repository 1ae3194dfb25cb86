//! Schedules of several servers.

use std::time::Duration;

use futures::future::join_all;
use positronic_core::dsl::brain;
use positronic_core::model::scripted::ScriptedModel;
use positronic_core::record::Timestamp;
use positronic_core::runner::{Clock, FireError, Runner};
use positronic_core::schedule::{Overlap, Schedule, TickOutcome};
use positronic_core::store::{EventStore, RunFilter};
use positronic_core::testing::TestClock;

/// Of many servers that look at a schedule at once, one starts the run of each tick.
pub async fn one_of_many_servers_starts_a_tick<S: EventStore>(open: impl Fn() -> S) {
    struct Stopped(Timestamp);
    impl Clock for Stopped {
        fn now(&self) -> Timestamp {
            self.0
        }
    }
    let server = |hours| {
        let now = TestClock::BEGIN.after(Duration::from_hours(hours));
        Runner::new(ScriptedModel::new([]))
            .store(open())
            .clock(Stopped(now))
            .brain(brain("Report").step("Print", async |_| Ok(())))
    };
    let schedule = Schedule::new("Report").every(Duration::from_hours(1)).overlap(Overlap::Allow);
    server(0).client().schedules().set("report", schedule).await.unwrap();
    for hour in 1..=3 {
        let servers = [server(hour), server(hour), server(hour), server(hour)];
        let looks = servers.iter().map(async |server| {
            let due = server.client().schedules().due().await.unwrap();
            join_all(due.iter().map(|timer| server.fire(timer))).await
        });
        let fired: Vec<_> = join_all(looks).await.into_iter().flatten().collect();

        let runs: Vec<_> = fired.iter().flatten().collect();
        assert_eq!(runs.len(), 1, "{fired:?}");
        let is_gone = |error: &FireError| matches!(error, FireError::Gone { .. });
        assert!(fired.iter().filter_map(|fired| fired.as_ref().err()).all(is_gone), "{fired:?}");
        runs[0].settled().await;
    }
    let store = open();
    let runs = store.runs(&RunFilter::default()).await.unwrap();
    let ids: Vec<_> = runs.iter().map(|row| row.run.as_str()).collect();
    assert_eq!(ids, ["report-20260101T030000Z", "report-20260101T020000Z", "report-20260101T010000Z"]);
    let ticks = server(3).client().schedules().ticks("report", None, 10).await.unwrap();
    assert_eq!(ticks.len(), 3);
    assert!(ticks.iter().all(|tick| matches!(tick.outcome, TickOutcome::Started { .. })), "{ticks:?}");
}
