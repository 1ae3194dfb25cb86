//! Facts in an SQLite file, with a full-text index.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use futures::channel::oneshot;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Row, TransactionBehavior, params};

use super::rank::{best, split, words};
use super::{Fact, FactId, FactOwner, FactStore};
use crate::error::{Error, Result};
use crate::record::hash_text;

/// Says in the file's header that it holds facts.
const APPLICATION: i32 = 0x504f_5346;

/// The version of the tables.
const FORMAT: i32 = 1;

/// How long another process may hold the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many facts that have a word of the query are ranked; those that SQLite's own ranking puts first.
const CANDIDATES: usize = 500;

/// Facts in a file, which every process that opens it shares; clones share the connection.
///
/// It is a file of its own, beside the event store's, in SQLite's write-ahead mode. One thread reads and writes it, so that no
/// executor waits for a disk. A fact is found by its words (FTS5), ranked among the facts of its owner: with or without
/// capitals, in singular or plural, in any order. A search for words finds no other words of the same meaning.
///
/// ```no_run
/// use positronic_core::plugins::{Memory, SqliteFacts};
///
/// # fn main() -> positronic_core::Result<()> {
/// let memory = Memory::new(SqliteFacts::open("facts.db")?);
/// # let _ = memory;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SqliteFacts {
    questions: Arc<Sender<Question>>,
    path: Arc<Path>,
}

type Question = Box<dyn FnOnce(&mut Connection) + Send>;

impl SqliteFacts {
    /// Opens a file, or makes it.
    ///
    /// # Errors
    ///
    /// An [`Error`] that names the file when it cannot be opened, or holds something else.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let db = opened(&path).map_err(|error| failed(&path, &error))??;
        let (questions, receiver) = channel();
        let thread = std::thread::Builder::new().name("positronic-facts".to_owned());
        thread.spawn(move || work(db, &receiver))?;
        Ok(Self { questions: Arc::new(questions), path: path.into() })
    }

    /// Has something done by the thread. What is given up meanwhile is done all the same.
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

/// Opens the file and makes its tables; answers with a sentence where it holds something else.
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
        (_, APPLICATION, _) => return other("holds facts in a format that this version does not know"),
        _ => return other("holds something other than facts"),
    }
    state.commit()?;
    write_ahead(&db)?;
    Ok(Ok(db))
}

/// Lets readers and writers not wait for each other. While another process does the same, SQLite refuses at once; it stays
/// so in the file, and whoever cannot set it yet works with what there is.
fn write_ahead(db: &Connection) -> rusqlite::Result<()> {
    let mode = db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
    match mode {
        Err(error) if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) => Err(error),
        _ => db.pragma_update(None, "synchronous", "NORMAL"),
    }
}

/// In the index, the owner is a word of its own, so that a search reads the facts of its owner alone. It keeps the words as
/// [`split`] makes them, and no text.
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
    let message = format!("the facts in `{}` cannot be used: {error}", path.display());
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::transient(message),
        _ => Error::new(message),
    }
}

/// Returns the word that stands for an owner in the index.
fn owner_word(owner: &str) -> String {
    format!("o{}", hash_text(owner))
}

/// Writes a query that finds what has one of these words. They are letters and digits in quotes, so nothing in them is an
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

impl fmt::Debug for SqliteFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteFacts").field("path", &self.path).finish_non_exhaustive()
    }
}
