//! The error type for an author's code.

mod catch;
mod path;
mod transient;

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::panic::Location;

pub(crate) use catch::{caught, caught_now, panicked};
pub use path::IoContext;

/// The return type of steps and tools, and of their helpers.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of an author's code. Any error converts with `?`: a type that implements [`std::error::Error`], a boxed error,
/// an `anyhow::Error`, a string. The original error with its chain of sources is preserved.
///
/// It is transient if a retry may succeed, otherwise permanent. A transient error of a step, or of a tool that is
/// `read_only` or `idempotent`, is retried; every other error of a tool is shown to the model. `?` makes these errors
/// transient, anywhere in the chain of sources:
///
/// - timeouts and connection errors of [`std::io::Error`], and so those of clients that have it as a source: `hyper`,
///   `reqwest`, `sqlx`, `tokio-postgres` and others;
/// - timeouts of `tokio` and `reqwest`, an exhausted pool of `sqlx`, a closed connection of `hyper`;
/// - a busy or locked database of `rusqlite` or `sqlx`.
///
/// [`Error::transient`] and [`Error::permanent`] override this. The content of a bare `anyhow::Error` is only inspected with the
/// feature `anyhow`; one with a context is always inspected.
///
/// It converts into a `Box<dyn std::error::Error>`, so `?` works in a `main` that returns one. For a box that is `Send` and `Sync`
/// there is [`Error::into_source`].
///
/// An [`std::io::Error`] names no file: [`IoContext::path`] adds it. Without it, a failed step names the line of `?`.
///
/// ```
/// use positronic_core::{Error, Result};
///
/// fn parse(text: &str) -> Result<u32> {
///     Ok(text.parse()?)
/// }
/// fn ask_the_server(answer: std::io::Result<String>) -> Result<String> {
///     Ok(answer?)
/// }
/// fn look_up(answer: Result<String, Box<dyn std::error::Error + Send + Sync>>) -> Result<String> {
///     Ok(answer?)
/// }
/// assert_eq!(parse("x").unwrap_err().to_string(), "invalid digit found in string");
/// assert!(ask_the_server(Err(std::io::ErrorKind::TimedOut.into())).unwrap_err().is_transient());
/// assert!(!look_up(Err("no such customer".into())).unwrap_err().is_transient());
/// assert!(Error::transient("the queue is full").is_transient());
///
/// fn seven() -> Result<u32, Box<dyn std::error::Error>> {
///     Ok(parse("7")?)
/// }
/// fn eight() -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
///     Ok(parse("8").map_err(Error::into_source)?)
/// }
/// assert_eq!((seven().unwrap(), eight().unwrap()), (7, 8));
/// ```
pub struct Error {
    source: Box<dyn StdError + Send + Sync>,
    transient: bool,
    /// The line that converted an error without a path.
    line: Option<&'static Location<'static>>,
}

impl Error {
    /// Creates a permanent error from a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { source: message.into().into(), transient: false, line: None }
    }

    /// Creates a transient error, which a retry may fix.
    pub fn transient(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: source.into(), transient: true, line: None }
    }

    /// Creates a permanent error, whatever its source.
    pub fn permanent(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: source.into(), transient: false, line: None }
    }

    /// Returns whether a retry may succeed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        self.transient
    }

    /// Returns the original error.
    #[must_use]
    pub fn source(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.source
    }

    /// Returns the original error, for code that returns `Box<dyn std::error::Error + Send + Sync>`. Into a
    /// `Box<dyn std::error::Error>`, as `main` returns it, `?` converts.
    #[must_use]
    pub fn into_source(self) -> Box<dyn StdError + Send + Sync> {
        self.source
    }

    /// Returns the message for the author: with the line of the code, if the error says nothing about what failed.
    pub(crate) fn with_line(&self) -> String {
        match self.line {
            Some(line) => format!("{self}, at {}:{}", line.file(), line.line()),
            None => self.to_string(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)?;
        let mut cause = self.source.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

// There is no conversion into a box that is `Send` and `Sync`: with it, `Error` would be one of the types that the conversion below
// accepts, and the language has a conversion of each type into itself. `anyhow::Error` has it because it accepts only types that
// implement `std::error::Error`: no boxes, no strings, no `anyhow::Error`.
/// Returns the original error.
impl From<Error> for Box<dyn StdError> {
    fn from(error: Error) -> Self {
        error.source
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>> + Any> From<E> for Error {
    #[track_caller]
    fn from(error: E) -> Self {
        // Boxing an `anyhow::Error` hides the type of its content, so it is inspected before.
        let wraps_transient = transient::is_wrapped(&error);
        let source = error.into();
        let transient = wraps_transient || transient::is_transient(&*source);
        let line = path::line_of(&*source, Location::caller());
        Self { source, transient, line }
    }
}
