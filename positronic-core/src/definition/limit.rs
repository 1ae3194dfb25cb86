//! Size limit of the documents that an author's code makes, as the runner that calls the code sets it.
//!
//! The closures of a [`BrainDefinition`](super::BrainDefinition) encode what an author returns, often without a [`Scope`](super::Scope) at hand. So
//! the runner enters its limit around every call of such code, and the encoder reads it there.

use std::cell::Cell;
use std::marker::PhantomData;
use std::pin::pin;

use crate::record::MAX_DOCUMENT_BYTES;

thread_local! {
    static LIMIT: Cell<usize> = const { Cell::new(MAX_DOCUMENT_BYTES) };
}

/// Returns how many bytes a document may have that is encoded here.
pub(super) fn max_document_bytes() -> usize {
    LIMIT.get()
}

/// Keeps a limit in force on this thread, and restores the one before when it goes.
pub(crate) struct LimitGuard {
    before: usize,
    of_this_thread: PhantomData<*const ()>,
}

impl LimitGuard {
    /// Puts a limit in force.
    pub(crate) fn enter(max_bytes: usize) -> Self {
        Self { before: LIMIT.replace(max_bytes), of_this_thread: PhantomData }
    }
}

impl Drop for LimitGuard {
    fn drop(&mut self) {
        LIMIT.set(self.before);
    }
}

/// Runs a future with a limit in force whenever it is polled.
pub(crate) async fn with_document_limit<F: Future>(max_bytes: usize, work: F) -> F::Output {
    let mut work = pin!(work);
    std::future::poll_fn(|cx| {
        let _limit = LimitGuard::enter(max_bytes);
        work.as_mut().poll(cx)
    })
    .await
}
