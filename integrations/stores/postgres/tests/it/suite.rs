//! The contract of every store.

use crate::server;

positronic_store_suite::store_suite!({
    let Some(database) = server::database().await else { return };
    let mut handles = Vec::new();
    for _ in 0..16 {
        handles.push(database.open().await);
    }
    let handles = parking_lot::Mutex::new(handles);
    move || handles.lock().pop().expect("a case opens at most sixteen handles")
});
