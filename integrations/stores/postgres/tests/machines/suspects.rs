//! A run that ends its process, beside runs that do not, over a database: no other run fails.

use std::path::{Path as File, PathBuf};
use std::time::Duration;

use positronic_postgres::{PostgresOptions, PostgresStore};

use crate::culprits::{check, deaths, serve, store, submit};
use crate::server;

/// How long until another process takes the runs of one that ended.
const TTL: Duration = Duration::from_millis(1500);

/// Opens the store that a file names: the address in its first line, the schema in its second.
async fn open(file: &File) -> PostgresStore {
    let named = std::fs::read_to_string(file).unwrap();
    let (url, schema) = named.split_once('\n').unwrap();
    let options = PostgresOptions::builder().url(url).schema(schema).connections(4).lease_ttl(TTL);
    PostgresStore::with(options.build()).await.unwrap()
}

#[tokio::test]
#[ignore = "the process that ends itself"]
async fn process() {
    let Some(file) = store() else { return };
    serve(open(&file).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_run_fails_beside_one_that_ends_its_process() {
    for place in ["step", "call"] {
        let Some(database) = server::database().await else { return };
        let (folder, work) = (tempfile::tempdir().unwrap(), Duration::from_millis(600));
        let file: PathBuf = folder.path().join("store");
        std::fs::write(&file, format!("{}\n{}", database.url, database.schema)).unwrap();
        submit(open(&file).await, place, work).await;
        let at = file.clone();

        let deaths = tokio::task::spawn_blocking(move || deaths("suspects::process", &at, place, work)).await.unwrap();

        check(&open(&file).await, place, work, deaths).await;
    }
}
