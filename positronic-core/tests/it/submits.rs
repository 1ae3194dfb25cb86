//! Runs that one runner starts and another one works on.

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{EventKind, Seq, SignalId, Start, Status};
use positronic_core::runner::StartError;
use positronic_core::store::MemoryStore;
use positronic_core::store::prelude::*;
use positronic_core::testing::TestClock;

fn greeter() -> Brain<(), ()> {
    brain("Greeter").r#loop("Greet", |cx| cx.system("Greet.")).build()
}

fn runner(store: &MemoryStore, replies: &[&str]) -> Runner {
    let model = ScriptedModel::new(replies.iter().map(|text| Reply::text(*text)));
    Runner::new(model).store(store.clone()).clock(TestClock::default())
}

#[tokio::test(start_paused = true)]
async fn submitted_run_is_not_claimed_until_a_worker_serves_the_store() {
    let store = MemoryStore::new();
    let starter = runner(&store, &[]).submit_only();
    let worker = runner(&store, &["Hello!"]).brain(greeter());

    let run = starter.start(greeter(), ()).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;

    let row = store.run(run.id()).await.unwrap();
    assert_eq!((row.status, row.next, row.claim), (Status::Running, Seq(1), None));

    let _service = worker.serve();
    run.result().await.unwrap();

    let claim = store.run(run.id()).await.unwrap().claim.unwrap();
    assert_eq!(*claim.owner, *worker.worker().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn repeated_submission_returns_the_same_run_and_another_one_is_refused() {
    let store = MemoryStore::new();
    let starter = runner(&store, &[]).submit_only();
    let start = |user: &str| Start { id: Some(SignalId::new("order-1")), user: Some(user.into()), ..Start::default() };

    let first = starter.start_with(greeter(), (), start("ann")).await.unwrap();
    let again = starter.start_with(greeter(), (), start("ann")).await.unwrap();
    let other = starter.start_with(greeter(), (), start("ben")).await;

    assert_eq!(first.id(), again.id());
    assert_eq!(store.run(first.id()).await.unwrap().next, Seq(1));
    assert!(matches!(other, Err(StartError::Started { .. })));
}

#[tokio::test(start_paused = true)]
async fn submitted_message_continues_the_conversation() {
    let store = MemoryStore::new();
    let starter = runner(&store, &[]).submit_only();
    let worker = runner(&store, &["Hello!", "It rains."]).brain(greeter());
    let _service = worker.serve();
    let chat = starter.conversation("ann-1");

    chat.send(greeter(), (), "Hi").await.unwrap().result().await.unwrap();
    chat.send(greeter(), (), "And the weather?").await.unwrap().result().await.unwrap();

    let runs = chat.runs().await.unwrap();
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().all(|run| run.status == Status::Completed), "{runs:?}");
}

#[tokio::test(start_paused = true)]
async fn client_streams_the_deltas_of_the_runners_that_stream_to_it() {
    use futures::StreamExt as _;
    use positronic_core::runner::{Client, RunUpdate};

    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    let worker = runner(&store, &["Hello!"]).stream_to(&client).brain(greeter());
    let run = runner(&store, &[]).submit_only().start(greeter(), ()).await.unwrap();
    let mut updates = client.follow(run.id(), Seq(0));

    let _service = worker.serve();

    let mut streamed = String::new();
    while let Some(update) = updates.next().await {
        match update.unwrap() {
            RunUpdate::Delta(delta) => streamed.push_str(&delta.text),
            RunUpdate::Event(event) if matches!(event.kind, EventKind::BrainComplete { .. }) => break,
            _ => {}
        }
    }
    assert_eq!(streamed, "Hello!");
}
