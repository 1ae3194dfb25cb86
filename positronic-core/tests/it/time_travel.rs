//! Time travel: a run as of any event, forks, differences between two runs, and changed code.

use positronic_core::dsl::BrainBuilder;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::diff;
use positronic_core::record::{EventKind, ModelRequest, Overrides, RunId, Seq, Status, ToolResult};
use positronic_core::runner::{Client, Fork, ForkError, ResumeError, RunHandle, Settled};
use positronic_core::store::MemoryStore;
use positronic_core::testing::{CountedIds, Lockstep as _, TestClock};
use serde_json::{Value, json};

use crate::support::{Board, Journal, ShopBuilder, batch, done, path, worker, workshop};

fn runner(store: &MemoryStore, prefix: &str) -> Runner {
    let model = ScriptedModel::from_fn(|request: &ModelRequest| match request.path.as_str() {
        "Work/0" => batch([("safe", "a"), ("safe", "b")]),
        "Work/1" => batch([("gated", "c")]),
        _ => done(),
    });
    let ids = Prefixed(prefix.to_owned(), CountedIds::default());
    Runner::new(model)
        .store(store.clone())
        .clock(TestClock::default())
        .ids(ids)
        .lockstep(true)
        .linger(std::time::Duration::ZERO)
}

/// Ids of one runner, distinct from those of every other runner of the test.
struct Prefixed(String, CountedIds);

impl positronic_core::runner::Ids for Prefixed {
    fn run(&self) -> RunId {
        RunId::new(format!("{}-{}", self.0, self.1.run()))
    }

    fn signal(&self) -> positronic_core::record::SignalId {
        format!("{}-{}", self.0, self.1.signal()).into()
    }

    fn jitter(&self) -> f64 {
        0.0
    }
}

fn shop(journal: &Journal) -> Brain<(), Board> {
    workshop(journal, |config| {
        config.tools([
            worker("safe", ShopBuilder::idempotent),
            worker("gated", |t| t.requires_approval("it is dangerous")),
        ])
    })
}

async fn approved(run: &RunHandle<impl Sized>) {
    let Settled::Waiting(pending) = run.settled().await else { panic!("it waits") };
    run.approve(&pending[0].call, "ann").await.unwrap();
}

async fn seq_of(client: &Client, run: &RunId, find: impl Fn(&str, &EventKind) -> bool) -> Seq {
    let log = client.events(run, Seq(0)).await.unwrap();
    log.iter().find(|event| find(event.path.as_str(), &event.kind)).unwrap().seq
}

#[tokio::test(start_paused = true)]
async fn fork_gives_a_call_another_result_and_leaves_the_original_unchanged() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let runner = runner(&store, "a").brain(shop(&journal));
    let client = runner.client();
    let run = runner.start(&shop(&journal), ()).await.unwrap();
    approved(&run).await;
    assert_eq!(run.settled().await, Settled::Completed(json!({"done": ["a", "b", "c"]})));
    let original = client.events(run.id(), Seq(0)).await.unwrap();
    journal.take();
    let decided = seq_of(&client, run.id(), |_, kind| matches!(kind, EventKind::LoopApprovalDecided { .. })).await;

    let late = Fork::builder().results([(path("Work/0.0"), ToolResult::error("broken"))].into()).build();
    let refused = runner.fork(run.id(), decided, late).await.unwrap_err();
    let fork = Fork::builder()
        .results([(path("Work/1.0"), ToolResult::error("broken"))].into())
        .overrides(Overrides { system: Some("Be brief.".to_owned()), model: None })
        .build();
    let forked = runner.fork(run.id(), decided, fork).await.unwrap();

    assert_eq!(
        refused.to_string(),
        format!("the call `Work/0.0` is not open after event {decided}; it is open from event 6 to event 9")
    );
    assert_eq!(forked.settled().await, Settled::Completed(json!({"done": ["a", "b"]})));
    assert_eq!(journal.take(), Vec::<String>::new(), "nothing ran again");
    assert_eq!(client.events(run.id(), Seq(0)).await.unwrap(), original);
    let row = client.store().run(forked.id()).await.unwrap();
    assert_eq!(row.forked_from, Some((run.id().clone(), decided)));
    let log = client.events(forked.id(), Seq(0)).await.unwrap();
    let system = log.iter().rev().find_map(|event| match &event.kind {
        EventKind::LoopIteration(iteration) => iteration.system.clone(),
        _ => None,
    });
    assert_eq!(system.unwrap().body.as_deref(), Some("Be brief."));
    let difference = diff(&original, &log).unwrap();
    let parts = difference.parts.unwrap();
    assert_eq!(
        (parts.one.unwrap().body["type"].clone(), difference.status),
        (json!("LOOP_TOOL_START"), [Status::Completed; 2])
    );
    assert_eq!(difference.state, json!([{"op": "remove", "path": "/done/2"}]));
}

#[tokio::test(start_paused = true)]
async fn stage_can_be_rerun_from_its_beginning() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let runner = runner(&store, "a").brain(shop(&journal));
    let run = runner.start(&shop(&journal), ()).await.unwrap();
    approved(&run).await;
    assert!(matches!(run.settled().await, Settled::Completed(_)));
    journal.take();

    let before = runner.client().before(run.id(), &path("Work")).await.unwrap().unwrap();
    let again = runner.fork(run.id(), before, Fork::default()).await.unwrap();
    approved(&again).await;

    assert_eq!(again.settled().await, run.settled().await);
    assert_eq!(journal.take(), ["a", "b", "c"]);
    let nowhere = runner.fork(run.id(), Seq(999), Fork::default()).await.unwrap_err();
    assert!(matches!(nowhere, ForkError::NoSuchEvent { at: Seq(999), .. }));
}

#[tokio::test(start_paused = true)]
async fn state_as_of_an_event_is_the_state_at_that_time() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let runner = runner(&store, "a").brain(shop(&journal));
    let run = runner.start(&shop(&journal), ()).await.unwrap();
    approved(&run).await;
    run.settled().await;
    let client = runner.client();
    let result =
        seq_of(&client, run.id(), |path, kind| path == "Work/0.0" && matches!(kind, EventKind::LoopToolResult { .. }));
    let result = result.await;

    let (last, _) = client.state_at(run.id(), Seq(u64::MAX)).await.unwrap();
    assert_eq!(last, client.state(run.id()).await.unwrap(), "beyond the end it is as of now");
    let (state, prompts) = client.state_at(run.id(), result).await.unwrap();

    assert_eq!(*state.root.as_ref().unwrap().state, json!({"done": ["a"]}));
    assert_eq!((state.next, prompts.get(&path("Work")).unwrap().output.len()), (result.next(), 2));
}

fn versioned(version: u32, first: &str) -> BrainBuilder<(), Value> {
    brain("Moving")
        .version(version)
        .state(json!({"v": version}))
        .step(first, async |cx| Ok(cx.state))
        .r#loop("Ask", |cx| {
            cx.system("Ask.").input("go").tool("ask", |t| {
                t.description("Asks").requires_approval("must").execute(async |_: NoArgs, _| Ok("asked"))
            })
        })
        .step("End", async |cx| Ok(cx.state))
}

async fn waiting(store: &MemoryStore) -> RunId {
    let model = ScriptedModel::new([Reply::call("ask", json!({}))]);
    let first = Runner::new(model)
        .store(store.clone())
        .clock(TestClock::default())
        .ids(CountedIds::default())
        .linger(std::time::Duration::ZERO);
    let run = first.start(&versioned(1, "Begin"), ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    run.id().clone()
}

#[tokio::test(start_paused = true)]
async fn changed_code_is_refused_by_name_or_migrated() {
    let store = MemoryStore::new();
    let run = waiting(&store).await;

    let refused = |brain: BrainBuilder<(), Value>| {
        let runner = runner(&store, "b").brain(brain);
        let run = run.clone();
        async move { runner.resume(&run).await.unwrap_err() }
    };
    let changed = |difference: &str| ResumeError::Changed { difference: difference.to_owned() };
    assert_eq!(refused(versioned(1, "Start")).await, changed("stage 1 of `Moving` was `Begin`, and is `Start` now"));
    assert_eq!(
        refused(versioned(2, "Begin")).await,
        changed("the run has begun with version 1 of `Moving`, the code has version 2")
    );

    let moved = versioned(2, "Before").migrate(1, |state| Ok(json!({"v": 2, "was": state["v"]})));
    let runner = runner(&store, "c").brain(moved);
    let run = runner.resume(&run).await.unwrap();
    approved(&run).await;
    assert_eq!(run.settled().await, Settled::Completed(json!({"v": 2, "was": 1})));
}
