//! The error that an author's code returns.

use std::error::Error as StdError;
use std::fmt;

/// What a step or a tool returns. Write it as the return type of helpers, too.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of an author's code. Any error type becomes one with `?`.
///
/// It is permanent unless it says that it is transient: a transient error of a step, or of a tool that is `read_only` or
/// `idempotent`, is tried again; every other error of a tool is shown to the model.
///
/// ```
/// use positronic_core::{Error, Result};
///
/// fn parse(text: &str) -> Result<u32> {
///     Ok(text.parse()?)
/// }
/// fn ask_the_server(answer: std::io::Result<String>) -> Result<String> {
///     answer.map_err(Error::transient)
/// }
/// assert_eq!(parse("x").unwrap_err().to_string(), "invalid digit found in string");
/// assert!(ask_the_server(Err(std::io::ErrorKind::TimedOut.into())).unwrap_err().is_transient());
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

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(source: E) -> Self {
        Self { source: Box::new(source), transient: false }
    }
}
