//! Rows, bytes and write-ahead log of waiting runs: an agent that has looked four things up, each with 600 bytes of
//! result, and waits for the approval of a refund.

use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::ModelRequest;
use positronic_core::runner::Settled;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sqlx_core::executor::Executor as _;
use sqlx_core::row::Row as _;
use sqlx_postgres::PgConnection;

use crate::{database, number};

#[derive(Deserialize, JsonSchema)]
struct Question {
    /// What to look up.
    question: String,
}

#[derive(Deserialize, JsonSchema)]
struct Refund {
    /// Why, for the person who approves it.
    reason: String,
}

fn support() -> Brain {
    brain("Support")
        .r#loop("Chat", |cx| {
            cx.system(
                "You help customers of a shop. Look up what you need to know. A refund needs an approval. ".repeat(8),
            )
            .input("The espresso machine of my order A-1001 leaks. Can I have my money back?")
            .tool("look_up", |t| {
                t.description("Looks up orders and articles")
                    .read_only()
                    .execute(async |Question { question }, _| Ok(question.repeat(15)))
            })
            .tool("refund", |t| {
                t.description("Refunds an order")
                    .requires_approval("it pays money")
                    .execute(async |Refund { reason }, _| Ok(reason))
            })
        })
        .build()
}

pub(crate) async fn measure() {
    let runs = number("BENCH_RUNS", 1_000);
    let database = database();
    let store = database.open().await;
    let model = ScriptedModel::from_fn(|request: &ModelRequest| match request.messages.len() / 2 {
        iteration @ 0..4 => {
            let question = format!("Question {iteration}: what is in order A-1001?");
            Reply::call("look_up", json!({ "question": question })).and_text("Let me look this up for you.")
        }
        _ => Reply::call("refund", json!({ "reason": "It leaks, and arrived 12 days ago. ".repeat(8) })),
    });
    let runner = Runner::new(model).store(store.clone()).linger(Duration::ZERO);
    let mut db = database.connect().await;
    db.execute("CHECKPOINT").await.unwrap();
    let before = position(&mut db).await;
    stream::iter(0..runs)
        .for_each_concurrent(8, |_| async {
            let run = runner.start(&support(), ()).await.unwrap();
            assert!(matches!(run.settled().await, Settled::Waiting(_)));
        })
        .await;
    while count(&mut db, "SELECT count(*) FROM runs WHERE owner IS NOT NULL").await > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let log = position(&mut db).await - before;
    // The server publishes its counters after a second.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let updates = "SELECT n_tup_ins + n_tup_upd FROM pg_stat_user_tables WHERE relid = 'runs'::regclass";
    let in_place = "SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'runs'::regclass";
    let (appends, hot) = (count(&mut db, updates).await, count(&mut db, in_place).await);
    let events = count(&mut db, "SELECT sum(next)::bigint FROM runs").await;
    let lines = count(&mut db, "SELECT sum(octet_length(line))::bigint FROM events").await;
    println!(
        "\n{runs} waiting runs: {events} events with {lines} bytes of lines, {appends} appends, {hot} of them hot"
    );
    println!("write-ahead log: {log} bytes, {} an append", log / appends);
    let tables = "SELECT relname::text, n_live_tup, pg_table_size(relid), pg_indexes_size(relid)
                  FROM pg_stat_user_tables WHERE schemaname = current_schema() ORDER BY pg_total_relation_size(relid) DESC";
    for table in ["runs", "events", "snapshots", "saved_prompts", "pending", "signals", "sinks"] {
        db.execute(sqlx_core::sql_str::AssertSqlSafe(format!("VACUUM ANALYZE {table}"))).await.unwrap();
    }
    println!("table | rows | bytes of the table | bytes of its indexes");
    for row in db.fetch_all(tables).await.unwrap() {
        let (name, rows): (String, i64) = (row.get(0), row.get(1));
        println!("{name} | {rows} | {} | {}", row.get::<i64, _>(2), row.get::<i64, _>(3));
    }
    let indexes = "SELECT indexrelname::text, pg_relation_size(indexrelid) FROM pg_stat_user_indexes
                   WHERE schemaname = current_schema() AND pg_relation_size(indexrelid) > 16384 ORDER BY 2 DESC";
    for row in db.fetch_all(indexes).await.unwrap() {
        println!("index {} | {}", row.get::<String, _>(0), row.get::<i64, _>(1));
    }
}

async fn position(db: &mut PgConnection) -> i64 {
    count(db, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").await
}

async fn count(db: &mut PgConnection, sql: &'static str) -> i64 {
    db.fetch_one(sql).await.unwrap().get(0)
}
