//! Groups: what one job does to the others.

use super::super::options::SqliteOptions;
use super::super::{connection, remove};
use super::*;
use crate::record::Seq;

fn writer(path: &std::path::Path) -> (Writer, JoinHandle<()>, Connection) {
    let options = SqliteOptions::builder().path(path).build();
    let place = Place { path: path.to_owned(), patience: options.patience };
    let db = connection::to_write(&options, &place).unwrap();
    db.execute_batch("CREATE TABLE things (thing TEXT NOT NULL UNIQUE)").unwrap();
    db.pragma_update_and_check(None, "max_page_count", 40, |_| Ok(())).unwrap();
    let (writer, thread) = Writer::start(db, place).unwrap();
    (writer, thread, Connection::open(path).unwrap())
}

async fn put(writer: &Writer, thing: String) -> Result<(), StoreError> {
    let insert = "INSERT INTO things VALUES (?1)";
    writer.write(move |unit| Ok(unit.db().execute(insert, [&thing]).map(drop)?)).await
}

/// Has a group written: what is asked for while the thread is busy with something else.
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
fn one_of_a_group_that_fails_leaves_no_trace_of_itself_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, thread, db) = writer(&folder.path().join("runs.db"));

    let outcomes = group(&writer, &["a", "bb", "a", "cccc"].map(str::to_owned));

    assert!(matches!(&outcomes[..], [Ok(()), Ok(()), Err(StoreError::Failed { .. }), Ok(())]), "{outcomes:?}");
    assert_eq!(things(&db), [1, 2, 4]);
    drop(writer);
    thread.join().unwrap();
}

#[test]
fn one_of_a_group_that_does_not_fit_on_the_disk_leaves_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let (writer, thread, db) = writer(&path);

    let outcomes = group(&writer, &["a".to_owned(), "b".repeat(1 << 20), "c".to_owned()]);

    let message =
        format!("there is no space left for `{}`; nothing was written. Free some space and try again", path.display());
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
fn what_waits_while_the_writer_is_busy_is_one_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let (writer, thread, db) = writer(&path);
    let before = commits(&path);

    group(&writer, &(0..100).map(|thing| thing.to_string()).collect::<Vec<_>>());

    // The one that kept the thread busy wrote nothing.
    assert_eq!(commits(&path), before + 1);
    assert_eq!(things(&db).len(), 100);
    drop(writer);
    thread.join().unwrap();
}

/// Counts the commits in the log of commits: after a header of 32 bytes, in which bytes 8 to 11 are the size of a page,
/// come pages, each with a header of 24, in which bytes 4 to 7 are not zero where a commit ends.
fn commits(path: &std::path::Path) -> usize {
    let log = std::fs::read(path.with_extension("db-wal")).unwrap();
    let page = u32::from_be_bytes(log[8..12].try_into().unwrap()) as usize;
    log[32..].chunks_exact(24 + page).filter(|page| page[4..8] != [0; 4]).count()
}

/// Appends to a run, and says whether it was on this thread.
async fn is_here(writer: &Writer, run: &str) -> bool {
    let (run, own) = (RunId::from(run), std::thread::current().id());
    let name = run.clone();
    let work = move |unit: &mut Unit<'_>| {
        unit.changes(&name, Seq(1));
        Ok(std::thread::current().id() == own)
    };
    writer.write_here(&run, work).await.unwrap()
}

#[test]
fn a_run_that_is_alone_is_written_to_on_its_own_thread_and_others_in_company() {
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
fn what_would_have_to_wait_is_written_by_the_thread() {
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
    let on_the_thread = (0..3000).filter(|_| !here("one")).count();

    assert!(!behind_another_process);
    // The log of commits was copied twice, and what came meanwhile was written by the thread, too.
    assert!((2..10).contains(&on_the_thread), "{on_the_thread}");
    drop(writer);
    thread.join().unwrap();
}
