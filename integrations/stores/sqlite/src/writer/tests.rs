//! Group commits: how jobs affect each other.

use positronic_core::record::Seq;

use super::super::options::{Durability, SqliteOptions};
use super::super::{connection, remove};
use super::*;

fn writer(path: &std::path::Path) -> (Writer, JoinHandle<()>, Connection) {
    let options = SqliteOptions::builder().path(path).durability(Durability::ProcessCrash).build();
    let store_file = StoreFile { path: path.to_owned(), busy_timeout: options.busy_timeout };
    let db = connection::to_write(&options, &store_file).unwrap();
    db.execute_batch("CREATE TABLE things (thing TEXT NOT NULL UNIQUE)").unwrap();
    db.pragma_update_and_check(None, "max_page_count", 40, |_| Ok(())).unwrap();
    let checkpoints = connection::to_checkpoint(&options, &store_file).unwrap();
    let (writer, thread) = Writer::start(db, checkpoints, store_file).unwrap();
    (writer, thread, Connection::open(path).unwrap())
}

async fn put(writer: &Writer, thing: String) -> Result<(), StoreError> {
    let insert = "INSERT INTO things VALUES (?1)";
    let work = move |tx: &mut Tx<'_>| {
        tx.changes(&RunId::from("things"), Seq(1));
        Ok(tx.db().execute(insert, [&thing]).map(drop)?)
    };
    writer.write(work).await
}

/// Writes a group: jobs that are queued while the thread is busy.
fn group(writer: &Writer, things: &[String]) -> Vec<Result<(), StoreError>> {
    let ((begun, begins), (free, ends)) = (channel(), channel::<()>());
    let mut ends = Some(ends);
    futures::executor::block_on(async {
        let first = writer.write(move |_| {
            begun.send(()).unwrap();
            Ok(ends.take().map(|ends| ends.recv()))
        });
        let rest = async {
            begins.recv().unwrap();
            let mut all = Box::pin(futures::future::join_all(things.iter().map(|thing| put(writer, thing.clone()))));
            assert!(futures::poll!(all.as_mut()).is_pending());
            free.send(()).unwrap();
            all.await
        };
        futures::join!(first, rest).1
    })
}

fn things(db: &Connection) -> Vec<i64> {
    let mut statement = db.prepare("SELECT length(thing) FROM things ORDER BY rowid").unwrap();
    let lengths = statement.query_map([], |row| row.get(0)).unwrap();
    lengths.map(Result::unwrap).collect()
}

#[test]
fn failed_job_of_a_group_is_rolled_back_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, thread, db) = writer(&folder.path().join("runs.db"));

    let outcomes = group(&writer, &["a", "bb", "cccc", "a"].map(str::to_owned));

    assert!(matches!(&outcomes[..], [Ok(()), Ok(()), Ok(()), Err(StoreError::Failed { .. })]), "{outcomes:?}");
    assert_eq!(things(&db), [1, 2, 4]);
    // Another process continues the numbers in the file.
    let changes = futures::executor::block_on(writer.write(|tx| Ok(tx.change())));
    assert_eq!(changes, Ok(3));
    drop(writer);
    thread.join().unwrap();
}

#[test]
fn job_that_does_not_fit_on_the_disk_leaves_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let (writer, thread, db) = writer(&path);

    let outcomes = group(&writer, &["a".to_owned(), "b".repeat(1 << 20), "c".to_owned()]);

    let message = format!(
        "no space left on the device for `{}`; nothing was written. Free some space and try again",
        path.display()
    );
    assert_eq!(outcomes, [Ok(()), Err(StoreError::Failed { message }), Ok(())]);
    assert_eq!(things(&db), [1, 1]);
    futures::executor::block_on(async {
        assert_eq!(put(&writer, "dd".to_owned()).await, Ok(()));
        while writer.write(remove::free).await.unwrap() {}
    });
    assert_eq!(things(&db), [1, 1, 2]);
    drop(writer);
    thread.join().unwrap();
}

#[test]
fn jobs_queued_while_the_writer_is_busy_share_a_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let (writer, thread, db) = writer(&path);
    let before = commits(&path);

    group(&writer, &(0..100).map(|thing| thing.to_string()).collect::<Vec<_>>());

    // The job that kept the thread busy wrote nothing.
    assert_eq!(commits(&path), before + 1);
    assert_eq!(things(&db).len(), 100);
    drop(writer);
    thread.join().unwrap();
}

/// Counts the commits in the WAL: after a header of 32 bytes, whose bytes 8 to 11 are the page size, follow pages, each
/// with a header of 24 bytes, whose bytes 4 to 7 are not zero where a commit ends.
fn commits(path: &std::path::Path) -> usize {
    let log = std::fs::read(path.with_extension("db-wal")).unwrap();
    let page = u32::from_be_bytes(log[8..12].try_into().unwrap()) as usize;
    log[32..].chunks_exact(24 + page).filter(|page| page[4..8] != [0; 4]).count()
}

/// Appends to a run, and returns whether that happened on this thread.
async fn is_here(writer: &Writer, run: &str) -> bool {
    let (run, own) = (RunId::from(run), std::thread::current().id());
    let name = run.clone();
    let work = move |tx: &mut Tx<'_>| {
        tx.changes(&name, Seq(1));
        Ok(std::thread::current().id() == own)
    };
    writer.write_here(&run, work).await.unwrap()
}

#[test]
fn single_run_is_written_on_its_thread_and_several_in_groups() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, thread, _db) = writer(&folder.path().join("runs.db"));

    let mut here = Vec::new();
    futures::executor::block_on(async {
        for run in ["one", "one", "one", "other", "one", "other", "other"] {
            here.push(is_here(&writer, run).await);
        }
    });

    assert_eq!(here, [false, true, true, false, false, false, true]);
    drop(writer);
    thread.join().unwrap();
}

#[test]
fn job_that_would_block_is_written_by_the_thread() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, thread, db) = writer(&folder.path().join("runs.db"));
    let here = |run| futures::executor::block_on(is_here(&writer, run));
    assert_eq!([here("one"), here("one")], [false, true]);

    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    let behind_another_process = std::thread::scope(|scope| {
        let waits = scope.spawn(|| here("one"));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waits.is_finished());
        db.execute_batch("ROLLBACK").unwrap();
        waits.join().unwrap()
    });

    assert!(!behind_another_process);
    drop(writer);
    thread.join().unwrap();
}

/// Enough writes for four requested checkpoints.
const MANY: usize = 4 * 1024 + 10;

#[test]
fn writers_do_not_wait_for_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, thread, _db) = writer(&folder.path().join("runs.db"));

    let on_the_thread = (0..MANY).filter(|_| !futures::executor::block_on(is_here(&writer, "one"))).count();

    // The first one made the run the last that was written to.
    assert_eq!(on_the_thread, 1);
    drop(writer);
    thread.join().unwrap();
}

#[test]
fn wal_is_checkpointed_and_restarts_under_constant_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let (writer, thread, db) = writer(&path);
    db.execute_batch("CREATE TABLE busy (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO busy VALUES (1, '')").unwrap();
    let (run, text) = (RunId::from("one"), "x".repeat(20_000));
    let write = |n: usize| {
        let (run, text) = (run.clone(), format!("{n}{text}"));
        let work = move |tx: &mut Tx<'_>| {
            tx.changes(&run, Seq(1));
            tx.db().pragma_update_and_check(None, "max_page_count", 1000, |_| Ok(()))?;
            // SQLite's own checkpoints would hide missing ones.
            tx.db().pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
            Ok(tx.db().prepare_cached("UPDATE busy SET text = ?1")?.execute([&text])?)
        };
        futures::executor::block_on(writer.write_here(&RunId::from("one"), work)).unwrap();
    };

    let mut longest = 0;
    for n in 0..2 * MANY {
        write(n);
        longest = longest.max(std::fs::metadata(path.with_extension("db-wal")).unwrap().len());
    }

    // About eleven pages each: 185 MB without checkpoints.
    assert!(longest < 100_000_000, "{longest}");
    drop((writer, db));
    thread.join().unwrap();
    assert!(!path.with_extension("db-wal").exists());
}

#[test]
fn wal_restarts_although_another_connection_commits_during_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let (writer, thread, db) = writer(&path);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE busy (text TEXT); INSERT INTO busy VALUES ('')").unwrap();
    other.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(())).unwrap();
    let begin = || {
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        other.execute("UPDATE busy SET text = randomblob(1 << 20)", []).unwrap();
    };
    let log = path.with_extension("db-wal");
    let checkpoint_meanwhile = || {
        begin();
        let pages = checkpointer::passive_checkpoint(&db);
        other.execute_batch("COMMIT").unwrap();
        pages
    };

    let mut lengths = Vec::new();
    for _ in 0..30 {
        checkpointer::checkpoint(checkpoint_meanwhile, &|| writer.shared.committer.lock().checkpoint());
        lengths.push(std::fs::metadata(&log).unwrap().len());
    }

    // A commit has about 512 pages; 93 MB if the WAL never restarts.
    let most = 2072 * (u64::try_from(checkpointer::LONG).unwrap() + 3 * 600);
    assert!(lengths.iter().all(|length| *length < most), "{lengths:?}");
    drop((writer, db, other));
    thread.join().unwrap();
}

/// Writes a panicking job, alone or in a group, and returns the outcomes.
fn panics(writer: &Writer, others: &[String]) -> (Result<(), StoreError>, Vec<Result<(), StoreError>>) {
    let ((begun, begins), (free, ends)) = (channel(), channel::<()>());
    let mut ends = Some(ends);
    futures::executor::block_on(async {
        let first = writer.write(move |_| {
            begun.send(()).unwrap();
            Ok(ends.take().map(|ends| ends.recv()))
        });
        let rest = async {
            begins.recv().unwrap();
            let broken = writer.write(|tx| -> Result<(), DbError> {
                tx.db().execute("INSERT INTO things VALUES ('half')", [])?;
                panic!("on purpose")
            });
            let others = futures::future::join_all(others.iter().map(|thing| put(writer, thing.clone())));
            let mut all = Box::pin(futures::future::join(broken, others));
            assert!(futures::poll!(all.as_mut()).is_pending());
            free.send(()).unwrap();
            all.await
        };
        futures::join!(first, rest).1
    })
}

#[test]
fn panicking_job_is_rolled_back_and_reported_and_the_others_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, thread, db) = writer(&folder.path().join("runs.db"));

    let (broken, others) = panics(&writer, &["a".to_owned(), "bb".to_owned()]);
    let (alone, _) = panics(&writer, &[]);

    for broken in [broken, alone] {
        let message = broken.unwrap_err().to_string();
        assert!(message.contains("the store panicked: on purpose; nothing was written"), "{message}");
    }
    assert_eq!(others, [Ok(()), Ok(())]);
    assert_eq!(things(&db), [1, 2]);
    drop(writer);
    thread.join().unwrap();
}

#[test]
fn panic_on_the_callers_thread_is_rolled_back_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, thread, db) = writer(&folder.path().join("runs.db"));
    let here = || futures::executor::block_on(is_here(&writer, "one"));
    assert_eq!([here(), here()], [false, true]);

    let run = RunId::from("one");
    let broken = writer.write_here(&run, |tx| -> Result<(), DbError> {
        tx.db().execute("INSERT INTO things VALUES ('half')", [])?;
        panic!("on purpose")
    });
    let broken = futures::executor::block_on(broken).unwrap_err().to_string();

    assert!(broken.contains("the store panicked: on purpose"), "{broken}");
    assert!(here());
    assert_eq!(futures::executor::block_on(put(&writer, "a".to_owned())), Ok(()));
    assert_eq!(things(&db), [1]);
    drop(writer);
    thread.join().unwrap();
}
