//! Opening a store: its schema, its migrations, and what is refused.

use positronic_core::record::{RunId, Seq};
use positronic_core::store::prelude::*;
use positronic_core::store::{EventSearch, RunFilter, StoreError};
use positronic_postgres::{PostgresOptions, PostgresStore};
use positronic_store_suite::Sample;
use sqlx_core::executor::Executor as _;
use sqlx_core::query_scalar::query_scalar;
use sqlx_core::row::Row as _;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_postgres::{PgConnection, Postgres};

use crate::server;

async fn refused(options: PostgresOptions) -> StoreError {
    PostgresStore::with(options).await.expect_err("the store does not open")
}

#[tokio::test]
async fn many_processes_create_a_schema_at_once() {
    let Some(database) = server::database().await else { return };

    let opened = futures::future::join_all((0..6).map(|_| database.open())).await;

    let run = Sample::new("run-1").says("one").appended(&opened[0]).await.run;
    for store in &opened {
        assert_eq!(store.read(&run, Seq(0), 10).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn schema_of_a_newer_release_is_refused() {
    let Some(database) = server::database().await else { return };
    drop(database.open().await);
    let mut db = database.connect().await;
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (99, 'newer', true, '', 0)";
    db.execute(newer).await.unwrap();

    let error = refused(database.options()).await;

    assert!(matches!(error, StoreError::Unusable { .. }), "{error:?}");
    assert!(error.to_string().contains("has format 99, but this release reads only up to"), "{error}");
}

#[tokio::test]
async fn read_only_store_refuses_writes_and_creates_nothing() {
    let Some(database) = server::database().await else { return };
    let mut options = database.options();
    options.read_only = true;
    assert!(matches!(refused(options.clone()).await, StoreError::Older { .. }));
    let run = Sample::new("run-1").says("one").appended(&database.open().await).await.run;

    let store = PostgresStore::with(options).await.unwrap();

    assert_eq!(store.read(&run, Seq(0), 10).await.unwrap().len(), 1);
    let refused = Sample::new("run-2").says("one").append(&store).await;
    assert!(matches!(refused, Err(StoreError::Unusable { .. })), "{refused:?}");
    assert!(matches!(store.acquire_lease().await, Err(StoreError::Unusable { .. })));
}

#[tokio::test]
async fn errors_name_the_place_and_never_the_password() {
    let Some(database) = server::database().await else { return };
    let port = database.url.rsplit_once(':').unwrap().1.split_once('/').unwrap().0;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for (url, part, unusable) in [
        ("no address: s3cret".to_owned(), "write postgres://user@host/database", true),
        (format!("mysql://u:s3cret@127.0.0.1:{port}/x"), "its scheme is not `postgres`", true),
        (format!("postgres://tester:s3cret@127.0.0.1:{port}/absent"), "create the database first", true),
        (format!("postgres://stranger:s3cret@127.0.0.1:{port}/postgres"), "check the user and the password", true),
        (format!("postgres://tester:s3cret@127.0.0.1:{closed}/postgres"), "cannot connect to", false),
    ] {
        let error = refused(PostgresOptions::builder().url(&url).build()).await;
        assert_eq!(matches!(error, StoreError::Unusable { .. }), unusable, "{error:?}");
        let (text, debug) = (error.to_string(), format!("{error:?}"));
        assert!(text.contains(part), "{text}");
        assert!(!text.contains("s3cret") && !debug.contains("s3cret"), "{text}");
        let options = PostgresOptions::builder().url(url).build();
        assert!(!format!("{options:?}").contains("s3cret"));
    }
    for schema in ["", "\0", &"x".repeat(64)] {
        let options = PostgresOptions::builder().url(&database.url).schema(schema).build();
        assert!(matches!(refused(options).await, StoreError::Unusable { .. }), "{schema:?}");
    }
}

#[tokio::test]
async fn address_names_the_schema() {
    let Some(database) = server::database().await else { return };
    let run = Sample::new("run-1").says("one").appended(&database.open().await).await.run;

    let url = format!("{}?schema={}&application_name=tests", database.url, database.schema.replace(' ', "%20"));
    let store = PostgresStore::open(url).await.unwrap();

    assert!(store.run(&run).await.is_ok());
    assert!(format!("{store:?}").contains(&database.schema));
}

/// Returns whether the server has the extension for the search index; a test without it is skipped.
async fn has_trigrams(db: &mut PgConnection) -> bool {
    let sql = "SELECT count(*) > 0 FROM pg_available_extensions WHERE name = 'pg_trgm'";
    let available = query_scalar::<Postgres, bool>(sql).fetch_one(db).await.unwrap();
    if !available {
        eprintln!("skipped: the server lacks the extension pg_trgm");
    }
    available
}

#[tokio::test]
async fn many_processes_create_the_search_index_at_once() {
    let Some(database) = server::database().await else { return };
    if !has_trigrams(&mut database.connect().await).await {
        return;
    }
    let mut options = database.options();
    options.search_index = true;

    let opened = futures::future::join_all((0..6).map(|_| PostgresStore::with(options.clone()))).await;

    let run = Sample::new("run-1").says("one").appended(opened[0].as_ref().unwrap()).await.run;
    for store in opened {
        assert_eq!(store.unwrap().search(&EventSearch::new("one", 5)).await.unwrap().found[0].run, run);
    }
}

#[tokio::test]
async fn search_uses_the_index_of_trigrams() {
    let Some(database) = server::database().await else { return };
    let mut db = database.connect().await;
    if !has_trigrams(&mut db).await {
        return;
    }
    let mut options = database.options();
    options.search_index = true;

    let store = PostgresStore::with(options.clone()).await.unwrap();
    let mut sample = Sample::new("run-1");
    for number in 0..2000 {
        sample = sample.says(&format!("Invoice {number} für Zoë"));
    }
    _ = sample.appended(&store).await;

    assert_eq!(store.search(&EventSearch::new("iNVOICE 1234 FÜR", 5)).await.unwrap().found.len(), 1);
    // A sequential scan of so few rows is faster.
    db.execute("SET enable_seqscan = off").await.unwrap();
    let plan = "EXPLAIN SELECT line FROM events WHERE line ILIKE '%invoice 1234 %'";
    let plan: Vec<String> = db.fetch_all(AssertSqlSafe(plan)).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert!(plan.iter().any(|line| line.contains("events_by_text")), "{plan:#?}");
    // Opened again, the index stays.
    drop(PostgresStore::with(options).await.unwrap());
    assert_eq!(store.runs(&RunFilter::default()).await.unwrap().len(), 1);
    assert!(store.run(&RunId::new("run-1")).await.is_ok());
}
