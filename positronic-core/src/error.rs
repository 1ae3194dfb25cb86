//! The error that an author's code returns.

mod transient;

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;

/// What a step or a tool returns. Write it as the return type of helpers, too.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of an author's code. Any error becomes one with `?`: a type that implements [`std::error::Error`], a boxed error,
/// an `anyhow::Error`, a sentence. What it was made from, with its chain of sources, is kept.
///
/// It is transient where another try may mend it, otherwise permanent. A transient error of a step, or of a tool that is
/// `read_only` or `idempotent`, is tried again; every other error of a tool is shown to the model. Where `?` makes it, these are
/// transient, wherever they stand in the chain of sources:
///
/// - time-outs and connection errors of [`std::io::Error`], and so those of the clients that keep it as a source: `hyper`,
///   `reqwest`, `sqlx`, `tokio-postgres` and others;
/// - time-outs of `tokio` and `reqwest`, a pool of `sqlx` without a free connection, a connection that `hyper` finds closed;
/// - a database of `rusqlite` or `sqlx` that is busy or locked.
///
/// [`Error::transient`] and [`Error::permanent`] decide otherwise. What a bare `anyhow::Error` wraps is seen with the feature
/// `anyhow` alone; one with a context is looked into without it.
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
/// ```
pub struct Error {
    source: Box<dyn StdError + Send + Sync>,
    transient: bool,
}

impl Error {
    /// Makes a permanent error from a sentence.
    pub fn new(message: impl Into<String>) -> Self {
        Self { source: message.into().into(), transient: false }
    }

    /// Makes an error that another try may mend.
    pub fn transient(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: source.into(), transient: true }
    }

    /// Makes an error that no other try mends, whatever it was made from.
    pub fn permanent(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: source.into(), transient: false }
    }

    /// Says whether another try may mend it.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        self.transient
    }

    /// Returns the error that it was made from.
    #[must_use]
    pub fn source(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.source
    }

    /// Returns the error that it was made from, for code that returns boxed errors.
    #[must_use]
    pub fn into_source(self) -> Box<dyn StdError + Send + Sync> {
        self.source
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

impl<E: Into<Box<dyn StdError + Send + Sync>> + Any> From<E> for Error {
    fn from(error: E) -> Self {
        // Boxing an `anyhow::Error` hides the type of what it wraps, so it is looked into before.
        let wraps_transient = transient::is_wrapped(&error);
        let source = error.into();
        let transient = wraps_transient || transient::is_transient(&*source);
        Self { source, transient }
    }
}
