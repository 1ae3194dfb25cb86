//! Crashes at any moment: another process continues the run from its log, and it ends as if uninterrupted.

use std::sync::{Arc, Mutex};

use positronic_core::dsl::Runnable;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Event, ModelRequest, OutputKind, PublicId, RunId};
use positronic_core::store::{EventStore, MemoryStore};
use positronic_core::testing::{CountedIds, Lockstep as _, Story, Test, TestClock};
use positronic_store_suite::FaultyStore;
use serde_json::json;

use crate::support::checks::check_log;
use crate::support::{Board, Journal, done, prompt, workshop};

fn runner(store: impl EventStore, model: ScriptedModel) -> Runner {
    Runner::new(model)
        .store(store)
        .clock(TestClock::default())
        .ids(CountedIds::default())
        .lockstep(true)
        .linger(std::time::Duration::MAX)
}

/// Runs a brain and records after which events its process could have died.
pub(crate) async fn undisturbed(
    brain: &impl Runnable<Options = (), Result = Board>,
    model: ScriptedModel,
) -> (Story, Vec<usize>) {
    let boundaries = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&boundaries);
    let store = FaultyStore::new(MemoryStore::new(), move |_, append| {
        noted.lock().unwrap().push(append.expected.index());
        None
    });
    let baseline = Test::with(runner(store, model)).run(brain, ()).await;
    let boundaries = boundaries.lock().unwrap().drain(1..).collect();
    (baseline, boundaries)
}

#[tokio::test(start_paused = true)]
async fn effect_is_announced_with_the_previous_outcome() {
    let model = ScriptedModel::new([Reply::call("add", json!({})), Reply::text("done")]);
    let adder = brain("Adder").r#loop("Work", |cx| {
        cx.system("Add.")
            .input("One and one?")
            .tool("add", |t| t.description("Adds").execute(async |_: NoArgs, _| Ok(2)))
    });
    let appends = Arc::new(Mutex::new(Vec::<Vec<&'static str>>::new()));
    let noted = Arc::clone(&appends);
    let store = FaultyStore::new(MemoryStore::new(), move |_, append| {
        noted.lock().unwrap().push(append.events.iter().map(|event| event.kind.name()).collect());
        None
    });

    Test::with(runner(store, model)).run(adder, ()).await;

    assert_eq!(
        *appends.lock().unwrap(),
        [
            &["BRAIN_START", "RUN_CLAIMED"][..],
            &["LOOP_START", "LOOP_ITERATION", "LOOP_MODEL_CALL"],
            &["LOOP_MODEL_RESULT", "LOOP_TOOL_CALL", "LOOP_TOOL_START"],
            &["LOOP_TOOL_RESULT", "LOOP_ITERATION", "LOOP_MODEL_CALL"],
            &["LOOP_MODEL_RESULT"],
            &["LOOP_COMPLETE"],
            &["BRAIN_COMPLETE"],
        ]
    );
}

/// Fails transiently once, and shows one widget before the failure and two after it.
fn reporter(journal: &Journal) -> Brain<(), Board> {
    workshop(journal, |config| {
        config.tool("report", |t| {
            t.idempotent().description("Reports").execute(async |_: NoArgs, cx| {
                let first = cx.services.count() == 1;
                let shown = cx.display_widget("bar", 0, if first { "first try" } else { "second try" })?;
                // The widget is sent before the tool continues.
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                if first {
                    return Err(Error::transient("try again"));
                }
                cx.replace_widget(&shown, "bar", 1, "done")?;
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                Ok("reported")
            })
        })
    })
}

fn shown(story: &Story) -> Vec<(Option<PublicId>, String)> {
    let outputs = prompt(story, "Work").output.into_iter();
    let shown = outputs.filter_map(|output| match output.kind {
        OutputKind::Widget(widget) => Some((output.id, widget.fallback)),
        _ => None,
    });
    shown.collect()
}

#[tokio::test(start_paused = true)]
async fn retry_output_before_a_crash_is_shown_once() {
    let model = || {
        ScriptedModel::from_fn(|request: &ModelRequest| match request.path.as_str() {
            "Work/0" => Reply::call("report", json!({})),
            _ => done(),
        })
    };
    let (baseline, _) = undisturbed(&reporter(&Journal::default()), model()).await;
    assert_eq!(
        shown(&baseline).iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(),
        ["first try", "second try", "done",]
    );
    // A worker that records each output on arrival could have died after each of these.
    let in_a_try = |event: &Event| matches!(event.kind.name(), "LOOP_TOOL_START" | "LOOP_OUTPUT" | "LOOP_TOOL_RETRY");
    let deaths: Vec<_> = (1..baseline.log().len()).filter(|until| in_a_try(&baseline.log()[until - 1])).collect();
    assert_eq!(deaths.len(), 6, "two starts, three widgets, one retry");
    for until in deaths {
        let prefix: Vec<Arc<Event>> = baseline.log()[..until].to_vec();
        let journal = Journal::default();
        if prefix.iter().any(|event| event.kind.name() == "LOOP_TOOL_RETRY") {
            journal.count();
        }
        let again = runner(MemoryStore::new(), model()).brain(reporter(&journal));
        let id = RunId::new("run-1");
        again.client().import(&id, &prefix).await.unwrap();

        let run = again.resume(&id).await.unwrap();

        let story = Story::of(&run).await;
        check_log(&story, &run.state());
        assert_eq!(shown(&story), shown(&baseline), "after {until}");
    }
}
