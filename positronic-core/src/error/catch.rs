//! Calls of the author's code, with panics turned into errors.

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;

use super::{Error, Result};

/// Awaits the author's code and turns a panic into an error.
pub(crate) async fn caught<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// Calls the author's code and turns a panic into an error.
pub(crate) fn caught_now<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::new(match said {
        Some(said) => format!("the code panicked: {said}"),
        None => "the code panicked".to_owned(),
    })
}
