//! Blobs: the bytes of files.

use positronic_core::record::{RunId, Status, Timestamp, sha256};
use positronic_core::store::{EventStore, LARGEST_BLOB, StoreError};

use super::Sample;

/// Stores bytes, and panics if that fails.
async fn kept(store: &impl EventStore, bytes: &[u8], at: i64) -> String {
    store.put_blob(bytes.to_vec(), Timestamp(at)).await.expect("the store keeps the bytes")
}

/// Bytes are stored under their hash, the same bytes once; an unknown hash finds nothing.
pub async fn blob_is_stored_under_its_hash<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let all: Vec<u8> = (0..=255).collect();

    for bytes in [&b""[..], b"hello", &all] {
        let name = kept(&store, bytes, 1).await;

        assert_eq!(name, sha256(bytes));
        assert_eq!(kept(&other, bytes, 2).await, name);
        assert_eq!(other.blob(&name).await, Ok(Some(bytes.to_vec())));
    }
    assert_eq!(sha256(b"hello"), "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
    for unknown in ["", "hello", &sha256(b"something else")] {
        assert_eq!(store.blob(unknown).await, Ok(None), "{unknown:?}");
    }
}

/// A blob has at most 32 MiB; the error for a larger one names the limit.
pub async fn oversized_blob_is_refused<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let size = LARGEST_BLOB as u64 + 1;

    let largest = kept(&store, &vec![7; LARGEST_BLOB], 1).await;
    let refused = store.put_blob(vec![7; LARGEST_BLOB + 1], Timestamp(1)).await.unwrap_err();

    assert_eq!(store.blob(&largest).await.unwrap().map(|bytes| bytes.len()), Some(LARGEST_BLOB));
    assert_eq!(refused, StoreError::TooLarge { size, most: LARGEST_BLOB as u64 });
    assert!(refused.to_string().contains("at most 33554432 bytes"), "{refused}");
}

/// A sweep removes unreferenced blobs that were stored before a given time, and keeps referenced ones.
pub async fn unreferenced_blobs_are_swept<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let (used, old, young) =
        (kept(&store, b"used", 1).await, kept(&store, b"old", 1).await, kept(&store, b"young", 5).await);
    let again = kept(&store, b"again", 1).await;
    _ = Sample::new("run-1").saves("used.txt", b"used").appended(&store).await;
    // A run may be about to reference it.
    assert_eq!(kept(&other, b"again", 5).await, again);

    assert_eq!(other.sweep_blobs(Timestamp(5)).await, Ok(1));
    assert_eq!(other.sweep_blobs(Timestamp(5)).await, Ok(0));

    assert_eq!(store.blob(&old).await, Ok(None));
    for name in [&used, &young, &again] {
        assert!(store.blob(name).await.unwrap().is_some(), "{name}");
    }
    assert_eq!(store.sweep_blobs(Timestamp(6)).await, Ok(2));
    assert_eq!(store.blob(&used).await, Ok(Some(b"used".to_vec())));
    // A swept blob can be stored again.
    assert_eq!(kept(&store, b"old", 7).await, old);
    assert_eq!(other.blob(&old).await, Ok(Some(b"old".to_vec())));
}

/// A blob is removed with the last run that references it.
pub async fn blob_is_removed_with_its_last_run<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let (shared, own) = (kept(&store, b"shared", 1).await, kept(&store, b"own", 1).await);
    let over = |run: &str| Sample::new(run).row(|row| row.status = Status::Completed);
    let both = over("run-1").saves("shared.txt", b"shared").saves("own.txt", b"own").saves("copy.txt", b"own");
    _ = both.appended(&store).await;
    _ = over("run-2").saves("shared.txt", b"shared").appended(&store).await;

    store.remove(&[RunId::from("run-1")]).await.unwrap();
    assert_eq!(store.sweep_blobs(Timestamp(5)).await, Ok(1));
    assert_eq!(store.blob(&own).await, Ok(None));
    assert_eq!(store.blob(&shared).await, Ok(Some(b"shared".to_vec())));

    store.remove(&[RunId::from("run-2")]).await.unwrap();
    assert_eq!(store.sweep_blobs(Timestamp(5)).await, Ok(1));
    assert_eq!(store.blob(&shared).await, Ok(None));
}

/// A refused append references nothing, so a sweep removes its blobs.
pub async fn refused_append_references_no_blob<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let name = kept(&store, b"one", 1).await;
    _ = Sample::new("run-1").says("one").appended(&store).await;

    let refused = Sample::new("run-1").saves("one.txt", b"one").append(&store).await;

    assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{refused:?}");
    assert_eq!(store.sweep_blobs(Timestamp(5)).await, Ok(1));
    assert_eq!(store.blob(&name).await, Ok(None));
}
