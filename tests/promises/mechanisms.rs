//! The mechanisms behind the promises; each test fails if its mechanism is removed.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use positronic_core::dsl::{Loop, LoopContext, Runnable};
use positronic_core::machine::RunState;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Event, EventError, Settings, Timestamp, ToolResult};
use positronic_core::runner::{Clock, Settled};
use positronic_core::store::MemoryStore;
use positronic_core::store::prelude::*;
use positronic_core::testing::{CountedIds, TestClock};

use crate::bench::{Bench, approve, behind, by, edit, reject, result_of, run_id, signal};
use crate::stores::{Fresh, OnDisk, on_both_stores};
use crate::support::{Board, Journal, batch, done, path, result, settled, tools, waits, workshop};

on_both_stores! {
    promise_13_snapshot_equals_the_log_before_it
    promise_13_run_with_a_successor_is_not_removed
}

/// A run with a denial and more events than a snapshot interval, waiting for a person again.
async fn denied_long_ago<S: Fresh>(bench: &Bench<S>, shop: &impl Runnable<Options = (), Result = Board>) {
    let process = bench.process("first", |place| match place {
        "Work/0" => batch([("gated", "a"), ("gated", "b")]),
        "Work/150" => batch([("gated", "a"), ("gated", "c")]),
        _ => batch([("read", "x")]),
    });
    let run = bench.start(&process, shop).await;
    waits(&run).await;
    let decisions = [signal("no", reject("Work/0.0", "too risky")), signal("yes", approve("Work/0.1"))];
    bench.client("people").send_all(&run_id(), &decisions).await.unwrap();
    assert_eq!(bench.waits(&run).await, ["Work/150.1"]);
    // Otherwise its worker would continue it in this process.
    process.release().await;
}

async fn promise_13_snapshot_equals_the_log_before_it<S: Fresh>() {
    let (bench, journal) = (Bench::<S>::fresh(), Journal::default());
    let shop = workshop(&journal, |config| tools(config).unlimited());
    denied_long_ago(&bench, &shop).await;
    let log = bench.log().await;
    let snapshot = bench.store.snapshot(&run_id()).await.unwrap().unwrap();
    assert!(behind(&log, "Work/0.0", "LOOP_TOOL_RESULT") < snapshot.next.index());

    let loaded = bench.client("people").state(&run_id()).await.unwrap();

    assert_eq!(loaded, RunState::replay(log.iter().map(|event| &**event)).unwrap());
    // The snapshot's content applies: an identical call is denied, and the same signal gets the same outcome.
    assert!(matches!(result_of(&log, "Work/150.0"), ToolResult::Denied { .. }));
    let accepted = bench.client("people").send(&run_id(), signal("yes", approve("Work/0.1"))).await.unwrap();
    assert_eq!(accepted.index() + 1, behind(&log, "Work/0.1", "LOOP_APPROVAL_DECIDED"));
    let second = bench.process("second", |place| match place {
        "Work/151" => batch([("gated", "a"), ("gated", "d")]),
        _ => done(),
    });
    let run = second.brain(shop).resume(&run_id()).await.unwrap();
    run.approve(&path("Work/150.1"), "bob").await.unwrap();
    assert_eq!(bench.waits(&run).await, ["Work/151.1"], "the call that was denied before the snapshot is denied");
    let edited = signal("edited", edit("Work/151.1", serde_json::json!({"id": "e"})));
    bench.client("people").send(&run_id(), edited).await.unwrap();
    assert!(matches!(bench.settled(&run).await, Settled::Completed(_)));
}

async fn promise_13_run_with_a_successor_is_not_removed<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let chat = brain("Chat").r#loop("Work", |cx| cx.system("Talk."));
    let process = bench.process("chat", |_| Reply::text("yes"));
    for text in ["one", "two", "three"] {
        let run = process.conversation("c").send(&chat, (), text).await.unwrap();
        assert!(matches!(settled(&run).await, Settled::Completed(_)));
    }
    let client = bench.client("people");
    let rows = client.conversations().runs("c").await.unwrap();
    let [last, middle, first] = &*rows else { panic!("three runs: {rows:?}") };

    let removed = bench.store.remove(&[first.run.clone(), middle.run.clone()]).await.unwrap();

    assert_eq!(removed, 0);
    assert_eq!(client.history(&last.run).await.unwrap().len(), 4, "the last one has its whole conversation before it");
    let all = [last, middle, first].map(|row| row.run.clone());
    assert_eq!(bench.store.remove(&all).await.unwrap(), 3, "together they go");
}

/// A configuration that adds, keeps, changes, removes and restores one item of every kind.
fn varying(cx: &LoopContext<(), u32>, yielded: &Mutex<Vec<Yielded>>) -> Loop<(), u32> {
    let iteration = *cx.state;
    let (system, item) = (format!("Count, {}.", iteration % 2), format!("item {}", iteration / 2));
    let context: Vec<(String, String)> = match iteration % 4 {
        0 => vec![("first".to_owned(), item)],
        1 => vec![("first".to_owned(), item), ("second".to_owned(), iteration.to_string())],
        2 => vec![("first".to_owned(), item)],
        _ => Vec::new(),
    };
    let temperature = f64::from(u8::try_from(iteration % 3).unwrap()) / 2.0;
    let extra = format!("only_{}", iteration % 3);
    yielded.lock().unwrap().push((system.clone(), context.clone(), extra.clone(), temperature));
    let settings = Settings::builder().temperature(temperature).build();
    let config = cx.system(system).input("Go.").settings(settings);
    let config = context.into_iter().fold(config, |config, (name, text)| config.context(name, text));
    config.tool(&extra, |t| t.execute(async |_: NoArgs, cx| Ok(cx.result(0).update(|state| *state += 1))))
}

type Yielded = (String, Vec<(String, String)>, String, f64);

#[tokio::test(start_paused = true)]
async fn promise_21_request_contains_what_its_configuration_yielded() {
    let yielded: Arc<Mutex<Vec<Yielded>>> = Arc::default();
    let noted = Arc::clone(&yielded);
    let counting = brain("Counting").state(0_u32).r#loop("Work", move |cx| varying(&cx, &noted));
    let bench = Bench::new();
    let process = bench.process("work", |place| {
        let iteration: u32 = place.strip_prefix("Work/").unwrap().parse().unwrap();
        if iteration < 12 { Reply::call(format!("only_{}", iteration % 3), serde_json::json!({})) } else { done() }
    });

    let run = bench.start(&process, &counting).await;

    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    let sent: Vec<Yielded> = bench
        .sent()
        .iter()
        .map(|request| {
            let context = request.context.iter().map(|item| (item.name.clone(), item.text.clone())).collect();
            let tool = request.tools.tools()[0].id.as_str().to_owned();
            (request.system.to_string(), context, tool, request.settings.temperature.unwrap())
        })
        .collect();
    assert_eq!(sent, *yielded.lock().unwrap());
    bench.checked().await;
}

/// A clock that goes back by a second at each read.
#[derive(Clone)]
struct Backwards(Arc<AtomicI64>);

impl Clock for Backwards {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.fetch_sub(1_000_000, Ordering::SeqCst))
    }
}

#[tokio::test(start_paused = true)]
async fn promise_21_log_times_never_decrease_when_the_clock_goes_back() {
    let store = MemoryStore::new();
    let model = ScriptedModel::new([batch([("gated", "a"), ("safe", "b")]), done()]);
    let runner = Runner::new(model)
        .store(store.clone())
        .clock(Backwards(Arc::new(AtomicI64::new(TestClock::BEGIN.0))))
        .ids(CountedIds::default());
    let run = runner.start(&workshop(&Journal::default(), tools), ()).await.unwrap();
    waits(&run).await;
    runner.client().approve(run.id(), &path("Work/0.0"), by("ann")).await.unwrap();
    result(&run).await;

    let log = runner.client().events(run.id(), positronic_core::record::Seq(0)).await.unwrap();

    assert!(log.is_sorted_by_key(|event| event.at), "{log:#?}");
    // The store refuses an earlier time from any writer.
    let mut state = RunState::replay(log[..5].iter().map(|event| &**event)).unwrap();
    let (before, next) = (state.clone(), &log[5]);
    let early = Event { at: Timestamp(next.at.0 - 1), ..Event::clone(next) };
    assert!(early.at < state.at, "the event before has the same time");
    let refused = state.apply(&early).unwrap_err();
    assert!(refused.reason.contains("its time is before"), "{refused}");
    assert_eq!(state, before);
}

#[tokio::test(start_paused = true)]
async fn promise_21_event_of_a_newer_format_is_refused_and_nothing_is_written() {
    let (bench, journal) = (Bench::<OnDisk>::fresh(), Journal::default());
    let shop = workshop(&journal, tools);
    let process = bench.process("old", |_| batch([("gated", "a")]));
    let run = bench.start(&process, &shop).await;
    waits(&run).await;
    let last = bench.log().await.last().unwrap().to_json().unwrap();
    bench.declare_dead().await;
    let newer = last.replacen('{', r#"{"v":2,"#, 1);
    bench.store.execute("UPDATE events SET line = ?1 WHERE id = (SELECT max(id) FROM events)", &newer);
    let second = bench.process("second", |_| done()).brain(shop);

    let (read, resumed) = (bench.client("people").state(&run_id()).await, second.resume(&run_id()).await);
    let decided = bench.client("people").approve(&run_id(), &path("Work/0.0"), by("ann")).await;

    let says = |error: String| assert!(error.contains("format 2") && error.contains("use a newer release"), "{error}");
    says(read.unwrap_err().to_string());
    says(resumed.unwrap_err().to_string());
    says(decided.unwrap_err().to_string());
    assert!(matches!(Event::from_json(&newer), Err(EventError::Version { found: 2 })));
    let row = bench.store.run(&run_id()).await.unwrap();
    assert_eq!(row.next.index(), run.state().next.index());
}
