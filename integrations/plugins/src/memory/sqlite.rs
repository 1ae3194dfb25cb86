//! Facts in an SQLite file, with a full-text index.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use derive_where::derive_where;
use futures::channel::oneshot;
use positronic_core::record::hash_text;
use positronic_core::{Error, Result};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Row, TransactionBehavior, params};

use super::rank::{best, split, words};
use super::{Fact, FactId, FactOwner, FactStore};

/// Marks the file as a store of facts, in its header.
const APPLICATION: i32 = 0x504f_5346;

/// The version of the tables.
const FORMAT: i32 = 1;

/// The timeout for locks of other processes.
const PATIENCE: Duration = Duration::from_secs(5);

/// The maximum number of matching facts that are ranked, preselected by SQLite's ranking.
const CANDIDATES: usize = 500;

/// Facts in a file, which several processes may share; clones share the connection.
///
/// It is separate from the event store's file, and in SQLite's WAL mode. One thread reads and writes it, so that no
/// executor waits for a disk. The search is a full-text search (FTS5), ranked among the facts of the owner: it ignores
/// case, plurals and word order, but finds no synonyms.
///
/// ```no_run
/// use positronic_plugins::{Memory, SqliteFacts};
///
/// # fn main() -> positronic_core::Result<()> {
/// let memory = Memory::new(SqliteFacts::open("facts.db")?);
/// # let _ = memory;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[derive_where(Debug)]
pub struct SqliteFacts {
    #[derive_where(skip)]
    questions: Arc<Sender<Question>>,
    path: Arc<Path>,
}

type Question = Box<dyn FnOnce(&mut Connection) + Send>;

impl SqliteFacts {
    /// Opens a file, or creates it.
    ///
    /// # Errors
    ///
    /// An [`Error`] that names the file when it cannot be opened, or is another kind of file.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let db = opened(&path).map_err(|error| failed(&path, &error))??;
        let (questions, receiver) = channel();
        let thread = std::thread::Builder::new().name("positronic-facts".to_owned());
        thread.spawn(move || work(db, &receiver))?;
        Ok(Self { questions: Arc::new(questions), path: path.into() })
    }

    /// Runs a query on the thread. A dropped future does not cancel it.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let question: Question = Box::new(move |db| _ = reply.send(question(db)));
        let ended = || Error::new(format!("the facts in `{}` are closed", self.path.display()));
        self.questions.send(question).map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?.map_err(|error| failed(&self.path, &error))
    }
}

fn work(mut db: Connection, questions: &Receiver<Question>) {
    while let Ok(question) = questions.recv() {
        question(&mut db);
    }
}

/// Opens the file and creates its tables; returns a message if it is another kind of file.
fn opened(path: &Path) -> rusqlite::Result<Result<Connection>> {
    let mut db = Connection::open(path)?;
    db.busy_timeout(PATIENCE)?;
    let of_file = |db: &Connection, name: &str| db.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let state = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let tables: i64 = state.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let (application, format) = (of_file(&state, "application_id")?, of_file(&state, "user_version")?);
    let other = |what: &str| Ok(Err(Error::new(format!("`{}` {what}: name another file", path.display()))));
    match (tables, application, format) {
        (0, 0, 0) => {
            state.execute_batch(TABLES)?;
            state.pragma_update(None, "application_id", APPLICATION)?;
            state.pragma_update(None, "user_version", FORMAT)?;
        }
        (_, APPLICATION, FORMAT) => {}
        (_, APPLICATION, _) => return other("contains facts in an unknown, newer format"),
        _ => return other("is not a store of facts"),
    }
    state.commit()?;
    write_ahead(&db)?;
    Ok(Ok(db))
}

/// Switches to WAL mode, in which readers and writers do not block each other. While another process does the same, SQLite
/// fails at once; the mode is persistent, so this process can continue without it.
fn write_ahead(db: &Connection) -> rusqlite::Result<()> {
    let mode = db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
    match mode {
        Err(error) if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) => Err(error),
        _ => db.pragma_update(None, "synchronous", "NORMAL"),
    }
}

/// The owner is a separate word in the index, so that a search only reads the facts of its owner. The index contains the words
/// of [`split`], and no text.
const TABLES: &str = "
    CREATE TABLE facts (
        number INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        id TEXT NOT NULL,
        text TEXT NOT NULL,
        UNIQUE (owner, id)
    );
    CREATE VIRTUAL TABLE words USING fts5 (
        owner, fact, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 0'
    );
";

fn failed(path: &Path, error: &rusqlite::Error) -> Error {
    let message = format!("cannot use the facts in `{}`: {error}", path.display());
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::transient(message),
        _ => Error::new(message),
    }
}

/// Returns the index word of an owner.
fn owner_word(owner: &str) -> String {
    format!("o{}", hash_text(owner))
}

/// Builds a query for facts with any of these words. They are quoted letters and digits, so none is an
/// operator.
fn matching(owner: &str, words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    format!("owner : \"{}\" AND fact : ({})", owner_word(owner), words.join(" OR "))
}

fn fact(row: &Row<'_>) -> rusqlite::Result<Fact> {
    Ok(Fact { id: FactId::from(row.get::<_, String>("id")?), text: row.get("text")? })
}

impl FactStore for SqliteFacts {
    async fn remember(&self, owner: &FactOwner, text: &str) -> Result<Fact> {
        let (owner, fact) = (owner.to_string(), Fact::new(text));
        self.ask(move |db| {
            let state = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let new = state
                .prepare_cached("INSERT INTO facts (owner, id, text) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
                .execute(params![owner, fact.id.as_str(), fact.text])?;
            if new > 0 {
                let words = split(&fact.text).collect::<Vec<_>>().join(" ");
                state
                    .prepare_cached("INSERT INTO words (rowid, owner, fact) VALUES (?1, ?2, ?3)")?
                    .execute(params![state.last_insert_rowid(), owner_word(&owner), words])?;
            }
            state.commit()?;
            Ok(fact)
        })
        .await
    }

    async fn search(&self, owner: &FactOwner, query: &str, limit: usize) -> Result<Vec<Fact>> {
        let (owner, asked) = (owner.to_string(), words(query));
        if asked.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        self.ask(move |db| {
            let state = db.transaction()?;
            let total = state
                .prepare_cached("SELECT count(*) FROM facts WHERE owner = ?1")?
                .query_row([&owner], |row| row.get::<_, i64>(0))?;
            let found: Vec<Fact> = state
                .prepare_cached(
                    "SELECT id, text FROM facts WHERE owner = ?1 AND number IN (
                         SELECT rowid FROM words WHERE words MATCH ?2 ORDER BY rank LIMIT ?3
                     ) ORDER BY number",
                )?
                .query_map(
                    params![owner, matching(&owner, &asked), i64::try_from(CANDIDATES).unwrap_or(i64::MAX)],
                    fact,
                )?
                .collect::<rusqlite::Result<_>>()?;
            Ok(best(found, usize::try_from(total).unwrap_or(usize::MAX), &asked, limit))
        })
        .await
    }

    async fn forget(&self, owner: &FactOwner, id: &FactId) -> Result<bool> {
        let (owner, id) = (owner.to_string(), id.clone());
        self.ask(move |db| {
            let state = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let number: Option<i64> = state
                .prepare_cached("DELETE FROM facts WHERE owner = ?1 AND id = ?2 RETURNING number")?
                .query_row(params![owner, id.as_str()], |row| row.get(0))
                .optional()?;
            if let Some(number) = number {
                state.prepare_cached("DELETE FROM words WHERE rowid = ?1")?.execute([number])?;
            }
            state.commit()?;
            Ok(number.is_some())
        })
        .await
    }

    async fn list(&self, owner: &FactOwner) -> Result<Vec<Fact>> {
        let owner = owner.to_string();
        self.ask(move |db| {
            let mut all = db.prepare_cached("SELECT id, text FROM facts WHERE owner = ?1 ORDER BY number")?;
            all.query_map([&owner], fact)?.collect()
        })
        .await
    }
}
