//! The file format.

use std::time::Duration;

use positronic_core::record::{PendingKind, RunId, Seq, Status, Timer, Timestamp, Trigger, sha256};
use positronic_core::store::prelude::*;
use positronic_core::store::{DueFilter, Entry, FigureFilter, Figures, PendingFilter, RunFilter, TimerFilter};
use positronic_sqlite::SqliteStore;
use rusqlite::Connection;
use serde_json::json;

use super::{lines, quick};

/// A store of each format, with content of each kind. They stay as they are, so that later releases read the files of this one.
const FORMATS: [&str; 3] = [include_str!("format_1.sql"), include_str!("format_2.sql"), include_str!("format_3.sql")];

fn pragma(db: &Connection, name: &str) -> String {
    db.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
        .map(|value| format!("{value:?}"))
        .unwrap()
}

#[test]
fn new_file_records_its_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    drop(SqliteStore::open(&path).unwrap());

    let db = Connection::open(&path).unwrap();

    assert_eq!(pragma(&db, "application_id"), format!("Integer({})", i32::from_be_bytes(*b"Posi")));
    assert_eq!(pragma(&db, "user_version"), "Integer(3)");
    assert_eq!(pragma(&db, "journal_mode"), "Text(\"wal\")");
    // 2 is incremental.
    assert_eq!(pragma(&db, "auto_vacuum"), "Integer(2)");
}

#[tokio::test]
async fn file_of_each_format_is_read() {
    for (format, models) in FORMATS.into_iter().zip([0, 0, 2]) {
        assert_eq!(is_read(format).await.models.len(), models);
    }
}

async fn is_read(format: &str) -> Figures {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    Connection::open(&path).unwrap().execute_batch(format).unwrap();

    let store = quick(&path);

    let rows = store.runs(&RunFilter::default()).await.unwrap();
    assert_eq!(
        rows.iter().map(|row| (row.run.as_str(), row.status)).collect::<Vec<_>>(),
        [("run-2", Status::Waiting), ("run-1", Status::Completed)]
    );
    let run_1 = RunId::from("run-1");
    assert_eq!(
        lines(&store, &run_1).await[..2],
        [
            r#"{"seq":0,"at":1000000,"type":"BRAIN_COMPLETE","result":"one"}"#,
            r#"{"seq":1,"at":1000001,"epoch":1,"type":"RUN_CLAIMED","owner":"somebody"}"#,
        ]
    );
    assert_eq!(store.accepted(&run_1, &"s-1".into()).await, Ok(Some(Seq(0))));
    assert_eq!(store.snapshot(&run_1).await.unwrap().unwrap().content, "a snapshot");
    let [saved] = &*store.saved_prompts(&run_1).await.unwrap() else { panic!("one part") };
    assert_eq!((saved.from, saved.next, saved.version, &*saved.content), (Seq(0), Seq(2), 1, "saved prompts"));
    assert_eq!(store.sink_position(&run_1, "audit").await, Ok(Some(Seq(1))));
    let waits = store.pending(&PendingFilter::builder().person(true).build()).await.unwrap();
    assert!(matches!(&waits[..], [waiter] if matches!(waiter.pending.kind, PendingKind::Approval { .. })));
    let waits =
        store.pending(&PendingFilter::builder().webhook(("slack".into(), "thread".into())).build()).await.unwrap();
    assert_eq!(waits[0].pending.call.as_str(), "Loop/0.1");
    assert_eq!(due(&store, "old code").await, [""; 0]);
    assert_eq!(due(&store, "new code").await, ["run-2"]);
    assert_eq!(store.mail("slack", "another", Timestamp(0), Timestamp(0)).await.unwrap().unwrap().payload, "a payload");
    assert_eq!(store.timers(&TimerFilter::default()).await.unwrap(), [timer()]);
    assert_eq!(store.sweep_blobs(Timestamp(i64::MAX)).await, Ok(0));
    assert_eq!(store.blob(&sha256(b"a file")).await, Ok(Some(b"a file".to_vec())));
    assert_eq!(store.entry("note", "one").await, Ok(Some(Entry::new("one", 2, json!("text")))));
    let day = FigureFilter::builder().from(Timestamp(0)).bucket(Duration::from_hours(1)).buckets(24).now(Timestamp(0));
    let figures = store.figures(&day.build()).await.unwrap();
    assert!(matches!(&figures.ended[..], [group] if (group.status, group.runs) == (Status::Completed, 1)));
    assert!(matches!(&figures.open[..], [group] if (group.status, group.person) == (Status::Waiting, true)));
    figures
}

async fn due(store: &SqliteStore, code: &str) -> Vec<String> {
    let filter = DueFilter::builder().now(Timestamp(i64::MAX)).owner("").code(code).limit(9).reserve(Duration::ZERO);
    store.due(&filter.build()).await.unwrap().iter().map(|due| due.summary.run.to_string()).collect()
}

/// The fixture is the schema of this release, until the format changes.
#[test]
fn new_file_has_the_tables_of_the_fixture() {
    let tables = |db: &Connection| {
        let mut statement = db.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").unwrap();
        let tables = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        tables.map(|sql| sql.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    drop(SqliteStore::open(&path).unwrap());
    let fixture = Connection::open_in_memory().unwrap();
    fixture.execute_batch(FORMATS[2]).unwrap();

    assert_eq!(tables(&Connection::open(&path).unwrap()), tables(&fixture));
}

fn timer() -> Timer {
    Timer {
        trigger: Trigger::once("t-1".into(), "water", Timestamp(5)).every(std::time::Duration::from_secs(60)),
        brain: "Sample".into(),
        options: json!({"garden": "front"}),
        user: Some("ann".to_owned()),
        conversation: Some("c".to_owned()),
        budget: None,
        origin: RunId::from("run-1"),
        fired: 2,
        starter: None,
        scheduled: None,
    }
}
