//! Runs of schedules in a store: what they get, what is recorded, and what people do.

use std::time::Duration;

use positronic_core::prelude::*;
use positronic_core::record::{Actor, EventKind, RunId, Scheduled, Seq, Start, Status, TickCause};
use positronic_core::runner::{FireError, ScheduleError};
use positronic_core::schedule::{Overlap, Schedule};
use positronic_core::store::{EventStore, MemoryStore, RunFilter};
use positronic_sqlite::SqliteStore;
use serde_json::json;

use super::workshop::{HOUR, MINUTE, ManualClock, at, finish, fire, hourly, job, look, process, record, ticks, words};
use crate::support::path;

/// Generates a test of each function for each store.
macro_rules! on_both_stores {
    ($($name:ident)+) => {
        mod memory {
            $(#[tokio::test]
            async fn $name() {
                let store = super::MemoryStore::new();
                super::$name(move || store.clone()).await;
            })+
        }
        mod sqlite {
            $(#[tokio::test]
            async fn $name() {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("runs.db");
                super::$name(move || super::SqliteStore::open(&path).unwrap()).await;
            })+
        }
    };
}

on_both_stores! {
    schedule_starts_runs_with_its_options_and_records_each_tick
    skipped_and_missed_ticks_have_a_reason
    cancel_other_cancels_the_waiting_run_and_starts_the_next
    pause_resume_and_change_count_versions
    triggered_schedule_starts_a_run_now
    trigger_knows_that_a_run_has_ended_without_a_server
    backfill_starts_only_times_without_a_run
    broken_schedule_says_why_and_starts_when_a_server_can
    removed_schedule_starts_nothing
    clock_that_goes_back_starts_no_tick_twice
    times_that_were_missed_while_the_clock_was_ahead_start_when_they_come
}

async fn schedule_starts_runs_with_its_options_and_records_each_tick<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let runner = process("one", open(), clock.clone());
    let schedule = hourly("work").message("The figures of January.").user("ann");
    runner.client().schedules().by("ben").set("report", schedule).await.unwrap();
    clock.passes(HOUR - Duration::from_micros(1));
    assert!(fire(&runner).await.is_empty());
    clock.passes(Duration::from_micros(1));

    let run = RunId::new("report-20260101T010000Z");
    assert_eq!(fire(&runner).await, std::slice::from_ref(&run));

    let row = runner.client().store().run(&run).await.unwrap();
    assert_eq!((row.status, row.user.as_deref()), (Status::Completed, Some("ann")));
    let begin = runner.client().events(&run, Seq(0)).await.unwrap();
    let EventKind::BrainStart(begin) = &begin[0].kind else { panic!("{begin:?}") };
    let Start { scheduled, message, actor, .. } = begin.start.clone().unwrap();
    let tick = Scheduled {
        schedule: "report".into(),
        nominal: at("2026-01-01T01:00:00Z"),
        cause: TickCause::Scheduled,
        by: Some("ben".into()),
    };
    assert_eq!(scheduled, Some(tick));
    assert_eq!(message.unwrap().text, "The figures of January.");
    assert_eq!((actor.by.as_deref(), actor.channel.as_deref()), (Some("ben"), Some("schedule")));
    assert_eq!(begin.options, job("work"));
    assert_eq!(ticks(&runner).await, ["01:00 started"]);
    assert!(fire(&runner).await.is_empty());
    clock.passes(HOUR);
    assert_eq!(fire(&runner).await, [RunId::new("report-20260101T020000Z")]);
    assert_eq!(ticks(&runner).await, ["01:00 started", "02:00 started"]);
}

async fn skipped_and_missed_ticks_have_a_reason<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let runner = process("one", open(), clock.clone());
    let schedules = runner.client().schedules();
    schedules.set("report", hourly("wait")).await.unwrap();
    clock.passes(HOUR);
    let [run] = &fire(&runner).await[..] else { panic!("one is due") };
    let waits = runner.client().store().run(run).await.unwrap();
    assert_eq!(waits.status, Status::Waiting);
    clock.passes(HOUR);
    assert!(fire(&runner).await.is_empty(), "the run waits for a person");
    runner.client().approve(run, &path("Send/0.0"), Actor::default()).await.unwrap();
    finish(&runner, run).await;
    clock.passes(3 * HOUR + MINUTE);
    fire(&runner).await;

    assert_eq!(
        ticks(&runner).await,
        [
            "01:00 started",
            "02:00 skipped: the run report-20260101T010000Z has not ended",
            "03:00 missed: no server was running in time",
            "04:00 missed: no server was running in time",
            "05:00 started",
        ]
    );
    let page = schedules.ticks("report", None, 2).await.unwrap();
    assert_eq!(page.iter().map(words).collect::<Vec<_>>()[0], "05:00 started");
    let next = schedules.ticks("report", page.last().map(|tick| (tick.nominal, tick.cause)), 2).await.unwrap();
    assert!(words(&next[0]).starts_with("03:00 missed"), "{next:?}");
}

async fn cancel_other_cancels_the_waiting_run_and_starts_the_next<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let runner = process("one", open(), clock.clone());
    runner.client().schedules().set("report", hourly("wait").overlap(Overlap::CancelOther)).await.unwrap();
    clock.passes(HOUR);
    let [first] = &fire(&runner).await[..] else { panic!("one is due") };
    clock.passes(HOUR);
    assert!(fire(&runner).await.is_empty(), "it waits for the end of the cancelled run");
    finish(&runner, first).await;
    assert_eq!(runner.client().store().run(first).await.unwrap().status, Status::Cancelled);

    assert_eq!(fire(&runner).await, [RunId::new("report-20260101T020000Z")]);
    assert_eq!(ticks(&runner).await, ["01:00 started", "02:00 started"]);
}

async fn pause_resume_and_change_count_versions<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let runner = process("one", open(), clock.clone());
    let schedules = runner.client().schedules();
    assert_eq!(schedules.set_if("report", hourly("work"), 1).await, changed(0));
    assert_eq!(schedules.set_if("report", hourly("work"), 0).await.unwrap().version, 1);
    assert_eq!(schedules.set_if("report", hourly("work"), 0).await, changed(1));

    let paused = schedules.clone().by("ann").pause("report", Some("holidays")).await.unwrap();
    assert_eq!((paused.version, paused.paused.unwrap().by.as_deref()), (2, Some("ann")));
    clock.passes(2 * HOUR + MINUTE);
    assert!(fire(&runner).await.is_empty());
    assert_eq!(schedules.resume("report").await.unwrap().version, 3);
    assert!(fire(&runner).await.is_empty(), "what was missed during the pause does not start");
    assert_eq!(
        ticks(&runner).await,
        ["01:00 missed: the schedule was paused", "02:00 missed: the schedule was paused"]
    );

    let changed_by_ann = schedules.set_if("report", hourly("work").message("Hello"), 3).await.unwrap();
    assert_eq!((changed_by_ann.version, changed_by_ann.next), (4, Some(at("2026-01-01T03:00:00Z"))));
    assert_eq!(schedules.set_if("report", hourly("work"), 3).await, changed(4));
    assert_eq!(schedules.pause("other", None).await, Err(ScheduleError::NotFound { id: "other".to_owned() }));
    for id in ["", "a b", "a/b", "ä", &"x".repeat(101)] {
        assert_eq!(schedules.set(id, hourly("work")).await, Err(ScheduleError::Id { id: id.to_owned() }));
    }
}

fn changed<T>(version: u64) -> Result<T, ScheduleError> {
    Err(ScheduleError::Changed { id: "report".to_owned(), version })
}

async fn triggered_schedule_starts_a_run_now<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let runner = process("one", open(), clock.clone());
    let schedules = runner.client().schedules();
    schedules.set("report", hourly("wait")).await.unwrap();
    clock.passes(HOUR);

    // At the time of a tick, and twice in the same microsecond.
    assert_eq!(words(&schedules.trigger("report", None).await.unwrap()), "01:00 by hand due");
    let second = schedules.clone().by("cy").trigger("report", Some(Overlap::BufferOne)).await.unwrap();
    assert_eq!(words(&second), "01:00 by hand buffered");
    let runs = fire(&runner).await;
    assert_eq!(runs, [RunId::new("report-20260101T010000Z-manual")]);
    let ticks = ticks(&runner).await;
    assert_eq!(ticks.len(), 3, "the schedule's own tick is another one: {ticks:?}");
    runner.client().approve(&runs[0], &path("Send/0.0"), Actor::default()).await.unwrap();
    finish(&runner, &runs[0]).await;
    let second = RunId::new("report-20260101T010000.000001Z-manual");
    assert_eq!(fire(&runner).await, std::slice::from_ref(&second));
    let state = runner.client().state(&second).await.unwrap();
    assert_eq!(state.start.actor.by.as_deref(), Some("cy"), "the run is started in the name of who has asked for it");
}

async fn trigger_knows_that_a_run_has_ended_without_a_server<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let runner = process("one", open(), clock.clone());
    let schedules = runner.client().schedules();
    schedules.set("report", hourly("work")).await.unwrap();
    for minute in 1..=2 {
        clock.passes(MINUTE);
        let tick = schedules.trigger("report", None).await.unwrap();
        assert_eq!(words(&tick), format!("00:0{minute} by hand due"));
        assert_eq!(fire(&runner).await.len(), 1);
    }
}

async fn backfill_starts_only_times_without_a_run<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let runner = process("one", open(), clock.clone());
    let schedules = runner.client().schedules();
    schedules.set("report", hourly("work")).await.unwrap();
    clock.passes(HOUR);
    fire(&runner).await;
    clock.passes(3 * HOUR);
    assert_eq!(fire(&runner).await.len(), 1, "04:00; the times before it are missed");

    let (from, until) = (at("2025-12-31T23:00:00Z"), at("2026-01-01T04:00:00Z"));
    let filled = schedules.backfill("report", from, until, Overlap::BufferAll).await.unwrap();
    assert_eq!(filled.len(), 4, "{filled:?}");
    for expected in ["20251231T230000Z", "20260101T000000Z", "20260101T020000Z", "20260101T030000Z"] {
        assert_eq!(fire(&runner).await, [RunId::new(format!("report-{expected}"))]);
    }
    assert!(fire(&runner).await.is_empty());
    let again = schedules.backfill("report", from, until, Overlap::BufferAll).await.unwrap_err();
    assert_eq!(again.to_string(), "the range has no time in the past that has not started a run");
    assert!(ticks(&runner).await.iter().all(|tick| tick.ends_with("started")));
}

async fn broken_schedule_says_why_and_starts_when_a_server_can<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let runner = process("one", open(), clock.clone());
    let schedules = runner.client().schedules();
    schedules.set("report", hourly("work").options(json!({"whom": "ann"}))).await.unwrap();
    clock.passes(HOUR);
    let [Err(FireError::Start { .. })] = &look(&runner).await[..] else { panic!("the options do not fit") };
    let reason = record(&runner).await.broken.unwrap().reason;
    assert!(reason.starts_with("the options do not fit `Report`: "), "{reason}");
    assert_eq!(ticks(&runner).await, ["01:00 due"]);
    schedules.set("report", hourly("work")).await.unwrap();
    assert_eq!(record(&runner).await.broken, None);
    assert_eq!(fire(&runner).await.len(), 1, "its times have not changed, so the tick is still due");

    schedules.set("report", Schedule::new("Audit").every(HOUR)).await.unwrap();
    clock.passes(HOUR);
    let [Err(FireError::NoBrain { .. })] = &look(&runner).await[..] else { panic!("the brain is unknown") };
    assert_eq!(record(&runner).await.broken.unwrap().reason, "no server knows the brain `Audit`");
    clock.passes(HOUR + MINUTE);
    _ = look(&runner).await;
    assert_eq!(
        ticks(&runner).await[1..],
        [
            "02:00 missed: its run could not be started in time: no server knows the brain `Audit`".to_owned(),
            "03:00 due".to_owned(),
        ]
    );
    let audit = || brain("Audit").step("Count", async |_| Ok(()));
    let newer = process("newer", open(), clock.clone()).brain(audit());
    assert_eq!(fire(&newer).await, [RunId::new("report-20260101T030000Z")]);
    assert_eq!(record(&newer).await.broken, None);
}

async fn removed_schedule_starts_nothing<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let runner = process("one", open(), clock.clone());
    let schedules = runner.client().schedules();
    schedules.set("report", hourly("work")).await.unwrap();
    schedules.set("other", hourly("work")).await.unwrap();
    clock.passes(HOUR);
    let due = schedules.due().await.unwrap();
    assert_eq!(due.len(), 2);
    assert_eq!(schedules.remove("report").await, Ok(true));
    assert_eq!(schedules.remove("report").await, Ok(false));
    let changed = |version| Err(ScheduleError::Changed { id: "report".to_owned(), version });
    assert_eq!(schedules.remove_if("report", 1).await, changed(0));
    assert_eq!(
        schedules.list().await.unwrap().schedules.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(),
        ["other"]
    );
    assert_eq!(fire(&runner).await.len(), 1, "the other one");

    // A new one with the same id does not have the ticks of the old one.
    schedules.set("report", hourly("work")).await.unwrap();
    assert!(ticks(&runner).await.is_empty());
    clock.passes(HOUR);
    assert_eq!(fire(&runner).await.len(), 2);
    assert_eq!(ticks(&runner).await, ["02:00 started"]);

    // A person who has read it removes it only as it was then; that it has started runs does not matter.
    schedules.set("report", hourly("wait")).await.unwrap();
    assert_eq!(schedules.remove_if("report", 1).await, changed(2));
    clock.passes(HOUR);
    assert_eq!(fire(&runner).await.len(), 2);
    assert_eq!(schedules.remove_if("report", 2).await, Ok(()));
    assert_eq!(schedules.get("report").await, Ok(None));
}

async fn clock_that_goes_back_starts_no_tick_twice<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let runner = process("one", open(), clock.clone());
    let schedules = runner.client().schedules();
    schedules.set("report", hourly("work")).await.unwrap();
    let mut started = Vec::new();
    for _ in 0..3 {
        clock.passes(HOUR);
        started.extend(fire(&runner).await);
    }
    // Three years ahead for a moment, and then two hours back.
    let right = at("2026-01-01T03:00:00Z");
    clock.set(right.after(3 * 365 * 24 * HOUR));
    assert_eq!(fire(&runner).await.len(), 1);
    clock.set(at("2026-01-01T01:30:00Z"));
    assert_eq!(schedules.due_of_all().await.unwrap(), []);
    for _ in 0..6 {
        clock.passes(30 * MINUTE);
        started.extend(fire(&runner).await);
    }
    let hours = ["010000Z", "020000Z", "030000Z", "040000Z"];
    assert_eq!(started, hours.map(|hour| RunId::new(format!("report-20260101T{hour}"))));
    assert_eq!(runner.client().store().runs(&RunFilter::default()).await.unwrap().len(), 5);
}

async fn times_that_were_missed_while_the_clock_was_ahead_start_when_they_come<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let runner = process("one", open(), clock.clone());
    let schedules = runner.client().schedules();
    schedules.set("report", hourly("work")).await.unwrap();
    clock.passes(HOUR);
    assert_eq!(fire(&runner).await, [RunId::new("report-20260101T010000Z")]);
    // Six hours ahead for a moment: the latest time starts a run, and the five before it are missed.
    clock.passes(6 * HOUR);
    assert_eq!(fire(&runner).await, [RunId::new("report-20260101T070000Z")]);
    assert_eq!(ticks(&runner).await.iter().filter(|tick| tick.contains("missed")).count(), 5);

    clock.set(at("2026-01-01T01:30:00Z"));
    assert_eq!(schedules.due_of_all().await.unwrap(), []);
    assert_eq!(record(&runner).await.next, Some(at("2026-01-01T02:00:00Z")));
    let mut started = Vec::new();
    for _ in 0..9 {
        clock.passes(30 * MINUTE);
        started.extend(fire(&runner).await);
    }

    let hours = ["020000Z", "030000Z", "040000Z", "050000Z", "060000Z"];
    assert_eq!(started, hours.map(|hour| RunId::new(format!("report-20260101T{hour}"))));
    assert_eq!(record(&runner).await.next, Some(at("2026-01-01T08:00:00Z")), "07:00 has its run");
    clock.passes(2 * HOUR);
    assert_eq!(fire(&runner).await, [RunId::new("report-20260101T080000Z")]);
    assert!(!ticks(&runner).await.iter().any(|tick| tick.contains("missed")));
}
