//! Messages to a conversation whose last run is open.

use super::*;

#[tokio::test(start_paused = true)]
async fn message_queues_while_a_call_is_pending() {
    let store = MemoryStore::new();
    let runner = runner(&store, ScriptedModel::from_fn(calling));
    let chat = runner.conversation("c");
    let run = chat.send(&gated(), (), "pay").await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));

    let same = chat.send(&gated(), (), "wait").await.unwrap();

    assert_eq!(same.id(), run.id());
    same.approve(&path("Chat/0.0"), "ann").await.unwrap();
    assert!(matches!(same.settled().await, Settled::Completed(_)));
    assert_eq!(said(&runner, "c").await, ["c-0 pay: wait after 4"]);
}

#[tokio::test(start_paused = true)]
async fn message_with_an_id_is_sent_once_to_an_open_and_to_an_ended_run() {
    let store = MemoryStore::new();
    let runner = runner(&store, ScriptedModel::from_fn(calling));
    let chat = runner.conversation("c");
    let message = |text: &str| UserMessage::new(text).id(format!("id of {text}"));
    let run = chat.send(&gated(), (), message("pay")).await.unwrap();
    run.settled().await;
    for repeated in ["pay", "wait", "wait"] {
        let same = chat.clone().busy(if repeated == "pay" { Busy::Cancel } else { Busy::Queue });
        assert_eq!(same.send(&gated(), (), message(repeated)).await.unwrap().id(), run.id());
    }

    run.approve(&path("Chat/0.0"), "ann").await.unwrap();
    assert!(matches!(run.settled().await, Settled::Completed(_)));
    for repeated in ["pay", "wait"] {
        assert_eq!(chat.send(&gated(), (), message(repeated)).await.unwrap().id(), run.id());
    }

    assert_eq!(said(&runner, "c").await, ["c-0 pay: wait after 4"]);
}

#[tokio::test(start_paused = true)]
async fn message_waits_for_a_run_that_does_not_accept_it_yet() {
    let slow = brain("Slow")
        .step("Think", async |_| {
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            Ok(())
        })
        .r#loop("Chat", |cx| cx.system("Help."));
    let store = MemoryStore::new();
    let runner = echoing(&store);
    let chat = runner.conversation("c");
    chat.send(&slow, (), "one").await.unwrap();

    let next = chat.send(&slow, (), "two").await.unwrap();

    next.result().await.unwrap();
    assert_eq!(said(&runner, "c").await, ["c-0 one: one after 1", "c-1 two: two after 3"]);
}

#[tokio::test(start_paused = true)]
async fn message_cancels_pending_calls_under_that_policy() {
    let store = MemoryStore::new();
    let runner = runner(&store, ScriptedModel::from_fn(calling));
    let chat = runner.conversation("c").busy(Busy::Cancel);
    let run = chat.send(&gated(), (), "pay").await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));

    let next = chat.send(&helper(), (), "never mind").await.unwrap();

    assert!(matches!(next.settled().await, Settled::Waiting(_) | Settled::Completed(_) | Settled::Failed(_)));
    assert_eq!(next.id(), &RunId::new("c-1"));
    assert_eq!(store.run(run.id()).await.unwrap().status, Status::Cancelled);
    let [_, Message::Assistant { .. }, Message::Tool { text, .. }] =
        &*runner.client().history(next.id()).await.unwrap()
    else {
        panic!("the open call has a result")
    };
    assert!(text.starts_with("Skipped: "), "{text}");
}
