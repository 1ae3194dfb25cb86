//! What is appended together: outcomes that have arrived together, and the iteration that follows them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use positronic_core::dsl::each;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Event, EventKind, OutputKind, Segment, Seq};
use positronic_core::store::{EventStore, MemoryStore};
use positronic_core::testing::Lockstep as _;
use positronic_store_suite::{Fault, FaultyStore};
use serde_json::{Value, json};

type Appends = Arc<Mutex<Vec<Vec<&'static str>>>>;

fn noting(store: MemoryStore, appends: &Appends) -> impl EventStore + use<> {
    let noted = Arc::clone(appends);
    FaultyStore::new(store, move |_, append| {
        noted.lock().unwrap().push(append.events.iter().map(|event| event.kind.name()).collect());
        None
    })
}

/// A model that calls `add` so often in one answer, and then ends.
fn calls(count: u64) -> ScriptedModel {
    let calls: Vec<_> = (0..count).map(|number| ("add", json!({ "number": number }))).collect();
    ScriptedModel::new([Reply::calls(calls), Reply::text("done")])
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    number: u64,
}

#[tokio::test]
async fn results_that_arrive_together_are_one_append_with_the_next_iteration() {
    for lockstep in [false, true] {
        let appends = Appends::default();
        let adder = brain("Adder").state(Vec::<u64>::new()).r#loop("Work", |cx| {
            cx.system("Add.").tool("add", |t| {
                t.execute(async |Add { number }, cx| {
                    cx.update(move |numbers: &mut Vec<u64>| numbers.push(number));
                    Ok("added")
                })
            })
        });
        let runner = Runner::new(calls(8)).store(noting(MemoryStore::new(), &appends)).lockstep(lockstep);

        let numbers: Vec<u64> = runner.start(&adder, ()).await.unwrap().result().await.unwrap();

        assert_eq!(numbers, (0..8).collect::<Vec<_>>(), "no update is lost");
        let results = ["LOOP_TOOL_RESULT"; 8].into_iter().chain(["LOOP_ITERATION", "LOOP_MODEL_CALL"]).collect();
        let appends = appends.lock().unwrap();
        assert!(appends.contains(&results), "{appends:?}");
    }
}

#[tokio::test]
async fn configuration_of_an_iteration_sees_the_results_before_it() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let adder = brain("Adder").state(Vec::<u64>::new()).r#loop("Work", move |cx| {
        let results = cx
            .record("Work")
            .map(|prompt| prompt.output.iter().filter(|output| matches!(output.kind, OutputKind::Tool(_))).count());
        noted.lock().unwrap().push((cx.state.len(), results));
        cx.system("Add.").tool("add", |t| {
            t.execute(async |Add { number }, cx| {
                cx.update(move |numbers: &mut Vec<u64>| numbers.push(number));
                Ok("added")
            })
        })
    });

    let run = Runner::new(calls(3)).start(&adder, ()).await.unwrap();
    run.result().await.unwrap();

    assert_eq!(*seen.lock().unwrap(), [(0, None), (3, Some(3))]);
}

#[tokio::test]
async fn outcomes_are_appended_after_the_events_of_another_writer() {
    let (memory, begun) = (MemoryStore::new(), Arc::new(AtomicUsize::new(0)));
    let client = Runner::new(ScriptedModel::new([])).store(memory.clone()).client();
    // The message comes from the last tool, when the others have returned.
    let adder = brain("Adder").r#loop("Work", move |cx| {
        let (client, begun) = (client.clone(), Arc::clone(&begun));
        cx.system("Add.").tool("add", move |t| {
            t.execute(move |Add { number }, cx| {
                let (client, begun) = (client.clone(), Arc::clone(&begun));
                async move {
                    if begun.fetch_add(1, Ordering::SeqCst) == 2 {
                        client.message(cx.run_id(), "more", "a person").await.unwrap();
                    }
                    Ok(number)
                }
            })
        })
    });

    let run = Runner::new(calls(3)).store(memory).start(&adder, ()).await.unwrap();
    run.result().await.unwrap();

    let log = run.events(Seq(0)).await.unwrap();
    let results: Vec<Value> = log.iter().filter_map(|event| result(event)).collect();
    assert_eq!(results.len(), 3, "each call has one result: {results:?}");
    assert!(log.iter().any(|event| matches!(event.kind, EventKind::LoopMessage { .. })));
}

fn result(event: &Event) -> Option<Value> {
    match &event.kind {
        EventKind::LoopToolResult { result, .. } => serde_json::to_value(result).ok(),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn results_whose_append_failed_are_appended_once() {
    let failures = Arc::new(AtomicUsize::new(0));
    let failed = Arc::clone(&failures);
    let store = FaultyStore::new(MemoryStore::new(), move |_, append| {
        let has_results = append.events.iter().any(|event| matches!(event.kind, EventKind::LoopToolResult { .. }));
        let lost = positronic_core::store::StoreError::Unknown { message: "the connection was lost".into() };
        (has_results && failed.fetch_add(1, Ordering::SeqCst) == 0).then_some(Fault::Unanswered(lost))
    });
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    let adder = brain("Adder").r#loop("Work", move |cx| {
        let counted = Arc::clone(&counted);
        cx.system("Add.").tool("add", move |t| {
            let counted = Arc::clone(&counted);
            t.execute(move |Add { number }, _| {
                counted.fetch_add(1, Ordering::SeqCst);
                async move { Ok(number) }
            })
        })
    });

    let run = Runner::new(calls(4)).store(store).start(&adder, ()).await.unwrap();
    run.result().await.unwrap();

    let log = run.events(Seq(0)).await.unwrap();
    assert_eq!(log.iter().filter(|event| result(event).is_some()).count(), 4);
    assert_eq!(ran.load(Ordering::SeqCst), 4);
    assert!(failures.load(Ordering::SeqCst) > 0);
}

#[tokio::test(start_paused = true)]
async fn results_after_a_crash_are_in_the_log_before_a_configuration_runs() {
    let adder = brain("Adder").r#loop("Work", |cx| {
        cx.system("Add.").tool("add", |t| t.idempotent().execute(async |Add { number }, _| Ok(number)))
    });
    let first = MemoryStore::new();
    let run = Runner::new(calls(1)).store(first).start(&adder, ()).await.unwrap();
    run.result().await.unwrap();
    let log = run.events(Seq(0)).await.unwrap();
    // The process ended while the tool was running, or in the configuration after it.
    let begun = log.iter().position(|event| matches!(event.kind, EventKind::LoopToolStart { .. })).unwrap();
    let (memory, appends) = (MemoryStore::new(), Appends::default());
    let store = noting(memory, &appends);
    let second = Runner::new(ScriptedModel::new([Reply::text("done")])).store(store).brain(&adder);
    second.client().import(run.id(), &log[..=begun]).await.unwrap();

    let resumed = second.resume(run.id()).await.unwrap();
    resumed.settled().await;

    let appends = appends.lock().unwrap();
    assert!(appends.contains(&vec!["LOOP_TOOL_RESULT"]), "{appends:?}");
}

fn eight_items() -> Brain<(), usize> {
    let item = brain("Item").options::<u32>().step("Work", async |cx| Ok(*cx.options));
    brain("All").map("Items", |()| (0..8).collect::<Vec<u32>>(), each(item).limit(8), |(), all| all.len()).build()
}

#[tokio::test]
async fn brains_of_a_group_begin_and_end_in_common_appends() {
    let appends = Appends::default();
    let runner = Runner::new(ScriptedModel::new([])).store(noting(MemoryStore::new(), &appends)).lockstep(true);

    assert_eq!(runner.start(eight_items(), ()).await.unwrap().result().await.unwrap(), 8);

    let appends = appends.lock().unwrap();
    let begin: Vec<_> = [["BRAIN_START"; 8], ["STEP_START"; 8]].concat();
    assert!(appends.contains(&begin), "{appends:?}");
    assert!(appends.contains(&vec!["BRAIN_COMPLETE"; 8]), "{appends:?}");
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_the_first_brain_of_a_group_ends_in_an_append_of_its_own() {
    let runner = Runner::new(ScriptedModel::new([])).lockstep(true);
    let run = runner.start(eight_items(), ()).await.unwrap();
    run.result().await.unwrap();
    let log = run.events(Seq(0)).await.unwrap();
    // The process ended while the author's code computed the result of an item.
    let worked =
        log.iter().rposition(|event| matches!(event.path.last(), Some(Segment::Stage(name)) if name == "Work"));
    let appends = Appends::default();
    let second = Runner::new(ScriptedModel::new([])).store(noting(MemoryStore::new(), &appends)).brain(eight_items());
    second.client().import(run.id(), &log[..=worked.unwrap()]).await.unwrap();

    second.resume(run.id()).await.unwrap().settled().await;

    let appends = appends.lock().unwrap();
    assert!(appends.contains(&vec!["BRAIN_COMPLETE"]), "{appends:?}");
    assert!(appends.contains(&vec!["BRAIN_COMPLETE"; 7]), "it was no crash of the others: {appends:?}");
}

#[tokio::test]
async fn outcomes_of_more_than_four_mebibytes_are_several_appends() {
    let appends = Appends::default();
    let runner = Runner::new(ScriptedModel::new([])).store(noting(MemoryStore::new(), &appends)).lockstep(true);
    let item = brain("Item").options::<u32>().step("Work", async |_| Ok("x".repeat(1 << 20)));
    let all = brain("All").map("Items", |()| (0..24).collect::<Vec<u32>>(), each(item).limit(24), |(), all| all.len());

    assert_eq!(runner.start(all, ()).await.unwrap().result().await.unwrap(), 24);

    let appends = appends.lock().unwrap();
    let sizes = |kind| appends.iter().filter(|append| append.contains(&kind)).map(Vec::len).collect::<Vec<_>>();
    assert_eq!(sizes("STEP_COMPLETE"), [8, 8, 8, 1], "{appends:?}");
    assert_eq!(sizes("BRAIN_COMPLETE"), [8, 8, 8, 1], "{appends:?}");
}
