//! Timers.

use positronic_core::record::{Busy, RunId, Status, Timer, Timestamp, Trigger, TriggerId};
use positronic_core::store::{EventStore, StoreError, TimerChange, TimerFilter, TimerOwner};
use serde_json::json;

use super::Sample;

fn timer(id: &str, due: i64) -> Timer {
    Timer {
        trigger: Trigger {
            every: Some(std::time::Duration::from_micros(10)),
            busy: Busy::Cancel,
            ..Trigger::once(TriggerId::new(id), "water", Timestamp(due))
        },
        brain: "Gardener".into(),
        options: json!({"garden": "front"}),
        user: Some("ann".to_owned()),
        conversation: Some("c".to_owned()),
        budget: None,
        origin: RunId::from("c-0"),
        fired: 0,
        starter: None,
        scheduled: None,
    }
}

fn fires(timer: &Timer, next: Option<i64>) -> TimerChange {
    TimerChange::Fired { id: timer.trigger.id.clone(), due: timer.trigger.due, next: next.map(Timestamp) }
}

async fn all(store: &impl EventStore) -> Vec<Timer> {
    store.timers(&TimerFilter::default()).await.unwrap()
}

/// A timer is stored by the append that sets it, replaces the one with its id, and is deleted by an append. It outlives its run.
pub async fn timer_is_set_and_deleted_by_appends<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let (one, two) = (timer("t-1", 5), timer("t-2", 4));
    let set = |timer: &Timer| TimerChange::Set(timer.clone());
    let run = Sample::new("run-1").says("one").changes(set(&one)).changes(set(&two)).appended(&store).await;
    assert_eq!(all(&other).await, [two.clone(), one]);

    let later = timer("t-1", 7);
    let run = run.says("two").changes(set(&later)).appended(&store).await;
    assert_eq!(all(&other).await, [two.clone(), later.clone()]);

    let delete = TimerChange::Deleted(two.trigger.id.clone());
    let run = run.says("three").changes(delete.clone()).changes(delete);
    _ = run.row(|row| row.status = Status::Completed).appended(&store).await;
    assert_eq!(all(&other).await, std::slice::from_ref(&later));

    store.remove(&[RunId::from("run-1")]).await.unwrap();
    assert_eq!(all(&other).await, std::slice::from_ref(&later), "it outlives the run that set it");
    assert_eq!(other.remove_timer(&later.trigger.id).await, Ok(true));
    assert_eq!(store.remove_timer(&later.trigger.id).await, Ok(false));
    assert_eq!(all(&store).await, []);
}

/// Lists contain what [`TimerFilter::passes`] accepts, the timer that is due first first.
pub async fn timers_are_listed_by_any_filter<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let mut timers = Vec::new();
    for number in 0_i64..24 {
        let mut timer = timer(&format!("t-{number}"), (number * 7) % 12);
        timer.conversation = (number % 3 == 0).then(|| format!("c-{}", number % 2));
        timer.user = (number % 4 > 0).then(|| format!("user-{}", number % 2));
        timer.origin = RunId::from(format!("run-{}", number % 5));
        timers.push(timer.clone());
        let sample = Sample::new(&format!("run-{number}")).says("one").changes(TimerChange::Set(timer));
        _ = sample.appended(&store).await;
    }
    timers.sort_by(|a, b| (a.trigger.due, &a.trigger.id).cmp(&(b.trigger.due, &b.trigger.id)));

    let builder = TimerFilter::builder;
    for filter in [
        TimerFilter::default(),
        builder().limit(3).build(),
        builder().id(TriggerId::new("t-7")).build(),
        builder().id(TriggerId::new("none")).build(),
        builder().due(Timestamp(0)).build(),
        builder().due(Timestamp(5)).limit(4).build(),
        builder().due(Timestamp(-1)).build(),
        builder().owner(TimerOwner::Conversation("c-1".to_owned())).build(),
        builder().owner(TimerOwner::Conversation("user-1".to_owned())).build(),
        builder().owner(TimerOwner::User("user-1".to_owned())).due(Timestamp(8)).build(),
        builder().owner(TimerOwner::Origin(RunId::from("run-3"))).build(),
    ] {
        let passing = timers.iter().filter(|timer| filter.passes(timer)).take(filter.limit.unwrap_or(usize::MAX));
        let listed = store.timers(&filter).await.unwrap();
        assert_eq!(listed, passing.cloned().collect::<Vec<_>>(), "{filter:?}");
    }
}

/// A timer fires in the append that begins its run, at its due time only.
pub async fn timer_fires_once<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let (often, once) = (timer("t-1", 5), timer("t-2", 5));
    let set = |timer: &Timer| TimerChange::Set(timer.clone());
    _ = Sample::new("run-1").says("one").changes(set(&often)).changes(set(&once)).appended(&store).await;

    _ = Sample::new("run-2").says("one").changes(fires(&often, Some(15))).appended(&store).await;
    _ = Sample::new("run-3").says("one").changes(fires(&once, None)).appended(&other).await;

    let put_off = often.clone().put_off(Timestamp(15));
    assert_eq!((put_off.trigger.due, put_off.fired), (Timestamp(15), 1));
    assert_eq!(all(&other).await, std::slice::from_ref(&put_off));
    for (late, next) in [(&often, Some(25)), (&once, None), (&timer("t-3", 5), None)] {
        let refused = Sample::new("run-4").says("one").changes(fires(late, next)).append(&other).await;
        assert_eq!(refused, Err(StoreError::NotDue { trigger: late.trigger.id.clone() }));
    }
    let run = RunId::from("run-4");
    assert_eq!(other.run(&run).await, Err(StoreError::NoSuchRun { run }), "a run that is not started is not there");
    assert_eq!(all(&other).await, [put_off]);
}

/// A refused append changes no timers.
pub async fn refused_append_changes_no_timer<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let (kept, new) = (timer("t-1", 5), timer("t-2", 5));
    _ = Sample::new("run-1").says("one").changes(TimerChange::Set(kept.clone())).appended(&store).await;

    let conflict = Sample::new("run-1").says("one").changes(TimerChange::Set(new.clone()));
    let conflict = conflict.changes(TimerChange::Deleted(kept.trigger.id.clone()));
    assert!(conflict.clone().append(&store).await.is_err());
    let not_due = Sample::new("run-2").says("one").changes(TimerChange::Set(new));
    let mut not_due =
        not_due.changes(TimerChange::Deleted(kept.trigger.id.clone())).changes(fires(&timer("t-9", 1), None));
    assert!(not_due.append(&store).await.is_err());

    assert_eq!(all(&store).await, [kept]);
}

/// One of many concurrent appends that fire a timer wins.
pub async fn one_of_many_fires_the_timer<S: EventStore>(open: impl Fn() -> S) {
    let stores = [open(), open()];
    let often = timer("t-1", 5);
    _ = Sample::new("run-0").says("one").changes(TimerChange::Set(often.clone())).appended(&stores[0]).await;

    let fire = async |number: usize| {
        let mut run = Sample::new(&format!("run-{}", number + 1)).says("one").changes(fires(&often, Some(15)));
        run.append(&stores[number % 2]).await.is_ok()
    };
    let fired = futures::future::join_all((0..16).map(fire)).await;

    assert_eq!(fired.iter().filter(|fired| **fired).count(), 1, "{fired:?}");
    assert_eq!(all(&stores[1]).await, [often.put_off(Timestamp(15))]);
}
