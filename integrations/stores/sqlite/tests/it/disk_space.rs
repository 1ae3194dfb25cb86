//! Disk space.

use std::path::Path;
use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::timeline::Timeline;
use positronic_core::projection::transcript;
use positronic_core::record::{ModelRequest, RunId, Seq, Status};
use positronic_core::store::prelude::*;
use positronic_sqlite::SqliteStore;
use positronic_store_suite::Sample;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::quick;

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// The text of the note.
    text: String,
}

/// Runs a brain with 1 KB of text per iteration, half from the model and half from a tool.
async fn run_of(iterations: u32, store: &SqliteStore) -> RunId {
    let brain = brain("Worker").r#loop("Work", move |cx| {
        cx.system("You take notes.").input("Begin.").max_iterations(u64::from(iterations) + 1).tool("note", |t| {
            t.description("Notes a line").idempotent().execute(async |Note { text }, _| Ok(text.repeat(32)))
        })
    });
    let model = ScriptedModel::from_fn(move |request: &ModelRequest| match request.messages.len() / 2 {
        iteration if iteration < iterations as usize => {
            Reply::call("note", json!({ "text": "0123456789abcdef" })).and_text("0123456789abcdef".repeat(32))
        }
        _ => Reply::text("Done."),
    });
    let runner = Runner::new(model).store(store.clone());
    let run = runner.start(&brain, ()).await.unwrap();
    run.result().await.unwrap();
    let id = run.id().clone();
    drop((run, runner));
    id
}

/// Returns the size of a file after a checkpoint of all commits.
fn size(path: &Path) -> u64 {
    let db = rusqlite::Connection::open(path).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    std::fs::metadata(path).unwrap().len()
}

/// Beyond the 78 KiB of the empty tables a file has at most 2.2 bytes for each byte of the transcript, however long the
/// run.
#[tokio::test]
async fn log_takes_little_more_than_two_bytes_for_one() {
    let mut ratios = Vec::new();
    for iterations in [50, 300, 3000] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let store = quick(&path);
        let empty = size(&path);
        assert_eq!(empty, 78 << 10);
        let run = run_of(iterations, &store).await;
        let events = store.read(&run, Seq(0), usize::MAX).await.unwrap();
        let said = transcript(&Timeline::of(events.iter().map(|event| &**event))).len() as f64;
        let file = size(&path);
        assert!((file - empty) as f64 / said <= 2.2, "{file} bytes for {said} at {iterations} iterations");
        ratios.push((file - empty) as f64 / said);
    }
    let [least, most] = [f64::min, f64::max].map(|of| ratios.iter().copied().reduce(of).unwrap());
    assert!(most / least < 1.2, "{ratios:?}");
}

#[tokio::test]
async fn removing_runs_frees_their_space() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    let empty = size(&path);
    let mut runs = Vec::new();
    for run in 0..20 {
        let mut sample = Sample::new(&format!("run-{run}")).row(|row| row.status = Status::Completed);
        for _ in 0..100 {
            sample = sample.says(&"a text that takes room ".repeat(40));
        }
        runs.push(sample.appended(&store).await.run);
    }
    let full = size(&path);

    assert_eq!(store.remove(&runs[..10]).await, Ok(10));
    let half = size(&path);
    assert_eq!(store.remove(&runs[10..]).await, Ok(10));
    let none = size(&path);

    assert!(half < full * 6 / 10, "{half} of {full}");
    assert!(none <= empty, "{none} of {empty}");
}

/// Like a file that `sqlite3` restored from a dump.
#[tokio::test]
async fn removing_runs_ends_even_if_no_space_can_be_freed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    let sample =
        Sample::new("run").says(&"a text that takes room ".repeat(400)).row(|row| row.status = Status::Completed);
    let run = sample.appended(&store).await.run;
    drop(store);
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM").unwrap();
    drop(db);

    let removed = tokio::time::timeout(Duration::from_secs(30), quick(&path).remove(&[run])).await;

    assert_eq!(removed, Ok(Ok(1)));
}
