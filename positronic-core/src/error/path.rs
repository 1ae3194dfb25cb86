//! Paths of I/O errors: the system's errors name no file.

use std::error::Error as StdError;
use std::io;
use std::panic::Location;
use std::path::{Path, PathBuf};

use super::Result;

/// Adds the path to an [`std::io::Error`], which names none. The prelude has it.
///
/// ```
/// use positronic_core::prelude::*;
///
/// fn prices(path: &str) -> Result<String> {
///     std::fs::read_to_string(path).path(path)
/// }
/// let error = prices("none/prices.csv").unwrap_err();
/// assert!(error.to_string().starts_with("`none/prices.csv`: "), "{error}");
/// ```
pub trait IoContext<T> {
    /// Adds the path that was read or written. The error stays transient if it was.
    ///
    /// # Errors
    ///
    /// The error, with the path.
    fn path(self, path: impl AsRef<Path>) -> Result<T>;
}

#[derive(Debug, thiserror::Error)]
#[error("`{}`", path.display())]
struct FileError {
    path: PathBuf,
    source: io::Error,
}

impl<T> IoContext<T> for io::Result<T> {
    fn path(self, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|source| FileError { path: path.as_ref().to_owned(), source }.into())
    }
}

/// Returns the line of an author's code that converted an error, if the error is the system's own and says nothing about
/// what failed.
pub(super) fn line_of(
    error: &(dyn StdError + Send + Sync + 'static),
    caller: &'static Location<'static>,
) -> Option<&'static Location<'static>> {
    let is_bare = error.downcast_ref::<io::Error>().is_some_and(|error| error.get_ref().is_none());
    // `map_err(Error::from)` is called from a line of the standard library.
    (is_bare && !caller.file().contains("library/core/src/")).then_some(caller)
}
