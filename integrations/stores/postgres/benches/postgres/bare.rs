//! The rows of a run's appends, written by hand.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use positronic_core::record::Event;
use sqlx_core::connection::{ConnectOptions as _, Connection as _};
use sqlx_core::executor::Executor as _;
use sqlx_core::query::query;
use sqlx_core::row::Row as _;
use sqlx_postgres::{PgConnectOptions, PgConnection};

/// How the rows of an append are written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// In a transaction of prepared statements: one for the row of the run, and one for the events.
    Transaction,
    /// In one prepared statement, so in one round trip: nothing can do with less.
    Statement,
}

const ROW: &str =
    "UPDATE runs SET next = $2 + $4, epoch = 1, changed = change_time(), status = 'running', at = $2, wake = $5,
    summary = $3 WHERE run = $1 AND next = $2 AND epoch <= 1 RETURNING key";
const EVENTS: &str = "INSERT INTO events (key, seq, line)
    SELECT $1, $2 + l.place - 1, l.line FROM unnest($3::text[]) WITH ORDINALITY l (line, place)";

/// The data of one run: the lines of each of its appends, and its row.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    pub(crate) appends: Vec<Vec<String>>,
    pub(crate) summary: String,
}

impl Rows {
    /// Returns the data of a log: the events of one append have the same time.
    pub(crate) fn new(events: &[Arc<Event>], summary: String) -> Self {
        let lines = |events: &[Arc<Event>]| events.iter().map(|event| event.to_json().unwrap()).collect();
        Self { appends: events.chunk_by(|one, next| one.at == next.at).map(lines).collect(), summary }
    }
}

/// Opens connections, with the statements prepared.
pub(crate) async fn connect(url: &str, schema: &str, count: usize) -> Vec<PgConnection> {
    let options: PgConnectOptions = url.parse().unwrap();
    let options = options.options([("search_path", format!("\"{schema}\""))]);
    let mut all = Vec::new();
    for place in 0..count {
        let mut db = options.connect().await.unwrap();
        let rows = Rows { appends: vec![vec!["{}".to_owned()]; 8], summary: "{}".to_owned() };
        for way in [Way::Transaction, Way::Statement] {
            write(&mut db, &format!("warm-up {place} {way:?}"), &rows, way).await;
        }
        all.push(db);
    }
    all
}

/// Writes the rows of runs, each on one of the connections, and returns the time.
pub(crate) async fn written(all: &mut [PgConnection], name: &str, runs: &[Rows], way: Way) -> Duration {
    let count = all.len();
    let begun = Instant::now();
    let works = all.iter_mut().enumerate().map(|(place, db)| async move {
        for (number, rows) in runs.iter().enumerate().skip(place).step_by(count) {
            write(db, &format!("{name} {way:?} {number}"), rows, way).await;
        }
    });
    join_all(works).await;
    begun.elapsed()
}

async fn write(db: &mut PgConnection, run: &str, rows: &Rows, way: Way) {
    let sql = "INSERT INTO runs (run, next, epoch, changed, status, brain, started, at, wake, summary)
               VALUES ($1, 0, 1, 0, 'running', 'Worker', 0, 0, NULL, '{}')";
    query(sql).bind(run).execute(&mut *db).await.unwrap();
    let mut next = 0_i64;
    for lines in &rows.appends {
        let count = i64::try_from(lines.len()).unwrap();
        match way {
            Way::Transaction => {
                let mut transaction = db.begin().await.unwrap();
                let row = query(ROW).bind(run).bind(next).bind(&rows.summary).bind(count).bind(None::<i64>);
                let key: i64 = row.fetch_one(&mut *transaction).await.unwrap().get(0);
                query(EVENTS).bind(key).bind(next).bind(lines).execute(&mut *transaction).await.unwrap();
                transaction.commit().await.unwrap();
            }
            Way::Statement => {
                const SQL: &str = "WITH row AS (
                        UPDATE runs SET next = $2 + $4, epoch = 1, changed = change_time(), status = 'running', at = $2,
                            wake = $5, summary = $3
                        WHERE run = $1 AND next = $2 AND epoch <= 1 RETURNING key
                    )
                    INSERT INTO events (key, seq, line)
                    SELECT row.key, $2 + l.place - 1, l.line FROM row, unnest($6::text[]) WITH ORDINALITY l (line, place)";
                let statement = query(SQL).bind(run).bind(next).bind(&rows.summary).bind(count).bind(None::<i64>);
                let done = db.execute(statement.bind(lines)).await.unwrap();
                assert_eq!(done.rows_affected(), lines.len() as u64);
            }
        }
        next += count;
    }
}
