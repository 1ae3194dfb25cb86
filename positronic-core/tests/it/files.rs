//! Files: their bytes are stored beside the logs before an event names them, and stay while a run needs them.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::{FileOrigin, RunFile};
use positronic_core::record::{EventKind, RunId, Seq, SideOutput, Timestamp, sha256};
use positronic_core::runner::{Clock, Fork, RunHandle};
use positronic_core::store::prelude::*;
use positronic_core::store::{EventStore, LARGEST_BLOB, MemoryStore, StoreError};
use positronic_core::testing::{CountedIds, Lockstep as _, TestClock};
use positronic_sqlite::SqliteStore;
use positronic_store_suite::{Fault, FaultyStore};
use serde_json::json;

use crate::support::{done, error_of, results};

const REPORT: &[u8] = b"month,sales\nMay,3\n";

fn saving() -> Brain<(), ()> {
    let save = Tool::new("save", |t| {
        t.execute(async |_: NoArgs, cx| {
            let file = cx.save_file("sales.csv", "text/csv", REPORT).await?;
            Ok(file.size)
        })
    });
    brain("Reporter").r#loop("Work", move |cx| cx.system("Report.").input("Go.").tools([save.clone()])).build()
}

fn runner(store: impl EventStore, clock: impl Clock) -> Runner {
    let model = ScriptedModel::new([Reply::call("save", json!({})), done()]);
    Runner::new(model).store(store).clock(clock).ids(CountedIds::default()).lockstep(true)
}

async fn ended(run: &RunHandle<()>) {
    run.result().await.unwrap();
}

#[tokio::test]
async fn saved_file_is_readable_by_every_process_with_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let runner = runner(SqliteStore::open(&path).unwrap(), TestClock::default());
    let run = runner.start(&saving(), ()).await.unwrap();
    ended(&run).await;
    let id = run.id().clone();
    drop((run, runner));

    let client = positronic_core::runner::Client::new(SqliteStore::open(&path).unwrap());
    let files = client.files(&id).await.unwrap();

    let [RunFile { path: call, origin, file, .. }] = &files[..] else { panic!("one file: {files:?}") };
    assert_eq!((call.as_str(), origin), ("Work/0.0", &FileOrigin::Tool { tool: "save".to_owned() }));
    assert_eq!((file.name.as_str(), file.media_type.as_str(), file.size), ("sales.csv", "text/csv", 18));
    assert_eq!(file.uri, format!("blob:{}", sha256(REPORT)));
    assert_eq!(client.blob(&file.sha256).await, Ok(Some(REPORT.to_vec())));
    // No event contains the bytes.
    let log = client.events(&id, Seq(0)).await.unwrap();
    assert!(log.iter().all(|event| !event.to_json().unwrap().contains("month")));
    assert_eq!(client.blob(&sha256(b"another")).await, Ok(None));

    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute("UPDATE blobs SET bytes = x'00'", []).unwrap();
    let damaged = client.blob(&file.sha256).await.unwrap_err();
    assert_eq!(damaged, StoreError::Damaged { sha256: sha256(REPORT), found: sha256(&[0]) });
    assert!(damaged.to_string().contains("restore the store from a backup"), "{damaged}");
}

#[tokio::test(start_paused = true)]
async fn bytes_are_stored_before_the_event_that_names_them() {
    let (store, seen) = (MemoryStore::new(), Arc::new(Mutex::new(Vec::new())));
    let (kept, told) = (store.clone(), Arc::clone(&seen));
    let watched = FaultyStore::new(store, move |_, append| {
        for event in &append.events {
            if let EventKind::LoopOutput { output: SideOutput::File(file), .. } = &event.kind {
                told.lock().unwrap().push(kept.blob(&file.file.sha256).now_or_never().unwrap());
            }
        }
        None::<Fault>
    });

    // Not in lockstep, where the event would wait for the end of the tool.
    let model = ScriptedModel::new([Reply::call("save", json!({})), done()]);
    let runner = Runner::new(model).store(watched).clock(TestClock::default());
    ended(&runner.start(&saving(), ()).await.unwrap()).await;

    assert_eq!(*seen.lock().unwrap(), [Ok(Some(REPORT.to_vec()))]);
}

#[tokio::test(start_paused = true)]
async fn unstorable_file_fails_the_call_and_no_event_names_it() {
    for (refused, said) in [
        (StoreError::Failed { message: "the disk is full".to_owned() }, "cannot store the file: the disk is full"),
        (StoreError::TooLarge { size: 99, most: 9 }, "cannot store the file: a file of 99 bytes is too large"),
    ] {
        let store = FaultyStore::new(MemoryStore::new(), |_, _| None)
            .reading(move |method| (method == "put_blob").then(|| refused.clone()));
        let runner = runner(store, TestClock::default());

        let run = runner.start(&saving(), ()).await.unwrap();
        ended(&run).await;

        let story = positronic_core::testing::Story::of(&run).await;
        let error = error_of(&results(&story, "Work")[0]).to_owned();
        assert!(error.starts_with(said), "{error}");
        assert_eq!(runner.client().files(run.id()).await.unwrap(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn transient_store_failure_is_retried() {
    let failures = Arc::new(Mutex::new(3));
    let store = FaultyStore::new(MemoryStore::new(), |_, _| None).reading(move |method| {
        let mut failures = failures.lock().unwrap();
        (method == "put_blob" && *failures > 0).then(|| {
            *failures -= 1;
            StoreError::Failed { message: "busy".to_owned() }
        })
    });
    let runner = runner(store, TestClock::default());

    let run = runner.start(&saving(), ()).await.unwrap();
    ended(&run).await;

    assert_eq!(runner.client().files(run.id()).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn oversized_file_is_an_error_that_names_the_limit() {
    let large = Tool::new("save", |t| {
        t.execute(async |_: NoArgs, cx| {
            cx.save_file("large.bin", "application/octet-stream", vec![0; LARGEST_BLOB + 1]).await.map(|_| ())
        })
    });
    let brain: Brain<(), ()> =
        brain("Large").r#loop("Work", move |cx| cx.system("Work.").input("Go.").tools([large.clone()])).build();
    let runner = runner(MemoryStore::new(), TestClock::default());

    let story = positronic_core::testing::Story::of(&runner.start(&brain, ()).await.unwrap()).await;

    let error = error_of(&results(&story, "Work")[0]).to_owned();
    assert!(error.contains("a file of 33554433 bytes is too large"), "{error}");
    assert!(error.contains("at most 33554432 bytes"), "{error}");
}

/// A manual clock.
#[derive(Debug, Clone, Default)]
struct ManualClock(Arc<AtomicI64>);

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

/// A fork has the files of its original even after its removal; removing the last one deletes them an hour later.
#[tokio::test]
async fn promise_13_fork_keeps_the_files_of_its_original() {
    let folder = tempfile::tempdir().unwrap();
    on(MemoryStore::new()).await;
    on(SqliteStore::open(folder.path().join("runs.db")).unwrap()).await;

    async fn on(store: impl EventStore) {
        let clock = ManualClock::default();
        let runner = runner(store, clock.clone());
        let client = runner.client();
        let run = runner.start(&saving(), ()).await.unwrap();
        ended(&run).await;
        let last = Seq(run.state().next.0 - 1);
        let fork = client.fork(run.id(), last, Fork::default()).await.unwrap();
        let hash = sha256(REPORT);
        let prune = async |run: &RunId| {
            let row = client.store().run(run).await.unwrap();
            client.prune(&[row]).await.unwrap()
        };

        assert_eq!(prune(run.id()).await.len(), 1);
        clock.0.fetch_add(7_200_000_000, Ordering::SeqCst);
        assert_eq!(client.sweep().await, Ok(0));
        assert_eq!(client.blob(&hash).await, Ok(Some(REPORT.to_vec())));
        assert_eq!(client.files(&fork).await.unwrap()[0].file.sha256, hash);

        assert_eq!(prune(&fork).await.len(), 1);
        assert_eq!(client.blob(&hash).await, Ok(None));
    }
}
