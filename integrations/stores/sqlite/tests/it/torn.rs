//! Recovery of a store after a power loss: files that end anywhere.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use positronic_core::store::StoreError;
use positronic_core::store::prelude::*;
use positronic_sqlite::SqliteStore;
use positronic_store_suite::Sample;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::{beside, lines, quick};

const APPENDS: usize = 60;
const EVENTS: usize = 3;

/// The open files of a store (database and write-ahead log) with the committed lines.
struct Left {
    file: Vec<u8>,
    commits: Vec<u8>,
    lines: Vec<String>,
}

fn left() -> Left {
    futures::executor::block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let store = quick(&path);
        let mut sample = Sample::new("run-1");
        for append in 0..APPENDS {
            for event in 0..EVENTS {
                sample = sample.says(&format!("event {event} of append {append}: {}", "text ".repeat(append * 7)));
            }
            sample = sample.appended(&store).await;
            if append == APPENDS / 2 {
                let db = rusqlite::Connection::open(&path).unwrap();
                db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            }
        }
        let lines = lines(&store, &sample.run).await;
        let read = |ending| std::fs::read(beside(&path, ending)).unwrap();
        Left { file: read(""), commits: read("-wal"), lines }
    })
}

/// Opens the remaining files and reads them.
fn opened(path: &Path, file: &[u8], commits: &[u8]) -> Result<Vec<String>, StoreError> {
    std::fs::write(path, file).unwrap();
    std::fs::write(beside(path, "-wal"), commits).unwrap();
    futures::executor::block_on(async {
        let store = SqliteStore::open(path)?;
        let run = Sample::new("run-1").run;
        let events = store.read(&run, positronic_core::record::Seq(0), usize::MAX).await?;
        let row = store.run(&run).await?;
        assert_eq!(row.next.index(), events.len(), "the row is as old as the events");
        Ok(events.iter().map(|event| event.to_json().unwrap()).collect())
    })
}

fn is_prefix(read: &[String], whole: &[String]) {
    assert_eq!(read, &whole[..read.len()], "only committed events are read");
    assert_eq!(read.len() % EVENTS, 0, "no append is torn");
}

fn proptest(cases: u32) -> TestRunner {
    TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) })
}

#[test]
fn interrupted_commits_leave_a_prefix() {
    let left = left();
    assert_eq!(left.lines.len(), APPENDS * EVENTS);
    let in_file = (APPENDS / 2 + 1) * EVENTS;
    let lengths = RefCell::new(BTreeSet::new());
    let check = |end: usize, flip: Option<(prop::sample::Index, u8)>| {
        let folder = tempfile::tempdir().unwrap();
        let mut commits = left.commits[..end].to_vec();
        if let (Some((at, bits)), false) = (flip, commits.is_empty()) {
            let at = at.index(commits.len());
            commits[at] ^= bits;
        }
        let read = opened(&folder.path().join("runs.db"), &left.file, &commits).expect("the store opens");
        is_prefix(&read, &left.lines);
        lengths.borrow_mut().insert(read.len());
    };
    check(0, None);
    check(left.commits.len(), None);
    let damage = prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>()));
    proptest(60)
        .run(&(0..=left.commits.len(), damage), |(end, flip)| {
            check(end, flip);
            Ok(())
        })
        .unwrap();
    let lengths = lengths.into_inner();
    assert_eq!((lengths.first(), lengths.last()), (Some(&in_file), Some(&left.lines.len())), "stored events remain");
}

#[test]
fn truncated_file_is_a_prefix_or_an_explained_error() {
    let left = left();
    proptest(40)
        .run(&(1..left.file.len(), any::<bool>()), |(end, commits)| {
            let folder = tempfile::tempdir().unwrap();
            let commits = if commits { &left.commits[..] } else { &[] };
            match opened(&folder.path().join("runs.db"), &left.file[..end], commits) {
                Ok(read) => is_prefix(&read, &left.lines),
                Err(
                    StoreError::Unusable { message }
                    | StoreError::Failed { message }
                    | StoreError::Corrupt { what: message, .. },
                ) => {
                    prop_assert!(message.contains("runs.db"), "{}", message);
                }
                Err(error) => prop_assert!(false, "{}", error),
            }
            Ok(())
        })
        .unwrap();
}
