//! A process that dies at any moment: the run goes on from its log, in another process, as if nothing had happened.

use std::sync::{Arc, Mutex};

use positronic_core::model::scripted::ScriptedModel;
use positronic_core::prelude::*;
use positronic_core::record::{Event, ModelRequest, RunId};
use positronic_core::runner::{Runner, Settled};
use positronic_core::store::{EventStore, MemoryStore};
use positronic_core::testing::{CountedIds, FaultyStore, Story, Test, TestClock};

use crate::support::{Board, Journal, ShopBuilder, batch, check_log, done, worker, workshop};

fn runner(store: impl EventStore, model: ScriptedModel) -> Runner {
    Runner::builder()
        .model(model)
        .store(store)
        .clock(TestClock::default())
        .ids(CountedIds::default())
        .lockstep(true)
        .linger(std::time::Duration::MAX)
        .build()
}

/// Answers by the round, so that a request that is sent again gets the answer it got before.
fn model() -> ScriptedModel {
    ScriptedModel::from_fn(|request: &ModelRequest| match request.path.as_str() {
        "Work/0" => batch([("safe", "a"), ("read", "b")]),
        "Work/1" => batch([("alone", "c"), ("safe", "d")]),
        _ => done(),
    })
}

fn shop(journal: &Journal) -> Brain<(), Board> {
    workshop(journal, |config| {
        config.tools([
            worker("safe", ShopBuilder::idempotent),
            worker("read", ShopBuilder::read_only),
            worker("alone", |t| t.idempotent().sequential()),
        ])
    })
}

#[tokio::test(start_paused = true)]
async fn a_run_that_stopped_anywhere_goes_on_and_ends_the_same() {
    let journal = Journal::default();
    let brain = shop(&journal);
    let boundaries = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&boundaries);
    let store = FaultyStore::new(MemoryStore::new(), move |_, append| {
        noted.lock().unwrap().push(append.expected.index());
        None
    });
    let whole = Test::with(runner(store, model())).run(&brain, ()).await;
    let id = RunId::new("run-1");
    let boundaries: Vec<_> = boundaries.lock().unwrap().drain(1..).collect();
    assert!(boundaries.len() > 10, "{boundaries:?}");
    for until in boundaries {
        let store = MemoryStore::new();
        let again = runner(store, model()).brain(brain.clone());
        let prefix: Vec<Arc<Event>> = whole.log()[..until].to_vec();
        again.control().import(&id, &prefix).await.unwrap();

        let mut recovered = again.recover().await.unwrap();

        let (found, run) = recovered.pop().unwrap();
        assert_eq!(found, id);
        let run = run.unwrap();
        assert!(matches!(run.settled().await, Settled::Completed(_)), "{until}");
        let story = Story::of(&run).await;
        check_log(&story, &run.state());
        assert_eq!(story.transcript(), whole.transcript(), "{until}");
        assert_eq!(story.state(), whole.state(), "{until}");
        assert_eq!(story.log()[..until], prefix);
    }
}
