//! Triggers: they fire once, at their time, after any crash, and respect their conversation.

mod garden;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use positronic_core::dsl::IntoBrain as _;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Busy, Event, EventKind, Fired, RunId, RunSummary, Seq, Speaker, Start, Status, Timer};
use positronic_core::runner::{Client, DueTrigger, FireError, Fork, Settled};
use positronic_core::store::prelude::*;
use positronic_core::store::{EventStore, MemoryStore, RunFilter, StoreError, TimerFilter};
use positronic_core::testing::TestClock;
use positronic_plugins::Triggers;
use positronic_sqlite::SqliteStore;
use positronic_store_suite::FaultyStore;
use serde_json::{Value, json};

use self::garden::{
    MINUTE, ManualClock, because, continue_runs, create, dying, fire, fired_alone, gardener, log, obeying, process,
    process_with, said, says, timers,
};
use crate::support::boundaries::OwnIds;
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
    trigger_starts_a_prompt_without_a_message
    repeating_trigger_continues_and_skips_missed_times
    two_servers_fire_a_trigger_once
    trigger_fires_once_after_a_crash_at_any_append
    deleted_trigger_does_not_fire_even_if_another_process_deletes_it
    trigger_waits_for_the_last_prompt_of_its_conversation_or_cancels_it
    firing_outside_a_conversation_starts_a_separate_run
    fork_sets_no_trigger_again
    authors_tool_resets_a_fired_trigger
}

async fn trigger_starts_a_prompt_without_a_message<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let first = process("first", open(), clock.clone());
    let trigger = create(&first, json!({"what": "Water the beans.", "in": "10 minutes"})).await;
    assert_eq!(trigger.due, TestClock::BEGIN.after(10 * MINUTE));
    // One append stored the timer and the result.
    let begun = log(&first, &RunId::new("c-0")).await;
    let set = begun.iter().position(|event| matches!(event.kind, EventKind::LoopTrigger { .. })).unwrap();
    assert!(matches!(begun[set + 1].kind, EventKind::LoopToolResult { .. }));
    drop(first);

    let second = process("second", open(), clock.clone());
    clock.passes(10 * MINUTE - Duration::from_micros(1));
    assert_eq!(fire(&second).await.len(), 0, "it is not due yet");
    clock.passes(Duration::from_micros(1));
    let run = fired_alone(&second).await;

    assert_eq!(run, RunId::new("c-1"));
    assert_eq!(
        said(&second.client(), &run).await,
        format!(
            "trigger: The trigger {} fired, due 2026-01-01T00:10:00Z. The user did not write anything. Its \
             text:\nWater the beans.",
            trigger.id
        )
    );
    let origin = RunId::new("c-0");
    assert_eq!(because(&second, &run).await, Some(Fired { trigger, origin }));
    let start = log(&second, &run).await.iter().find_map(|event| match &event.kind {
        EventKind::LoopStart { input, from, .. } => Some((input.clone(), *from)),
        _ => None,
    });
    assert_eq!(start, Some((Some("Water the beans.".to_owned()), Speaker::Engine)), "no message was sent");
    let row = second.client().store().run(&run).await.unwrap();
    assert_eq!((row.user.as_deref(), row.conversation.as_deref()), (Some("ann"), Some("c")));
    assert_eq!(second.client().history(&run).await.unwrap().len(), 4, "it has the earlier messages");
    assert_eq!(timers(&second).await, []);
    clock.passes(60 * MINUTE);
    assert_eq!(fire(&second).await.len(), 0);
}

async fn repeating_trigger_continues_and_skips_missed_times<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let first = process("first", open(), clock.clone());
    let arguments = json!({"what": "Water the beans.", "at": "2026-01-01T06:00:00Z", "every": "1 day"});
    let trigger = create(&first, arguments).await;
    drop(first);

    // No process serves the store for ten days and an hour after the first due time.
    clock.passes(Duration::from_hours(6 + 10 * 24 + 1));
    let second = process("second", open(), clock.clone());
    let run = fired_alone(&second).await;

    assert_eq!(because(&second, &run).await.unwrap().trigger, trigger);
    assert!(said(&second.client(), &run).await.contains("due 2026-01-01T06:00:00Z; it fires every 1 day. The user"));
    assert_eq!(fire(&second).await.len(), 0, "it fires once for all that was missed");
    let [timer] = &timers(&second).await[..] else { panic!("it continues") };
    assert_eq!((timer.trigger.due, timer.fired), (TestClock::BEGIN.after(Duration::from_hours(6 + 11 * 24)), 1));
    clock.passes(Duration::from_hours(23));
    let run = fired_alone(&second).await;
    assert_eq!((run.as_str(), because(&second, &run).await.unwrap().trigger.due), ("c-2", timer.trigger.due));
}

async fn two_servers_fire_a_trigger_once<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let (one, two) = (process("one", open(), clock.clone()), process("two", open(), clock.clone()));
    create(&one, json!({"what": "Water the beans.", "in": "1 minute", "every": "1 hour"})).await;
    clock.passes(2 * MINUTE);
    let [timer] = &one.client().due_triggers().await.unwrap()[..] else { panic!("one is due") };

    let (first, second) = tokio::join!(one.fire(timer), two.fire(timer));

    // The second firing gets the same run or nothing.
    let runs: Vec<_> = [&first, &second].into_iter().filter_map(|fired| fired.as_ref().ok()).collect();
    assert!(!runs.is_empty() && runs.iter().all(|run| run.id().as_str() == "c-1"), "{first:?} {second:?}");
    for run in runs {
        run.settled().await;
    }
    // A server that listed long ago and fires only now.
    assert!(matches!(two.fire(timer).await, Err(FireError::Gone { .. })));
    assert_eq!(one.client().conversations().runs("c").await.unwrap().len(), 2);
    assert_eq!(timers(&two).await[0].fired, 1);
}

async fn trigger_fires_once_after_a_crash_at_any_append<S: EventStore>(open: impl Fn() -> S) {
    for written in [false, true] {
        for at in 0.. {
            let clock = ManualClock::new();
            let conversation = format!("c{at}{written}");
            let arguments = json!({"what": "Water the beans.", "in": "10 minutes"});
            let text = format!("trigger.create {arguments}");
            let says = async |runner: &Runner| {
                let chat = runner.conversation(&*conversation).user("ann");
                if let Ok(run) = chat.send(gardener(Triggers::new()), (), &text).await {
                    run.settled().await;
                }
            };
            let (store, count) = dying(open(), at, written);
            let first = process(&format!("first{at}{written}"), store, clock.clone());
            says(&first).await;
            clock.passes(10 * MINUTE);
            _ = fire(&first).await;
            let died = count.load(Ordering::SeqCst) > at;
            first.release().await;
            drop(first);

            // Another process continues, and a third one finds no work.
            let second = process(&format!("second{at}{written}"), open(), clock.clone());
            continue_runs(&second).await;
            if second.client().conversations().runs(&conversation).await.unwrap().is_empty() {
                says(&second).await;
            }
            clock.passes(10 * MINUTE);
            _ = fire(&second).await;
            assert_eq!(fire(&process("third", open(), clock.clone())).await.len(), 0);

            let runs = second.client().conversations().runs(&conversation).await.unwrap();
            let ended = |row: &RunSummary| (row.run.to_string(), row.status);
            assert_eq!(
                runs.iter().map(ended).collect::<Vec<_>>(),
                [1, 0].map(|number| (format!("{conversation}-{number}"), Status::Completed)),
                "at {at}, written: {written}"
            );
            assert!(because(&second, &runs[0].run).await.is_some());
            assert_eq!(timers(&second).await, []);
            if !died {
                assert!(at > 10, "it died {at} times");
                break;
            }
        }
    }
}

async fn deleted_trigger_does_not_fire_even_if_another_process_deletes_it<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let (one, two) = (process("one", open(), clock.clone()), process("two", open(), clock.clone()));
    let first = create(&one, json!({"what": "Water the beans.", "in": "1 minute"})).await;
    let second = create(&one, json!({"what": "Water the roses.", "in": "2 minutes", "every": "2 minutes"})).await;
    let listed = says(&two, "trigger.list {}").await;
    assert_eq!(
        serde_json::from_str::<Value>(&listed).unwrap(),
        json!({"now": "2026-01-01T00:00:00Z", "triggers": [
            {"id": first.id, "what": "Water the beans.", "due": "2026-01-01T00:01:00Z"},
            {"id": second.id, "what": "Water the roses.", "due": "2026-01-01T00:02:00Z", "every": "2 minutes"},
        ]})
    );
    clock.passes(3 * MINUTE);
    let due = one.client().due_triggers().await.unwrap();
    assert_eq!(due.len(), 2);

    let deleted = says(&two, &format!("trigger.delete {}", json!({"id": first.id}))).await;
    assert!(deleted.contains("Water the beans."), "{deleted}");
    assert_eq!(two.client().delete_trigger(&second.id).await, Ok(true));

    for timer in &due {
        assert!(matches!(one.fire(timer).await, Err(FireError::Gone { .. })));
    }
    assert_eq!(fire(&two).await.len(), 0);
    let again = says(&two, &format!("trigger.delete {}", json!({"id": first.id}))).await;
    assert_eq!(again, format!("Error: there is no trigger `{}`; there are none", first.id));
    assert_eq!(two.client().delete_trigger(&second.id).await, Ok(false));
}

async fn trigger_waits_for_the_last_prompt_of_its_conversation_or_cancels_it<S: EventStore>(open: impl Fn() -> S) {
    for (busy, status) in [(Busy::Queue, Status::Completed), (Busy::Cancel, Status::Cancelled)] {
        let clock = ManualClock::new();
        let id = format!("{busy:?}");
        let runner = process_with(&id, open(), clock.clone(), Triggers::new().busy(busy));
        let gardener = || gardener(Triggers::new().busy(busy));
        let chat = runner.conversation(&*id).user("ann");
        let create = r#"trigger.create {"what": "Water the beans.", "in": "1 minute", "every": "1 minute"}"#;
        chat.send(gardener(), (), create).await.unwrap().result().await.unwrap();
        let open = chat.send(gardener(), (), "pay {}").await.unwrap();
        assert!(matches!(open.settled().await, Settled::Waiting(_)));
        clock.passes(10 * MINUTE);

        if busy == Busy::Queue {
            for _ in 0..2 {
                assert!(matches!(&fire(&runner).await[..], [Err(FireError::Busy { .. })]));
            }
            assert_eq!(chat.runs().await.unwrap().len(), 2, "nothing has begun");
            open.approve(&path("Chat/0.0"), "ann").await.unwrap();
            open.settled().await;
        }
        let run = fired_alone(&runner).await;

        assert_eq!(run.as_str(), format!("{id}-2"));
        assert_eq!(chat.runs().await.unwrap()[1].status, status, "{busy:?}");
        assert_eq!(fire(&runner).await.len(), 0, "it was due many times, and fires once");
        runner.client().delete_trigger(&timers(&runner).await[0].trigger.id).await.unwrap();
    }
}

async fn firing_outside_a_conversation_starts_a_separate_run<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let runner = process("one", open(), clock.clone());
    let begin = async |user: Option<&str>, text: &str| {
        let message = Some(positronic_core::record::UserMessage::new(text));
        let start = Start { user: user.map(str::to_owned), message, ..Start::default() };
        let run = runner.start_with(gardener(Triggers::new()), (), start).await.unwrap();
        run.result().await.unwrap();
        (run.id().clone(), said(&runner.client(), run.id()).await)
    };
    let create = |what: &str| format!("trigger.create {}", json!({"what": what, "every": "1 hour"}));
    begin(Some("ann"), &create("of Ann")).await;
    begin(Some("bob"), &create("of Bob")).await;
    let (origin, _) = begin(None, &create("of nobody")).await;

    let (_, ann) = begin(Some("ann"), "trigger.list {}").await;
    assert!(ann.contains("of Ann") && !ann.contains("of Bob") && !ann.contains("of nobody"), "{ann}");
    let (_, nobody) = begin(None, "trigger.list {}").await;
    assert!(nobody.contains(r#""triggers":[]"#), "two anonymous conversations share nothing: {nobody}");
    let theirs = timers(&runner).await.into_iter().find(|timer| timer.trigger.what == "of Bob").unwrap().trigger;
    let (_, refused) = begin(Some("ann"), &format!("trigger.delete {}", json!({"id": theirs.id}))).await;
    assert!(refused.starts_with(&format!("Error: there is no trigger `{}`; there are `t-", theirs.id)), "{refused}");

    clock.passes(Duration::from_hours(1));
    assert_eq!(fire(&runner).await.into_iter().filter(Result::is_ok).count(), 3);
    clock.passes(Duration::from_hours(1));
    let mut runs: Vec<_> = fire(&runner).await.into_iter().map(|run| run.unwrap().to_string()).collect();
    runs.sort();
    let name = |timer: &Timer| format!("{}-20260101T020000Z", timer.trigger.id);
    let mut names: Vec<_> = timers(&runner).await.iter().map(name).collect();
    names.sort();
    assert_eq!(runs, names);
    let of_nobody = timers(&runner).await.into_iter().find(|timer| timer.origin == origin).unwrap();
    let last = RunId::new(name(&of_nobody));
    assert_eq!(because(&runner, &last).await.unwrap().origin, origin, "the triggered run sees and deletes it");
}

/// A trigger with the id of a fired one is a new trigger and fires.
async fn authors_tool_resets_a_fired_trigger<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let snooze = || {
        brain("Alarm").r#loop("Chat", |cx| {
            cx.system("Wake.").tool("snooze", |t| {
                t.execute(async |_: NoArgs, cx| {
                    let known = cx.fired().map(|fired| fired.trigger.id);
                    let mut trigger = cx.trigger("Wake up.", cx.now().after(MINUTE));
                    if let Some(id) = known {
                        trigger.id = id;
                    }
                    Ok(cx.result("snoozed").set_trigger(trigger))
                })
            })
        })
    };
    let model = ScriptedModel::from_fn(|request| match request.messages.len() {
        1 => Reply::call("snooze", json!({})),
        _ => Reply::text("Zzz."),
    });
    let runner = Runner::new(model).store(open()).clock(clock.clone()).ids(OwnIds::of("alarm")).brain(snooze());
    runner.start(snooze(), ()).await.unwrap().result().await.unwrap();
    let id = timers(&runner).await[0].trigger.id.clone();

    for minute in 1..4 {
        clock.passes(MINUTE);
        assert_eq!(fired_alone(&runner).await.as_str(), format!("{id}-20260101T000{minute}00Z"));
    }
    assert_eq!(timers(&runner).await.len(), 1);
}

async fn fork_sets_no_trigger_again<S: EventStore>(open: impl Fn() -> S) {
    let clock = ManualClock::new();
    let (runner, other) = (process("one", open(), clock.clone()), MemoryStore::new());
    create(&runner, json!({"what": "Water the beans.", "in": "1 minute"})).await;
    let (run, client) = (RunId::new("c-0"), runner.client());
    clock.passes(MINUTE);
    fired_alone(&runner).await;

    let events = log(&runner, &run).await;
    let set = events.iter().position(|event| matches!(event.kind, EventKind::LoopTrigger { .. })).unwrap();
    let fork = client.fork(&run, Seq(set as u64), Fork::default()).await.unwrap();
    Client::new(other.clone()).import(&run, &events).await.unwrap();

    assert_eq!(timers(&runner).await, [], "it has fired, and does not come back");
    assert_eq!(other.timers(&TimerFilter::default()).await, Ok(Vec::new()));
    let forked = log(&runner, &fork).await;
    let result = |event: &Arc<Event>| matches!(event.kind, EventKind::LoopToolResult { .. });
    assert!(forked.iter().any(result), "a trigger and its result are one append, and so is their fork");
}

#[tokio::test(start_paused = true)]
async fn serve_fires_due_triggers_and_keeps_unknown_ones() {
    let store = MemoryStore::new();
    let clock = TestClock::default();
    let first = process("first", store.clone(), clock.clone());
    create(&first, json!({"what": "Water the beans.", "in": "10 minutes"})).await;
    drop(first);
    let strange = Runner::new(ScriptedModel::new([])).store(store.clone()).clock(clock.clone());
    let knows = process("second", store.clone(), clock.clone());

    let service = strange.serve();
    tokio::time::sleep(11 * MINUTE).await;
    let [timer] = &timers(&knows).await[..] else { panic!("the brain is unknown") };
    assert!(matches!(strange.fire(timer).await, Err(FireError::NoBrain { .. })));
    drop(service);
    let service = knows.serve();
    tokio::time::sleep(Duration::from_secs(2)).await;

    let runs = store.runs(&RunFilter::builder().conversation("c").build()).await.unwrap();
    assert_eq!((runs.len(), runs[0].status), (2, Status::Completed));
    assert_eq!(timers(&knows).await, []);
    drop(service);
}

/// Promise 19: no list loads a log.
#[tokio::test]
async fn triggers_are_listed_without_a_log() {
    let store = MemoryStore::new();
    let runner = process("one", store.clone(), ManualClock::new());
    create(&runner, json!({"what": "Water the beans.", "in": "10 minutes"})).await;
    let refused =
        |method| (method != "timers").then(|| StoreError::Failed { message: format!("`{method}` is not to be asked") });

    let client = Client::new(FaultyStore::new(store, |_, _| None).reading(refused));

    assert_eq!(client.triggers(&TimerFilter::default()).await.unwrap().len(), 1);
    assert_eq!(client.due_triggers().await.unwrap().len(), 1, "by the clock of today");
}

#[tokio::test]
async fn invalid_triggers_are_reported_to_the_model() {
    let runner = process("one", MemoryStore::new(), ManualClock::new());
    let told = async |arguments: Value| says(&runner, &format!("trigger.create {arguments}")).await;
    let wrong = [
        (json!({"what": " ", "in": "1 minute"}), "`what` is empty: say what is to be done then"),
        (json!({"what": "w"}), "say when: give `at`, `in` or `every`"),
        (json!({"what": "w", "in": "1 minute", "at": "2026-01-02T00:00:00Z"}), "give `at` or `in`, not both"),
        (
            json!({"what": "w", "in": "a while"}),
            "`a while` is no duration, such as 10 minutes, 1 day 12 hours or 2 weeks",
        ),
        (
            json!({"what": "w", "at": "2025-01-01T00:00:00Z"}),
            "`2025-01-01T00:00:00Z` has passed: it is 2026-01-01T00:00:00Z now",
        ),
        (
            json!({"what": "w", "every": "59 seconds"}),
            "`every` is 59 seconds, and a trigger fires at most every 1 minute",
        ),
    ];
    for (arguments, reason) in wrong {
        assert_eq!(told(arguments).await, format!("Error: {reason}"));
    }
    let long = told(json!({"what": "w".repeat(1001), "in": "1 minute"})).await;
    assert!(long.contains("at most 1000 characters, and this has 1001"), "{long}");
    assert_eq!(timers(&runner).await, []);

    for _ in 0..20 {
        create(&runner, json!({"what": "w", "in": "1 minute"})).await;
    }
    let more = told(json!({"what": "w", "in": "1 minute"})).await;
    assert_eq!(more, "Error: there are 20 triggers, and no more can be set: delete one");
    assert_eq!(gardener(Triggers::new()).definition().title, "Gardener");
}

#[tokio::test(start_paused = true)]
async fn unfirable_trigger_is_skipped_until_its_next_time_and_a_waiting_one_is_not() {
    let (store, clock) = (MemoryStore::new(), ManualClock::new());
    let one = process("one", store.clone(), clock.clone());
    let stranger = Runner::new(ScriptedModel::from_fn(obeying)).store(store).clock(clock.clone());
    let trigger = create(&one, json!({"what": "Water the beans.", "in": "1 minute", "every": "1 minute"})).await;
    let (here, there) = (one.conversation("c").user("ann"), stranger.conversation("c").user("ann"));
    assert!(here.fire_due().await.unwrap().is_none(), "nothing is due");
    clock.passes(MINUTE);

    let DueTrigger { timer, started, .. } = there.fire_due().await.unwrap().unwrap();
    assert_eq!(timer.trigger.id, trigger.id);
    assert!(matches!(started, Err(FireError::NoBrain { .. })));
    assert!(there.fire_due().await.unwrap().is_none(), "it is left out");
    assert!(one.conversation("another").fire_due().await.unwrap().is_none(), "it is not of that conversation");

    let open = here.send(gardener(Triggers::new()), (), "pay {}").await.unwrap();
    open.settled().await;
    for _ in 0..2 {
        assert!(here.fire_due().await.unwrap().is_none(), "its conversation is busy");
    }
    open.approve(&path("Chat/0.0"), "ann").await.unwrap();
    open.settled().await;
    here.fire_due().await.unwrap().unwrap().started.unwrap().settled().await;

    clock.passes(2 * MINUTE);
    assert!(there.fire_due().await.unwrap().is_some(), "it is due again, at another time");
}
