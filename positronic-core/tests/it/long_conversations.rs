//! Long conversations and long runs: what a message and a resume read of the store.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Message, ModelRequest, RunId, Seq};
use positronic_core::runner::Settled;
use positronic_core::store::prelude::*;
use positronic_core::store::{MemoryStore, SavedPrompts};
use serde_json::json;

use crate::counting::{Counting, Reads};
use crate::support::{done, path};

fn helper() -> Brain<(), ()> {
    brain("Helper").r#loop("Chat", |cx| cx.system("Help.")).step("End", async |_| Ok(())).build()
}

/// Answers with the number of messages.
fn counts(request: &ModelRequest) -> Reply {
    Reply::text(format!("{} messages", request.messages.len()))
}

fn memory() -> Counting {
    Counting::over(MemoryStore::new())
}

/// The messages of the last request.
#[derive(Clone, Default)]
struct Sent(Arc<Mutex<Vec<Message>>>);

impl Sent {
    fn messages(&self) -> Vec<Message> {
        self.0.lock().unwrap().clone()
    }
}

/// A process, and what its model was sent last.
fn process(store: &Counting) -> (Runner, Sent) {
    let sent = Sent::default();
    let last = sent.clone();
    let model = ScriptedModel::from_fn(move |request| {
        *last.0.lock().unwrap() = request.messages.messages();
        counts(request)
    });
    (Runner::new(model).store(store.clone()), sent)
}

async fn say(runner: &Runner, turn: usize) {
    let run = runner.conversation("c").user("ann").send(&helper(), (), format!("message {turn}")).await.unwrap();
    run.result().await.unwrap();
}

/// Sends a message, and returns what that read.
async fn reads(runner: &Runner, store: &Counting, turn: usize) -> Reads {
    store.take();
    say(runner, turn).await;
    store.take()
}

#[tokio::test]
async fn message_reads_the_same_at_10_and_at_300_turns() {
    let store = memory();
    let (warm, _) = process(&store);
    let (mut at, mut cold) = (Vec::new(), Vec::new());
    for turn in 0..=301 {
        let read = reads(&warm, &store, turn).await;
        if matches!(turn, 10 | 300) {
            at.push(read);
            cold.push(reads(&process(&store).0, &store, turn).await);
        }
    }

    assert_eq!(at[0], at[1], "in one process");
    assert_eq!(at[0].events, 0);
    // A new process also reads a block for each turn, each 16 turns and each 256 turns: 12, and 1 + 2 + 15.
    let blocks: Vec<_> = cold.iter().map(|cold| cold.operations - at[0].operations).collect();
    assert!(blocks[0] <= 13 && blocks[1] <= 19, "{blocks:?}");
    assert_eq!((cold[0].events, cold[1].events), (0, 0));
    assert_eq!((cold[0].rows, cold[1].rows), (at[0].rows, at[0].rows));
}

/// Saved prompts as they are stored, of another version, damaged, of other events, and lost.
const SPOILED: [fn(SavedPrompts) -> Option<SavedPrompts>; 6] = [
    Some,
    |part| Some(SavedPrompts { version: part.version + 1, ..part }),
    |part| Some(SavedPrompts { version: part.version - 1, ..part }),
    |part| Some(SavedPrompts { content: part.content.replace('{', "["), ..part }),
    |part| Some(SavedPrompts { from: part.from.next(), ..part }),
    |_| None,
];

#[tokio::test]
async fn unreadable_turns_are_read_from_the_logs() {
    let store = memory();
    let (warm, before) = process(&store);
    for turn in 0..20 {
        say(&warm, turn).await;
    }
    for spoils in SPOILED {
        let (cold, sent) = process(&store.spoiling(spoils));
        say(&cold, 20).await;
        let last = cold.client().conversations().runs("c").await.unwrap().remove(0);
        assert_eq!(store.remove(&[last.run]).await.unwrap(), 1);
        assert_eq!(sent.messages().len(), 41);
        assert!(sent.messages().starts_with(&before.messages()));
    }
}

#[tokio::test]
async fn conversation_of_an_older_release_is_read_once() {
    let store = memory();
    let without = store.spoiling(|_| None);
    for turn in 0..40 {
        // Each process reads the logs, as if none had saved its turn.
        say(&process(&without).0, turn).await;
    }
    store.take();

    let (first, second) = (process(&without).0, process(&store).0);
    let before = reads(&first, &store, 40).await;
    let after = reads(&second, &store, 41).await;

    assert!(before.events > 40 * 8, "{before:?}");
    assert_eq!((after.events, after.snapshots), (0, 2), "the state of the last run, and all turns in one block");
}

#[tokio::test]
async fn two_processes_that_answer_in_turn_read_only_each_others_turns() {
    let store = memory();
    let (one, sent) = process(&store);
    let (other, _) = process(&store);
    for turn in 0..20 {
        say(&one, 2 * turn).await;
        say(&other, 2 * turn + 1).await;
    }

    let read = reads(&one, &store, 40).await;

    assert_eq!((read.events, read.snapshots), (0, 2), "the state of the last run, and its turn");
    assert_eq!(sent.messages().len(), 81);
}

#[tokio::test]
async fn run_with_the_id_of_a_removed_one_has_its_own_turn_in_the_history() {
    let store = memory();
    let (one, sent) = process(&store);
    say(&one, 0).await;
    say(&one, 1).await;
    assert_eq!(store.remove(&["c-1".into()]).await.unwrap(), 1);
    say(&process(&store).0, 7).await;

    say(&one, 2).await;

    let users: Vec<_> = sent
        .messages()
        .into_iter()
        .filter_map(|message| match message {
            Message::User { text, .. } => Some(text),
            _ => None,
        })
        .collect();
    assert_eq!(users, ["message 0", "message 7", "message 2"]);
}

/// A brain that reads pages and then waits for a person.
fn reader() -> Brain<(), ()> {
    brain("Reader")
        .r#loop("Read", |cx| {
            let config = cx.system("Read.").input("Read the book.").unlimited();
            config
                .tool("read", |t| t.execute(async |_: NoArgs, _| Ok("a page")))
                .tool("pay", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("paid")))
        })
        .build()
}

#[tokio::test]
async fn resume_of_a_long_run_reads_only_its_last_events() {
    for spoils in SPOILED {
        let (store, pages) = (memory(), 300);
        let replies = (0..pages).map(|_| Reply::call("read", json!({}))).chain([Reply::call("pay", json!({}))]);
        let first = Runner::new(ScriptedModel::new(replies)).store(store.clone()).linger(Duration::ZERO);
        let run = first.start(&reader(), ()).await.unwrap();
        assert!(matches!(run.settled().await, Settled::Waiting(_)));
        let before = run.prompts();
        let (id, next) = (run.id().clone(), run.state().next);
        released(&store, &id).await;
        drop(run);
        store.take();

        let model = Arc::new(ScriptedModel::new([done()]));
        let second = Runner::new(Arc::clone(&model)).store(store.spoiling(spoils)).brain(reader());
        let run = second.open(&id).await.unwrap();

        let read = store.take();
        assert!(next.0 > 1500, "{next}");
        let part = SavedPrompts { from: Seq(0), next: Seq(1), version: 1, content: "{".to_owned() };
        let is_whole = spoils(part.clone()) == Some(part);
        assert!(if is_whole { read.events < 300 } else { read.events > 1500 }, "{read:?}");
        assert_eq!(run.prompts().get(&path("Read")), before.get(&path("Read")));
        assert_eq!(run.prompts().next_messages(&path("Read")), before.next_messages(&path("Read")));
        let run = second.resume(&id).await.unwrap();
        run.approve(&path(&format!("Read/{pages}.0")), "ann").await.unwrap();
        assert!(matches!(run.settled().await, Settled::Completed(_)));
        assert_eq!(model.requests().last().unwrap().messages.len(), 1 + 2 * (pages + 1));
    }
}

/// Waits until the worker has released the run.
async fn released(store: &Counting, run: &RunId) {
    while store.run(run).await.unwrap().claim.is_some_and(|claim| !claim.released) {
        tokio::task::yield_now().await;
    }
}

/// Prints what a message costs: `cargo test --test it -- --ignored --nocapture long_conversations::measured`.
#[tokio::test]
#[ignore = "prints times"]
async fn measured() {
    let folder = tempfile::tempdir().unwrap();
    let store = Counting::over(positronic_sqlite::SqliteStore::open(folder.path().join("runs.db")).unwrap());
    let warm = Runner::new(ScriptedModel::from_fn(counts)).store(store.clone());
    for turn in 0..=1000 {
        let begun = tokio::time::Instant::now();
        let read = reads(&warm, &store, turn).await;
        if matches!(turn, 10 | 200 | 400 | 1000) {
            println!("{turn}: {:?} {read:?}", begun.elapsed());
            let cold = Runner::new(ScriptedModel::from_fn(counts)).store(store.clone());
            let begun = tokio::time::Instant::now();
            let read = reads(&cold, &store, turn).await;
            println!("{turn} in a new process: {:?} {read:?}", begun.elapsed());
        }
    }
}
