//! Servers that look at the same schedules.

use std::time::Duration;

use positronic_core::record::Status;
use positronic_core::runner::{FireError, ServeEvent, Server};
use positronic_core::store::prelude::*;
use positronic_core::store::{MemoryStore, RunFilter};
use positronic_core::testing::TestClock;

use super::workshop::{HOUR, ManualClock, fire, hourly, look, process, record, ticks};
use futures::StreamExt as _;

#[tokio::test]
async fn two_servers_that_look_at_once_decide_each_tick_once() {
    let (clock, store) = (ManualClock::new(), MemoryStore::new());
    let (one, two) = (process("one", store.clone(), clock.clone()), process("two", store.clone(), clock.clone()));
    one.client().schedules().set("report", hourly("work")).await.unwrap();
    for hour in 1..=10 {
        clock.passes(HOUR);
        let (first, second) = tokio::join!(look(&one), look(&two));
        let fired: Vec<_> = first.into_iter().chain(second).collect();
        for run in fired.iter().flatten() {
            run.settled().await;
        }
        assert_eq!(fired.iter().flatten().count(), 1, "{fired:?}");
        assert!(fired.iter().all(|fired| !matches!(fired, Err(error) if !matches!(error, FireError::Gone { .. }))));
        assert_eq!(store.runs(&RunFilter::default()).await.unwrap().len(), hour);
    }
    assert_eq!(ticks(&one).await.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn server_starts_the_runs_of_schedules_and_reports_them() {
    let (clock, store) = (TestClock::default(), MemoryStore::new());
    let runner = process("one", store.clone(), clock.clone());
    runner.client().schedules().set("report", hourly("work")).await.unwrap();
    let server = Server::new(runner.client(), runner.clone());
    let mut events = server.events();
    let fired = async {
        loop {
            if let ServeEvent::Fired { timer, run } = events.next().await.unwrap() {
                return (timer.scheduled.unwrap().nominal, run);
            }
        }
    };
    let (nominal, run) = tokio::time::timeout(Duration::from_hours(2), fired).await.unwrap();

    assert_eq!((nominal, run.as_str()), (TestClock::BEGIN.after(HOUR), "report-20260101T010000Z"));
    tokio::time::timeout(Duration::from_secs(5), async { while events.next().await.is_some() {} }).await.unwrap_err();
    assert_eq!(store.run(&run).await.unwrap().status, Status::Completed);
    assert_eq!(ticks(&runner).await, ["01:00 started"]);
}

#[tokio::test]
async fn schedule_whose_zone_is_missing_shows_it_in_the_list_until_the_zone_is_there() {
    let (clock, store) = (ManualClock::new(), MemoryStore::new());
    let runner = process("one", store.clone(), clock.clone());
    let schedules = runner.client().schedules();
    schedules.set("report", hourly("work").zone("Europe/Berlin")).await.unwrap();
    // As written by a machine that knows more zones.
    let store_zone = async |zone: &str| {
        let entry = store.entry("schedule", "report").await.unwrap().unwrap();
        let mut value = entry.value;
        value["schedule"]["when"]["zone"] = zone.into();
        store.put_entry("schedule", "report", &value, Some(entry.revision)).await.unwrap();
    };
    store_zone("Europe/Atlantis").await;

    assert_eq!(schedules.due_of_all().await.unwrap(), [], "also before a time is due");
    let listed = schedules.list().await.unwrap();
    let broken = listed.schedules[0].broken.clone().unwrap();
    assert!(broken.times && broken.reason.contains("unknown time zone `Europe/Atlantis`"), "{broken:?}");
    clock.passes(HOUR);
    assert!(fire(&runner).await.is_empty());
    assert_eq!(schedules.list().await.unwrap(), listed, "it is noted once");

    store_zone("Europe/Berlin").await;
    assert_eq!(fire(&runner).await.len(), 1);
    assert_eq!(record(&runner).await.broken, None);
}

#[tokio::test]
async fn schedule_that_cannot_be_read_does_not_hide_the_others_and_can_be_removed() {
    let (clock, store) = (ManualClock::new(), MemoryStore::new());
    let runner = process("one", store.clone(), clock.clone());
    let schedules = runner.client().schedules();
    for id in ["audit", "broken", "report"] {
        schedules.set(id, hourly("work")).await.unwrap();
    }
    let entry = store.entry("schedule", "broken").await.unwrap().unwrap();
    store.put_entry("schedule", "broken", &"of a later release".into(), Some(entry.revision)).await.unwrap();

    let listed = schedules.list().await.unwrap();

    assert_eq!(listed.schedules.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["audit", "report"]);
    let [unreadable] = listed.unreadable.as_slice() else { panic!("{listed:?}") };
    assert_eq!(unreadable.id, "broken");
    assert!(unreadable.error.to_string().contains("the schedule `broken`"), "{}", unreadable.error);
    clock.passes(HOUR);
    assert_eq!(fire(&runner).await.len(), 2, "the others start their runs");
    assert_eq!(schedules.remove("broken").await, Ok(true));
    assert_eq!(schedules.list().await.unwrap().unreadable, []);
    assert_eq!(schedules.remove("broken").await, Ok(false));
}
