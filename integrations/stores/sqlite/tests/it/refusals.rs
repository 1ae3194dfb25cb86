//! Unusable files, with their error messages.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use positronic_core::record::{Actor, Path as CallPath, Pending, PendingKind, Seq, Status, WaitSpec};
use positronic_core::runner::{Client, Delivered};
use positronic_core::store::prelude::*;
use positronic_core::store::{PendingFilter, RunFilter, StoreError};
use positronic_sqlite::{SqliteOptions, SqliteStore};
use positronic_store_suite::Sample;
use rusqlite::Connection;
use serde_json::json;

use super::{beside, lines, quick};

/// Opens an unusable file and returns the error, with `DIR` for the folder.
fn refused(path: &Path) -> String {
    let Err(StoreError::Unusable { message }) = SqliteStore::open(path) else { panic!("the store opens") };
    message.replace(&path.parent().unwrap().display().to_string(), "DIR")
}

#[test]
fn missing_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none").join("runs.db");
    assert_eq!(
        refused(&path),
        "cannot create the event store `DIR/runs.db`: the folder `DIR` does not exist. Create the folder first"
    );
    assert!(!path.parent().unwrap().exists());
}

#[test]
fn folder_instead_of_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs");
    std::fs::create_dir(&path).unwrap();
    assert_eq!(refused(&path), "`DIR/runs` is a folder, not an event store. Name a file in it");
}

#[test]
fn missing_file_to_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let Err(StoreError::Unusable { message }) =
        SqliteStore::with(SqliteOptions::builder().path(&path).read_only(true).build())
    else {
        panic!("the store opens")
    };
    assert!(message.starts_with(&format!("cannot open the event store `{}`", path.display())), "{message}");
    assert!(!path.exists());
}

#[test]
fn non_sqlite_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let text = "some notes that somebody has made\n".repeat(100);
    std::fs::write(&path, &text).unwrap();
    assert_eq!(
        refused(&path),
        "`DIR/notes.txt` is not an event store: it is not a SQLite file. Use another path, or move the file away"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn file_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE runs (key INTEGER); INSERT INTO runs VALUES (7)")
        .unwrap();
    let before = std::fs::read(&path).unwrap();
    let sentence =
        "`DIR/other.db` is a SQLite file of another program, not an event store; it was not changed. Name another file";
    assert_eq!(refused(&path), sentence);
    assert_eq!(std::fs::read(&path).unwrap(), before);

    let path = folder.path().join("other.db");
    std::fs::remove_file(&path).unwrap();
    Connection::open(&path).unwrap().execute_batch("PRAGMA application_id = 7").unwrap();
    assert_eq!(refused(&path), sentence);
}

#[test]
fn newer_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    drop(SqliteStore::open(&path).unwrap());
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    assert_eq!(
        refused(&path),
        "the event store `DIR/runs.db` has format 99, but this release reads only up to 3: use the release that wrote it, or a newer one"
    );
}

#[test]
fn file_without_a_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    drop(SqliteStore::open(&path).unwrap());
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 0").unwrap();
    assert_eq!(
        refused(&path),
        "the event store `DIR/runs.db` lacks its format number: it is damaged, or another program has changed it. Restore it from a backup"
    );
}

#[test]
fn unwritable_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    drop(SqliteStore::open(&path).unwrap());
    let mut permissions = std::fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).unwrap();
    if std::fs::OpenOptions::new().write(true).open(&path).is_ok() {
        return; // This user may write everything.
    }
    assert_eq!(
        refused(&path),
        "cannot write the event store `DIR/runs.db`: the file or its folder is read-only for this user. Change their permissions, or open it read-only"
    );
}

/// Path of the file for the process of a user without write permission.
#[cfg(unix)]
const READ_ONLY: &str = "POSITRONIC_TEST_READ_ONLY";

/// SQLite tracks readers in a file next to the store's, which cannot be created here. While a process with write
/// permission has the store open, that file exists.
#[cfg(unix)]
#[tokio::test]
async fn read_only_folder_is_readable_beside_a_writer_and_refused_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    _ = Sample::new("run-1").says("one").appended(&store).await;
    let permit = |mode| std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    // The owner permits others to read the owner-only files.
    for file in
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file())
    {
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644)).unwrap();
    }

    permit(0o555);
    let beside_a_writer = of_another_user(&path);
    permit(0o755);
    drop(store);
    permit(0o555);
    let alone = of_another_user(&path);
    permit(0o755);

    assert_eq!(beside_a_writer, "1 runs");
    let sentence = format!(
        "cannot read the event store `{}`: its folder is read-only for this user, and SQLite must write side files there. \
         Copy it to another folder, or read it while a process with write access has it open",
        path.display()
    );
    assert_eq!(alone, sentence);
}

/// Opens the file to read as an unprivileged user and returns that user's result; tests may run as root, whom
/// permissions do not restrict.
#[cfg(unix)]
fn of_another_user(path: &Path) -> String {
    use std::os::unix::process::CommandExt as _;

    const NOBODY: u32 = 65534;
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "refusals::process_of_another_user", "--ignored", "--nocapture"]);
    if std::fs::File::create(path.with_file_name("probe")).is_ok() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.env(READ_ONLY, path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let answer = text.lines().find_map(|line| line.split_once("answer: ")).map(|(_, answer)| answer.to_owned());
    answer.unwrap_or_else(|| panic!("{text} {}", String::from_utf8_lossy(&output.stderr)))
}

#[cfg(unix)]
#[tokio::test]
#[ignore = "the other process of a test"]
async fn process_of_another_user() {
    let Some(path) = std::env::var_os(READ_ONLY) else { return };
    match SqliteStore::with(SqliteOptions::builder().path(path).read_only(true).build()) {
        Ok(store) => println!("answer: {} runs", store.runs(&RunFilter::default()).await.unwrap().len()),
        Err(error) => println!("answer: {error}"),
    }
}

#[tokio::test]
async fn file_locked_by_another_process_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let options = SqliteOptions::builder().path(&path).busy_timeout(Duration::from_millis(50)).build();
    let store = SqliteStore::with(options.clone()).unwrap();
    let run = Sample::new("run-1").says("one").appended(&store).await;
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    let sentence = format!(
        "another process has locked `{}` for more than 50ms; nothing was written. Try again, or stop that process",
        path.display()
    );
    let failed = Err(StoreError::Failed { message: sentence });
    let mut next = run.clone().says("two");
    assert_eq!(next.append(&store).await, failed);
    assert_eq!(lines(&store, &run.run).await.len(), 1, "readers continue");
    assert_eq!(SqliteStore::with(options).map(|_| ()), failed);

    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(next.append(&store).await, Ok(()));
}

#[tokio::test]
async fn damaged_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    let run = Sample::new("run-1").says(&"a long text ".repeat(10_000)).appended(&store).await;
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    for byte in bytes.iter_mut().skip(4096) {
        *byte = 0xA5;
    }
    std::fs::write(&path, bytes).unwrap();

    let error = match SqliteStore::open(&path) {
        Ok(store) => store.read(&run.run, positronic_core::record::Seq(0), 10).await.unwrap_err(),
        Err(error) => error,
    };

    let StoreError::Unusable { message } = error else { panic!("{error}") };
    let name = path.display();
    assert!(message.starts_with(&format!("the event store `{name}` is damaged (")), "{message}");
    assert!(
        message
            .ends_with(&format!("Restore it from a backup, or save what can be read with `sqlite3 {name} .recover`")),
        "{message}"
    );
}

/// The other runs remain readable.
#[tokio::test]
async fn unreadable_row_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    _ = Sample::new("run-1").says("one").appended(&store).await;
    _ = Sample::new("run-2").says("one").appended(&store).await;
    Connection::open(&path).unwrap().execute("UPDATE runs SET summary = '{' WHERE run = 'run-1'", []).unwrap();

    let filter = positronic_core::store::RunFilter::default();
    let listed: Vec<_> = store.runs(&filter).await.unwrap().into_iter().map(|row| row.run.to_string()).collect();
    let unreadable = store.unreadable(&filter).await.unwrap();

    assert_eq!(listed, ["run-2"]);
    let [(run, StoreError::Corrupt { what, reason })] = unreadable.as_slice() else { panic!("{unreadable:?}") };
    assert_eq!(run.as_str(), "run-1");
    assert!(what.starts_with("the row about the run `run-1` in `"), "{what}");
    assert!(reason.ends_with(". Restore the file from a backup"), "{reason}");
}

/// The other items are listed, and the run that waits for it continues.
#[tokio::test]
async fn unreadable_pending_item_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    let wait = WaitSpec {
        fresh: false,
        webhook: "slack".to_owned(),
        identifier: "thread".to_owned(),
        person: false,
        prompt: None,
        schema: Arc::new(json!({})),
        expires: None,
        otherwise: None,
    };
    let pending = Pending {
        call: CallPath::parse("Loop/0.0").unwrap(),
        tool: "ask".to_owned(),
        arguments: Arc::new(json!({})),
        since: Seq(0),
        kind: PendingKind::Answer { waits: vec![wait] },
    };
    let run = Sample::new("run-1").says("one").waits(vec![pending.clone()]).appended(&store).await;
    _ = Sample::new("run-2").says("one").waits(vec![pending]).appended(&store).await;
    Connection::open(&path).unwrap().execute("UPDATE pending SET kind = '{' WHERE run = 'run-1'", []).unwrap();

    let waiters = store.pending(&PendingFilter::default()).await.unwrap();
    let run = run.says("two").waits(Vec::new()).row(|row| row.status = Status::Completed).appended(&store).await;

    assert_eq!(waiters.iter().map(|waiter| waiter.run.as_str()).collect::<Vec<_>>(), ["run-2"]);
    assert_eq!(store.remove(&[run.run]).await, Ok(1));
    let left = Connection::open(&path).unwrap().query_row("SELECT count(*) FROM waits", [], |row| row.get(0));
    assert_eq!(left, Ok(1));
}

/// A repeated webhook is read on its own, so an unreadable one does not affect the others.
#[tokio::test]
async fn unreadable_mailbox_entry_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    let client = Client::new(store.clone());
    let deliver = |id: &'static str| client.deliver(id.into(), "slack", id, json!("payload"), Actor::default());
    for id in ["mail-1", "mail-2"] {
        assert_eq!(deliver(id).await.unwrap(), Delivered::Kept);
    }
    Connection::open(&path).unwrap().execute("UPDATE mail SET content = '{' WHERE id = 'mail-1'", []).unwrap();

    assert_eq!(deliver("mail-2").await.unwrap(), Delivered::Kept);
    let broken = deliver("mail-1").await.unwrap_err().to_string();
    assert!(broken.contains("cannot read the webhook `mail-1` in `"), "{broken}");
}

/// A writer gets the error at once and does not wait for events that never come.
#[tokio::test]
async fn log_without_its_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    let run = Sample::new("run-1").says("one").says("two").appended(&store).await;
    drop(store);
    let other = Connection::open(&path).unwrap();
    other.execute("DELETE FROM events WHERE id = (SELECT max(id) FROM events)", []).unwrap();
    drop(other);
    let store = quick(&path);

    let damaged = StoreError::Corrupt {
        what: format!("the log of the run `run-1` in `{}`", path.display()),
        reason: "it ends at event 0, but its row says event 1; it is damaged. Restore the file from a backup"
            .to_owned(),
    };
    let client = positronic_core::runner::Client::new(store.clone());
    let sent = client.signal(&run.run, positronic_core::record::SignalKind::Pause, "ann").await;
    assert_eq!(sent, Err(damaged.clone().into()));
    assert_eq!(store.read(&run.run, positronic_core::record::Seq(0), 9).await.map(|_| ()), Err(damaged));
    assert_eq!(
        store.read(&run.run, positronic_core::record::Seq(0), 1).await.map(|log| log.len()),
        Ok(1),
        "the remaining events stay"
    );
}

/// Workers cannot prove that they are alive if their folder cannot be created.
#[tokio::test]
async fn file_in_place_of_the_workers_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    let workers = beside(&path.canonicalize().unwrap(), "-workers");
    std::fs::write(&workers, "").unwrap();

    let Err(StoreError::Failed { message }) = store.acquire_lease().await else { panic!("the lease was acquired") };

    assert!(
        message.starts_with(&format!("cannot use `{}`, which tracks live workers: ", workers.display())),
        "{message}"
    );
}

/// Appends to a run, which must be refused at once, and returns the error.
#[cfg(unix)]
async fn noticed(store: &SqliteStore, run: &Sample) -> String {
    match run.clone().says("more").append(store).await {
        Err(StoreError::Unusable { message }) => message,
        other => panic!("{other:?}"),
    }
}

/// A system that keeps a removed file alive for its open descriptors would accept lost writes.
#[cfg(unix)]
#[tokio::test]
async fn next_append_after_the_file_or_its_log_was_removed_or_replaced_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    let run = Sample::new("run-1").says("one").appended(&store).await;
    let kept = folder.path().join("kept.db");
    for file in [path.clone(), beside(&path, "-wal")] {
        let sentence = |what: &str| {
            format!(
                "cannot write the event store `{}`: its file `{}` was {what} while in use; nothing was written, and what \
                 was written since is lost. Stop the processes that use it, and restore the file from a backup \
                 (`positronic backup`)",
                path.display(),
                file.display()
            )
        };
        std::fs::rename(&file, &kept).unwrap();
        assert_eq!(noticed(&store, &run).await, sentence("removed"));
        std::fs::write(&file, "").unwrap();
        assert_eq!(noticed(&store, &run).await, sentence("replaced by another one"));
        std::fs::rename(&kept, &file).unwrap();
    }

    // It is used again, and the refused appends have left nothing.
    _ = run.says("again").appended(&store).await;
    assert_eq!(lines(&store, &"run-1".into()).await.len(), 2);
}
