//! Copies of a store that is in use.

use positronic_core::store::StoreError;
use positronic_core::store::prelude::*;
use positronic_store_suite::Sample;

use super::{lines, quick};

#[tokio::test]
async fn backup_of_a_store_in_use_has_all_commits_although_a_copy_of_its_file_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let [path, copied, backup] = ["runs.db", "copied.db", "backup.db"].map(|name| folder.path().join(name));
    let store = quick(&path);
    let run = Sample::new("run-1").says("one").appended(&store).await.run;
    std::fs::copy(&path, &copied).unwrap();
    let in_copy = quick(&copied).run(&run).await;

    store.back_up(&backup).await.unwrap();

    assert!(matches!(in_copy, Err(StoreError::NoSuchRun { .. })), "the write-ahead log has the run: {in_copy:?}");
    let restored = quick(&backup);
    assert_eq!(lines(&restored, &run).await, lines(&store, &run).await);
    // Both continue independently.
    _ = Sample::new("run-2").says("one").appended(&restored).await;
    _ = Sample::new("run-2").says("one").appended(&store).await;
    assert!(!folder.path().join("backup.db.partial").exists());
}

#[tokio::test]
async fn backup_replaces_no_file_and_a_failed_one_leaves_none() {
    let folder = tempfile::tempdir().unwrap();
    let store = quick(&folder.path().join("runs.db"));
    let backup = folder.path().join("backup.db");
    std::fs::write(&backup, "something else").unwrap();

    let refused = store.back_up(&backup).await.unwrap_err();

    assert!(refused.to_string().contains("the file exists already; name a new one"), "{refused}");
    assert_eq!(std::fs::read(&backup).unwrap(), b"something else");
    let nowhere = folder.path().join("absent").join("backup.db");
    assert!(matches!(store.back_up(&nowhere).await, Err(StoreError::Unusable { .. })));
    // A folder in the place of the unfinished copy.
    let new = folder.path().join("new.db");
    std::fs::create_dir(folder.path().join("new.db.partial")).unwrap();
    assert!(store.back_up(&new).await.is_err());
    assert!(!new.exists());
}

#[cfg(unix)]
#[tokio::test]
async fn backup_is_readable_only_by_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let store = quick(&folder.path().join("runs.db"));
    let backup = folder.path().join("backup.db");
    store.back_up(&backup).await.unwrap();
    assert_eq!(std::fs::metadata(&backup).unwrap().permissions().mode() & 0o777, 0o600);
}
