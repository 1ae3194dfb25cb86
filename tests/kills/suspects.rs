//! A run that ends its process, beside runs that do not: the culprit is parked within its retries, and no other run fails.

use std::path::Path as File;
use std::time::Duration;

use positronic_sqlite::SqliteStore;

use crate::culprits::{check, deaths, serve, store, submit};

fn open(folder: &File) -> SqliteStore {
    SqliteStore::open(folder.join("runs.db")).unwrap()
}

#[tokio::test]
#[ignore = "the process that ends itself"]
async fn process() {
    let Some(folder) = store() else { return };
    serve(open(&folder)).await;
}

async fn no_run_fails(place: &'static str, work: Duration) {
    let folder = tempfile::tempdir().unwrap();
    submit(open(folder.path()), place, work).await;
    let at = folder.path().to_owned();

    let deaths = tokio::task::spawn_blocking(move || deaths("suspects::process", &at, place, work)).await.unwrap();

    check(&open(folder.path()), place, work, deaths).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_run_fails_beside_one_that_ends_its_process() {
    let mut cells = tokio::task::JoinSet::new();
    for place in ["step", "call", "nested call", "plugin", "restore"] {
        for millis in [5, 600] {
            cells.spawn(no_run_fails(place, Duration::from_millis(millis)));
        }
    }
    cells.join_all().await;
}
