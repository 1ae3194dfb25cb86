//! A buffer of the thread, for texts that are copied at their exact length.

use std::cell::Cell;

/// The largest capacity in bytes that a thread keeps.
const KEPT: usize = 64 * 1024;

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Calls a function with an empty buffer, which the next caller of the thread gets with the room that it has by then.
pub(crate) fn with_scratch<T>(f: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let mut buffer = BUFFER.take();
    let result = f(&mut buffer);
    if buffer.capacity() <= KEPT {
        buffer.clear();
        BUFFER.set(buffer);
    }
    result
}
