//! Runs with new events are found at once, the others once a second.

use serde_json::json;

use super::*;
use crate::dsl::{Brain, NoArgs, Tool, brain};
use crate::model::scripted::{Reply, ScriptedModel};
use crate::record::{Actor, Path, SignalId, SignalKind, Start};
use crate::store::MemoryStore;
use crate::testing::TestClock;

fn paying() -> Brain<(), ()> {
    brain("Paying")
        .r#loop("Work", |cx| {
            let pay = Tool::new("pay", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("paid")));
            cx.system("Pay.").input("Begin.").tools([pay])
        })
        .build()
}

fn call() -> Path {
    Path::root().stage("Work").call(0, 0)
}

/// Returns the runs that a poll finds, and ends their reservations.
async fn found(queue: &mut WorkQueue) -> Vec<String> {
    queue.wait().await;
    let rows = queue.take(8, |_| false).await.unwrap();
    for row in &rows {
        queue.release(row).await;
    }
    rows.into_iter().map(|row| row.run.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn only_runs_with_new_events_are_inspected_between_two_listings() {
    let store = MemoryStore::new();
    let runner = Runner::new(ScriptedModel::from_fn(|_| Reply::call("pay", json!({}))))
        .store(store.clone())
        .clock(TestClock::default())
        .linger(Duration::ZERO);
    for id in ["one", "two"] {
        let start = Start { id: Some(SignalId::from(id)), ..Start::default() };
        let run = runner.start_with(paying(), (), start).await.unwrap();
        run.settled().await;
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    let (client, ann) = (runner.client(), Actor::builder().by("ann").build());
    // It would do the work itself.
    drop(runner);
    let (one, two) = (RunId::new("one"), RunId::new("two"));
    let mut queue = WorkQueue::new(client.clone(), Claims::default(), None, false);

    assert_eq!(found(&mut queue).await, Vec::<String>::new(), "they wait");
    client.approve(&one, &call(), ann.clone()).await.unwrap();
    assert_eq!(found(&mut queue).await, ["one"]);
    client.approve(&two, &call(), ann.clone()).await.unwrap();
    assert_eq!(found(&mut queue).await, ["two"], "`one` has work, too, but no new event");
    tokio::time::sleep(Duration::from_millis(500)).await;
    queue.again(&one);
    assert_eq!(found(&mut queue).await, ["one"]);
    // Once a second, all are listed.
    assert_eq!(found(&mut queue).await.len(), 2);
    tokio::time::sleep(POLL).await;
    let rows = queue.take(8, |run| *run == one).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.run.as_str()).collect::<Vec<_>>(), ["two"]);
    queue.release(&rows[0]).await;

    let row = client.store().run(&one).await.unwrap();
    queue.refuse(&row, ClaimRefusal::NoBrain, "no such brain").await;
    queue.again(&one);
    assert_eq!(found(&mut queue).await, Vec::<String>::new(), "nothing has changed in it");
    let hello = || SignalKind::message("hello");
    client.signal(&one, hello(), ann.clone()).await.unwrap();
    assert_eq!(found(&mut queue).await, ["one"]);

    let row = client.store().run(&one).await.unwrap();
    queue.pause(&row, None).await;
    queue.pause(&row, None).await;
    assert_eq!(found(&mut queue).await, ["two"], "it has failed twice, and rests for two seconds");
    assert!(found(&mut queue).await.contains(&one.to_string()));
    queue.pause(&row, None).await;
    assert_eq!(found(&mut queue).await, ["two"]);
    client.signal(&one, hello(), ann).await.unwrap();
    assert_eq!(found(&mut queue).await, ["one"], "a signal has arrived");
}
