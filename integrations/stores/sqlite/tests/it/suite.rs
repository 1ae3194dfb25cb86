//! The suite that every store passes.

use positronic_sqlite::SqliteStore;

positronic_store_suite::store_suite!({
    let folder = tempfile::tempdir().unwrap();
    move || SqliteStore::open(folder.path().join("runs.db")).unwrap()
});
