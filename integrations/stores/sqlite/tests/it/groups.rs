//! Group commit.

use std::sync::{Arc, Mutex};

use positronic_core::record::{RunId, Seq, Status};
use positronic_core::store::StoreError;
use positronic_core::store::prelude::*;
use positronic_sqlite::SqliteStore;
use positronic_store_suite::Sample;
use proptest::prelude::*;

use super::{beside, lines, quick};

/// A task: appends `n` events to a run, with the right or a wrong expected number.
#[derive(Debug, Clone)]
struct Step {
    run: usize,
    events: usize,
    wrong: bool,
}

fn step() -> impl Strategy<Value = Step> {
    (0..4_usize, 1..4_usize, prop::bool::weighted(0.2)).prop_map(|(run, events, wrong)| Step { run, events, wrong })
}

/// The accepted lines, each list with its run and its first number.
type Accepted = Arc<Mutex<Vec<(usize, Seq, Vec<String>)>>>;

async fn perform(store: &SqliteStore, steps: Vec<Step>, task: usize, accepted: &Accepted) {
    for (number, Step { run, events, wrong }) in steps.into_iter().enumerate() {
        let mut expected = Seq(0);
        if wrong {
            let mut sample = Sample::new(&format!("run-{run}"));
            sample.append.expected = Seq(1 << 20);
            let refused = sample.says("refused").append(store).await;
            assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{refused:?}");
        }
        loop {
            let mut sample = Sample::new(&format!("run-{run}"));
            sample.append.expected = expected;
            for part in 0..events {
                sample = sample.says(&format!("task {task}, step {number}, part {part}"));
            }
            let lines = sample.append.events.iter().map(|event| event.to_json().unwrap()).collect();
            match sample.append(store).await {
                Ok(()) => break accepted.lock().unwrap().push((run, expected, lines)),
                Err(StoreError::Conflict { next }) => expected = next,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn log_contains_exactly_the_accepted_events_in_order(
        tasks in prop::collection::vec(prop::collection::vec(step(), 0..12), 1..24)
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let logs = runtime.block_on(async {
            let stores = [quick(&path), quick(&path)];
            let accepted = Accepted::default();
            let tasks: Vec<_> = tasks
                .into_iter()
                .enumerate()
                .map(|(task, steps)| {
                    let (store, accepted) = (stores[task % 2].clone(), Arc::clone(&accepted));
                    tokio::spawn(async move { perform(&store, steps, task, &accepted).await })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            drop(stores);
            let mut accepted = std::mem::take(&mut *accepted.lock().unwrap());
            accepted.sort();
            let store = quick(&path);
            let mut logs = Vec::new();
            for run in 0..4 {
                let wanted: Vec<_> =
                    accepted.iter().filter(|(of, _, _)| *of == run).flat_map(|(_, _, lines)| lines.clone()).collect();
                let run = positronic_core::record::RunId::from(format!("run-{run}"));
                if !wanted.is_empty() {
                    let row = store.run(&run).await.unwrap();
                    assert_eq!(row.next, Seq(wanted.len() as u64));
                    logs.push((lines(&store, &run).await, wanted));
                }
            }
            logs
        });
        for (log, wanted) in logs {
            prop_assert_eq!(log, wanted);
        }
    }
}

#[tokio::test]
async fn many_runs_are_removed_in_few_commits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    for run in 0..100 {
        let over = Sample::new(&format!("run-{run}")).says("something").row(|row| row.status = Status::Completed);
        _ = over.appended(&store).await;
    }
    let db = rusqlite::Connection::open(&path).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let runs: Vec<_> = (0..100).map(|run| RunId::from(format!("run-{run}"))).collect();

    assert_eq!(store.remove(&runs).await, Ok(100));

    // After a header of 32 bytes, in which bytes 8 to 11 are the page size, come pages, each with a header of 24, in
    // which bytes 4 to 7 are not zero at the end of a commit. Two commits remove, and later ones free the space.
    let log = std::fs::read(beside(&path, "-wal")).unwrap();
    let page = u32::from_be_bytes(log[8..12].try_into().unwrap()) as usize;
    let commits = log[32..].chunks_exact(24 + page).filter(|page| page[4..8] != [0; 4]).count();
    assert!((2..10).contains(&commits), "{commits}");
}
