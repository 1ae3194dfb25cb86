//! Opening, closing and sharing.

use std::sync::{Arc, Mutex, Weak};

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{RunId, Seq};
use positronic_core::store::prelude::*;
use positronic_core::store::{EventSearch, StoreError, Watcher};
use positronic_sqlite::{SqliteOptions, SqliteStore};
use positronic_store_suite::Sample;

use super::{beside, lines, quick};

#[tokio::test]
async fn run_outlives_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let greeter = brain("Greeter").r#loop("Greet", |cx| cx.system("Greet.").input("Hello!"));
    let runner =
        Runner::new(ScriptedModel::new([Reply::text("Good morning.")])).store(SqliteStore::open(&path).unwrap());
    let run = runner.start(&greeter, ()).await.unwrap();
    run.result().await.unwrap();
    let id = run.id().clone();
    let events = run.events(Seq(0)).await.unwrap();
    drop((run, runner));

    let store = SqliteStore::open(&path).unwrap();

    assert_eq!(store.read(&id, Seq(0), usize::MAX).await.unwrap(), events);
    assert_eq!(&*store.run(&id).await.unwrap().brain, "Greeter");
    assert_eq!(store.search(&EventSearch::new("good MORNING", 10)).await.unwrap().found.len(), 1);
}

#[tokio::test]
async fn last_clone_leaves_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    let clone = store.clone();
    let run = Sample::new("run-1").says("one").appended(&store).await;
    drop(store);
    let run = run.says("two").appended(&clone).await;
    assert!(beside(&path, "-wal").exists());

    drop(clone);

    assert!(!beside(&path, "-wal").exists());
    assert!(!beside(&path, "-shm").exists());
    assert_eq!(lines(&quick(&path), &run.run).await.len(), 2);
}

#[tokio::test]
async fn accepted_writes_finish_before_the_store_closes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    for run in 0..50 {
        let mut sample = Sample::new(&format!("run-{run}")).says("one");
        // Polled once, and then abandoned.
        let append = std::pin::pin!(sample.append(&store));
        _ = futures::poll!(append);
    }

    drop(store);

    assert_eq!(quick(&path).runs(&positronic_core::store::RunFilter::default()).await.unwrap().len(), 50);
}

/// Drops the store when it is notified of an append.
struct Last(Mutex<Option<SqliteStore>>);

impl Watcher for Last {
    fn appended(&self, _: &RunId, _: Seq) {
        drop(self.0.lock().unwrap().take());
    }
}

#[test]
fn watcher_may_be_the_last_owner_of_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    let watcher: Arc<dyn Watcher> = Arc::new(Last(Mutex::new(Some(store.clone()))));
    store.watch(None, Arc::downgrade(&watcher) as Weak<dyn Watcher>);
    let mut sample = Sample::new("run-1").says("one");
    {
        let mut append = Box::pin(sample.append(&store));
        let waker = futures::task::noop_waker();
        _ = append.as_mut().poll(&mut std::task::Context::from_waker(&waker));
    }

    drop(store);

    let wanted = || futures::executor::block_on(quick(&path).run(&sample.run)).is_ok();
    assert!((0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        wanted()
    }));
}

/// The caller is gone, and the file is closed without an answer.
#[tokio::test]
async fn abandoned_search_does_not_keep_the_store_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    let text = "a".repeat(1 << 20);
    for run in 0..8 {
        _ = Sample::new(&format!("run-{run}")).says(&text).says(&text).appended(&store).await;
    }
    let wanted = EventSearch::new("aaaaaaaaab", 10);
    for _ in 0..1000 {
        let search = std::pin::pin!(store.search(&wanted));
        _ = futures::poll!(search);
    }

    drop(store);

    assert!(!beside(&path, "-wal").exists());
}

#[tokio::test]
async fn read_only_store_follows_and_refuses_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    let run = Sample::new("run-1").says("one").appended(&store).await;
    let reader = SqliteStore::with(SqliteOptions::builder().path(&path).read_only(true).build()).unwrap();

    let run = run.says("two").appended(&store).await;

    assert_eq!(lines(&reader, &run.run).await.len(), 2);
    let Err(StoreError::Unusable { message }) = run.says("three").append(&reader).await else { panic!("it writes") };
    assert_eq!(message, format!("cannot write the event store `{}`: it was opened read-only", path.display()));
    let Err(StoreError::Unusable { .. }) = reader.acquire_lease().await else { panic!("it has a worker") };
    assert!(!beside(&path, "-workers").exists());
}

#[test]
fn two_processes_creating_a_file_at_once_create_the_same_one() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let stores: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| quick(&path))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        futures::executor::block_on(async {
            let run = Sample::new("run-1").says("one").appended(&stores[0]).await;
            for store in &stores {
                assert_eq!(lines(store, &run.run).await.len(), 1);
            }
        });
    }
}

#[test]
fn relative_path_is_resolved_once() {
    let absolute = std::path::absolute("runs.db").unwrap();
    let store = SqliteStore::with(SqliteOptions::builder().path("runs.db").read_only(true).build());
    let Err(StoreError::Unusable { message }) = store else { panic!("there is a file `runs.db`") };
    assert!(message.contains(&absolute.display().to_string()), "{message}");
}
