//! The suite that every store passes.

use positronic_core::store::SqliteStore;

positronic_store_suite::store_suite!({
    let folder = tempfile::tempdir().unwrap();
    move || SqliteStore::open(folder.path().join("runs.db")).unwrap()
});
