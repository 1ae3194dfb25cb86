//! Detection of runs with work: new events at once, all others once a second.

use std::time::Duration;

use positronic_core::model::scripted::ScriptedModel;
use positronic_core::record::{Actor, RunId, SignalId, SignalKind, Start};
use positronic_core::runner::{Due, Runner};
use positronic_core::store::MemoryStore;
use positronic_core::testing::TestClock;

use crate::support::{Journal, batch, path, tools, waits, workshop};

async fn found(due: &mut Due) -> Vec<String> {
    due.wait().await;
    due.rows(|_| false).await.unwrap().into_iter().map(|row| row.run.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn only_runs_with_new_events_are_inspected_between_two_listings() {
    let store = MemoryStore::new();
    let runner = Runner::builder()
        .model(ScriptedModel::from_fn(|_| batch([("gated", "a")])))
        .store(store.clone())
        .clock(TestClock::default())
        .linger(Duration::ZERO)
        .build();
    for id in ["one", "two"] {
        let start = Start { id: Some(SignalId::from(id)), ..Start::default() };
        let run = runner.start_with(&workshop(&Journal::default(), tools), (), start).await.unwrap();
        waits(&run).await;
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    let (client, ann) = (runner.client(), Actor::builder().by("ann").build());
    // Unattended, the runner would do the work itself.
    drop(runner);
    let (one, two) = (RunId::new("one"), RunId::new("two"));
    let mut due = client.due();

    assert_eq!(found(&mut due).await, Vec::<String>::new(), "they wait");
    client.approve(&one, &path("Work/0.0"), ann.clone()).await.unwrap();
    assert_eq!(found(&mut due).await, ["one"]);
    client.approve(&two, &path("Work/0.0"), ann.clone()).await.unwrap();
    assert_eq!(found(&mut due).await, ["two"], "`one` has work as well, without new events");
    tokio::time::sleep(Duration::from_millis(500)).await;
    due.again(&one);
    assert_eq!(found(&mut due).await, ["one"]);
    // All runs are listed once a second.
    assert_eq!(found(&mut due).await.len(), 2);
    assert_eq!(due.rows(|run| *run == one).await.unwrap(), []);

    let row = client.store().run(&one).await.unwrap();
    due.refuse(&row, positronic_core::record::ClaimRefusal::NoBrain, "no such brain");
    due.again(&one);
    assert_eq!(found(&mut due).await, Vec::<String>::new(), "nothing has changed in it");
    let hello = || SignalKind::Message { to: None, text: "hello".to_owned(), message_id: None };
    client.signal(&one, hello(), ann.clone()).await.unwrap();
    assert_eq!(found(&mut due).await, ["one"]);

    let row = client.store().run(&one).await.unwrap();
    due.postpone(&row);
    due.postpone(&row);
    assert_eq!(found(&mut due).await, ["two"], "it has failed twice, and rests for two seconds");
    assert!(found(&mut due).await.contains(&one.to_string()));
    due.postpone(&row);
    assert_eq!(found(&mut due).await, ["two"]);
    client.signal(&one, hello(), ann).await.unwrap();
    assert_eq!(found(&mut due).await, ["one"], "another process sent it a message");
    let row = client.store().run(&one).await.unwrap();
    due.postpone(&row);
    assert_eq!(found(&mut due).await, ["two"]);
    due.again(&one);
    assert_eq!(found(&mut due).await, ["one"], "it has continued");
}
