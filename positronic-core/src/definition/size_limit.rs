//! Size limit for encoded values of an author's code, set by the calling runner.
//!
//! The closures of a [`BrainDefinition`](super::BrainDefinition) encode what an author returns, often without access to a [`Scope`](super::Scope).
//! So the runner enters its limit around every call of such code, and the encoder reads it from a thread local.

use std::cell::Cell;
use std::marker::PhantomData;
use std::pin::pin;

use crate::record::MAX_DOCUMENT_BYTES;

thread_local! {
    static LIMIT: Cell<usize> = const { Cell::new(MAX_DOCUMENT_BYTES) };
}

/// Returns the current size limit in bytes.
pub(super) fn max_document_bytes() -> usize {
    LIMIT.get()
}

/// Applies a limit on this thread until it is dropped.
pub(crate) struct LimitGuard {
    before: usize,
    of_this_thread: PhantomData<*const ()>,
}

impl LimitGuard {
    /// Applies a limit.
    pub(crate) fn enter(max_bytes: usize) -> Self {
        Self { before: LIMIT.replace(max_bytes), of_this_thread: PhantomData }
    }
}

impl Drop for LimitGuard {
    fn drop(&mut self) {
        LIMIT.set(self.before);
    }
}

/// Runs a future with a limit that applies during each poll.
pub(crate) async fn with_document_limit<F: Future>(max_bytes: usize, work: F) -> F::Output {
    let mut work = pin!(work);
    std::future::poll_fn(|cx| {
        let _limit = LimitGuard::enter(max_bytes);
        work.as_mut().poll(cx)
    })
    .await
}
