//! The file format, and files of other releases.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::record::{
    Actor, Gate, Path, Pending, PendingKind, RunId, Seq, SignalId, Status, Timer, Timestamp, Trigger, WaitSpec, sha256,
};
use positronic_core::store::{
    Deferral, DueFilter, Entry, EventStore as _, InboundWebhook, PendingFilter, RunFilter, SqliteStore, TimerChange,
    TimerFilter,
};
use positronic_store_suite::Sample;
use rusqlite::Connection;
use serde_json::json;

use super::{lines, quick};

/// A store written by the release with format 1.
const FORMAT_1: &str = include_str!("format_1.sql");
/// The same with format 2, and a file in it.
const FORMAT_2: &str = include_str!("format_2.sql");
/// The same with format 3, and a timer in it.
const FORMAT_3: &str = include_str!("format_3.sql");
/// The same with format 4, and a signal that the first run has admitted.
const FORMAT_4: &str = include_str!("format_4.sql");
/// The same with format 5.
const FORMAT_5: &str = include_str!("format_5.sql");
/// The same with format 6, and a run that was refused.
const FORMAT_6: &str = include_str!("format_6.sql");
/// The same with format 7, saved prompts and the position of a sink.
const FORMAT_7: &str = include_str!("format_7.sql");
/// The same with format 8, and an entry.
const FORMAT_8: &str = include_str!("format_8.sql");

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
    assert_eq!(pragma(&db, "user_version"), "Integer(8)");
    assert_eq!(pragma(&db, "journal_mode"), "Text(\"wal\")");
    // 2 is incremental.
    assert_eq!(pragma(&db, "auto_vacuum"), "Integer(2)");
}

#[tokio::test]
async fn file_of_format_1_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(FORMAT_1, folder.path()).await;

    // Features that the format lacked work from now on.
    let name = store.put_blob(b"new".to_vec(), Timestamp(1)).await.unwrap();
    assert_eq!(store.blob(&name).await, Ok(Some(b"new".to_vec())));
}

#[tokio::test]
async fn file_of_format_2_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(FORMAT_2, folder.path()).await;

    assert_eq!(store.sweep_blobs(Timestamp(i64::MAX)).await, Ok(0));
    assert_eq!(store.blob(&sha256(b"a file")).await, Ok(Some(b"a file".to_vec())));
}

#[tokio::test]
async fn file_of_format_3_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(FORMAT_3, folder.path()).await;

    assert_eq!(store.timers(&TimerFilter::default()).await.unwrap(), [timer()]);
    assert_eq!(store.accepted(&"run-1".into(), &"s-1".into()).await, Ok(None));
}

#[tokio::test]
async fn file_of_format_4_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(FORMAT_4, folder.path()).await;

    assert_eq!(store.accepted(&"run-1".into(), &"s-1".into()).await, Ok(Some(Seq(0))));
    assert_eq!(store.sweep_blobs(Timestamp(i64::MAX)).await, Ok(0));
    let waits = PendingFilter::builder().run("run-2".into()).build();
    assert_eq!(store.pending(&waits).await.unwrap().len(), 2);
}

#[tokio::test]
async fn abandoned_run_in_an_older_file_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let file = Connection::open(&path).unwrap();
    file.execute_batch(FORMAT_4).unwrap();
    let sql = r#"UPDATE runs SET status = 'running', wake = NULL, summary = replace(summary, '"waiting"', '"running"')
                 WHERE run = 'run-2'"#;
    assert_eq!(file.execute(sql, []), Ok(1));
    drop(file);

    let due = quick(&path).runs(&RunFilter::builder().due(Timestamp(0)).build()).await.unwrap();

    assert_eq!(due.iter().map(|row| row.run.as_str()).collect::<Vec<_>>(), ["run-2"]);
}

#[tokio::test]
async fn file_of_format_5_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(FORMAT_5, folder.path()).await;

    assert_eq!(store.accepted(&"run-1".into(), &"s-1".into()).await, Ok(Some(Seq(0))));
    assert_eq!(store.timers(&TimerFilter::default()).await.unwrap(), [timer()]);
    assert_eq!(store.saved_prompts(&"run-1".into()).await.unwrap(), []);
}

#[tokio::test]
async fn file_of_format_6_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(FORMAT_6, folder.path()).await;

    assert_eq!(due(&store, "old code").await, [""; 0]);
    assert_eq!(due(&store, "new code").await, ["run-2"]);
}

#[tokio::test]
async fn file_of_format_7_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(FORMAT_7, folder.path()).await;

    let [saved] = &*store.saved_prompts(&"run-1".into()).await.unwrap() else { panic!("one part") };
    assert_eq!((saved.from, saved.next, saved.version, &*saved.content), (Seq(0), Seq(2), 1, "saved prompts"));
    assert_eq!(store.sink_position(&"run-1".into(), "audit").await, Ok(Some(Seq(1))));
}

#[tokio::test]
async fn file_of_format_8_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(FORMAT_8, folder.path()).await;

    assert_eq!(store.entry("note", "one").await, Ok(Some(Entry::new("one", 2, json!("text")))));
}

#[tokio::test]
async fn signals_in_the_logs_of_an_older_file_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let file = Connection::open(&path).unwrap();
    file.execute_batch(FORMAT_3).unwrap();
    let key: i64 = file.query_row("SELECT key FROM runs WHERE run = 'run-2'", [], |row| row.get(0)).unwrap();
    let lines = [
        r#"{"seq":1,"at":1,"type":"BRAIN_START","title":"Sample","fingerprint":"f","start":{"id":"started"}}"#,
        r#"{"seq":2,"at":1,"path":"Loop","type":"LOOP_MESSAGE","text":"the \"signal\":\"none\"","signal":"said"}"#,
        r#"{"seq":3,"at":1,"type":"BRAIN_PAUSED","signal":"said"}"#,
        r#"{"seq":4,"at":1,"path":"Loop/0.0","type":"LOOP_TOOL_RESULT","result":{"signal":"of a tool"}}"#,
        r#"a "signal":"that" no json holds"#,
    ];
    for (number, line) in (1..).zip(lines) {
        let sql = "INSERT INTO events (id, line) VALUES (?1 * 4294967296 + ?2, ?3)";
        file.execute(sql, (key, number, line)).unwrap();
    }
    drop(file);

    let store = quick(&path);

    for (id, known) in [("started", Some(1)), ("said", Some(2)), ("none", None), ("of a tool", None), ("that", None)] {
        assert_eq!(store.accepted(&"run-2".into(), &id.into()).await, Ok(known.map(Seq)), "{id}");
    }
}

async fn due(store: &SqliteStore, code: &str) -> Vec<String> {
    let filter = DueFilter::builder().now(Timestamp(i64::MAX)).owner("").code(code).limit(9).reserve(Duration::ZERO);
    store.due(&filter.build()).await.unwrap().iter().map(|due| due.summary.run.to_string()).collect()
}

/// Opens a store of some format and checks its content.
async fn opened(fixture: &str, folder: &std::path::Path) -> SqliteStore {
    let path = folder.join("runs.db");
    Connection::open(&path).unwrap().execute_batch(fixture).unwrap();

    let store = quick(&path);

    let rows = store.runs(&RunFilter::default()).await.unwrap();
    assert_eq!(
        rows.iter().map(|row| (row.run.as_str(), row.status)).collect::<Vec<_>>(),
        [("run-2", Status::Waiting), ("run-1", Status::Completed)]
    );
    assert_eq!(
        lines(&store, &RunId::from("run-1")).await[..2],
        [
            r#"{"seq":0,"at":1000000,"type":"BRAIN_COMPLETE","result":"one"}"#,
            r#"{"seq":1,"at":1000001,"epoch":1,"type":"RUN_CLAIMED","owner":"somebody"}"#,
        ]
    );
    let waits = store.pending(&PendingFilter::builder().person(true).build()).await.unwrap();
    assert!(matches!(&waits[..], [waiter] if matches!(waiter.pending.kind, PendingKind::Approval { .. })));
    let waits =
        store.pending(&PendingFilter::builder().webhook(("slack".into(), "thread".into())).build()).await.unwrap();
    assert_eq!(waits[0].pending.call.as_str(), "Loop/0.1");
    assert_eq!(store.snapshot(&RunId::from("run-1")).await.unwrap().unwrap().content, "a snapshot");
    assert_eq!(store.mail("slack", "another", Timestamp(0)).await.unwrap().unwrap().payload, "a payload");
    store
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
    fixture.execute_batch(FORMAT_8).unwrap();

    assert_eq!(tables(&Connection::open(&path).unwrap()), tables(&fixture));
}

/// Prints a new fixture: `cargo test -p positronic-core --test store -- --ignored --nocapture print_the_fixture`.
/// Only for a format that was never released.
#[tokio::test]
#[ignore = "makes a fixture"]
async fn print_the_fixture() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    fixture(&store).await;
    drop(store);
    let dump = std::process::Command::new("sqlite3").arg(&path).arg(".dump").output().unwrap();
    println!("PRAGMA application_id = {};\nPRAGMA user_version = 7;", i32::from_be_bytes(*b"Posi"));
    println!("{}", String::from_utf8(dump.stdout).unwrap());
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

/// Writes the content of a format's fixture.
async fn fixture(store: &SqliteStore) {
    let pending = |call: &str, kind| Pending {
        call: Path::parse(call).unwrap(),
        tool: "refund".to_owned(),
        arguments: Arc::new(json!({ "amount": 120 })),
        since: Seq(0),
        kind,
    };
    let gate = Gate {
        reason: "more than 100".to_owned(),
        valid_for: Some(std::time::Duration::from_micros(5)),
        editable: true,
    };
    let wait = WaitSpec {
        webhook: "slack".to_owned(),
        identifier: "thread".to_owned(),
        person: false,
        prompt: None,
        schema: Arc::new(json!({ "type": "string" })),
        expires: Some(Timestamp(7)),
        otherwise: Some(json!(null)),
    };
    let mail = |id: &str, identifier: &str| InboundWebhook {
        id: SignalId::from(id),
        webhook: "slack".to_owned(),
        identifier: identifier.to_owned(),
        payload: json!("a payload"),
        actor: Actor::default(),
        at: Timestamp(1),
        expires: Timestamp(1_000_000_000_000),
    };
    for mail in [mail("mail-1", "thread"), mail("mail-2", "another")] {
        store.post(&mail).await.unwrap();
    }
    let run = Sample::new("run-1").says("one").claimed(1).delivers(&SignalId::from("mail-1")).snapshot(2, "a snapshot");
    let mut run = run.prompts(0, 2, "saved prompts");
    run.append.sinks.push("audit".to_owned());
    store.put_blob(b"a file".to_vec(), Timestamp(1)).await.unwrap();
    let run = run.saves("a.txt", b"a file").changes(TimerChange::Set(timer()));
    _ = run.row(|row| row.status = Status::Completed).appended(store).await;
    let run = Sample::new("run-2").says("one").row(|row| {
        row.status = Status::Waiting;
        row.user = Some("ann".to_owned());
        row.wake = Some(Timestamp(7));
    });
    let run = run.waits(vec![
        pending("Loop/0.0", PendingKind::Approval { gate, expires: Some(Timestamp(7)) }),
        pending("Loop/0.1", PendingKind::Answer { waits: vec![wait] }),
    ]);
    let run = run.appended(store).await;
    let refused = Deferral::Refused { code: "old code".to_owned() };
    store.defer(&run.run, run.append.expected, &refused).await.unwrap();
}
