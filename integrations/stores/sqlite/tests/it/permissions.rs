//! File permissions of a store.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use positronic_core::store::prelude::*;
use positronic_store_suite::Sample;

use super::quick;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn only_the_owner_can_read_the_files_of_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = quick(&folder.path().join("runs.db"));
    let owner = store.acquire_lease().await.unwrap();
    Sample::new("run-1").append(&store).await.unwrap();

    let mut open = Vec::new();
    let mut folders = vec![folder.path().to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if mode(&path) & 0o077 != 0 {
                open.push(path.clone());
            }
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert_eq!(mode(&folder.path().join("runs.db-wal")), 0o600);
    drop(owner);
}
