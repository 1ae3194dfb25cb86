//! The suite, for the store in memory.

positronic_store_suite::store_suite!({
    let store = positronic_core::store::MemoryStore::new();
    move || store.clone()
});
