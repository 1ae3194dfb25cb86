//! Starts by webhook: what a delivery's payload gives a run.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::trait_bounds::{Options, Payload};
use super::wait::Webhook;
use crate::definition::{RunInput, StartOn, decode, encode};
use crate::error::{Error, Result};
use crate::tools::Schema;

/// The input of a run that a webhook starts: its options, and to whom it belongs.
///
/// ```
/// use positronic_core::dsl::StartInput;
///
/// let input = StartInput::new("T-7".to_owned()).user("ann").tag("urgent");
/// # let _ = input;
/// ```
#[derive(Debug, Clone)]
#[must_use = "the closure of `start_on` returns it"]
pub struct StartInput<O> {
    options: O,
    user: Option<String>,
    tags: Vec<String>,
}

impl<O> StartInput<O> {
    /// Creates an input with options.
    pub const fn new(options: O) -> Self {
        Self { options, user: None, tags: Vec::new() }
    }

    /// Sets the user that the run belongs to.
    pub fn user(self, user: impl Into<String>) -> Self {
        Self { user: Some(user.into()), ..self }
    }

    /// Adds a word that lists of runs are filtered by: at most 16, each of 1 to 64 bytes without control characters.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }
}

/// The return value of the closure of [`Runner::start_on`](crate::runner::Runner::start_on): the options of the run, a
/// [`StartInput`], or a `Result` of one of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the input of a run with the options `{O}`",
    label = "this webhook starts a brain with the options `{O}`",
    note = "return `{O}`, a `StartInput<{O}>`, or a `Result` of one of them"
)]
pub trait IntoStartInput<O> {
    /// Makes the input.
    ///
    /// # Errors
    ///
    /// The error of the closure: the delivery starts no run.
    fn into_start_input(self) -> Result<StartInput<O>>;
}

impl<O> IntoStartInput<O> for O {
    fn into_start_input(self) -> Result<StartInput<O>> {
        Ok(StartInput::new(self))
    }
}

impl<O> IntoStartInput<O> for StartInput<O> {
    fn into_start_input(self) -> Result<Self> {
        Ok(self)
    }
}

impl<O, E: Into<Error>> IntoStartInput<O> for std::result::Result<O, E> {
    fn into_start_input(self) -> Result<StartInput<O>> {
        self.map(StartInput::new).map_err(Into::into)
    }
}

impl<O, E: Into<Error>> IntoStartInput<O> for std::result::Result<StartInput<O>, E> {
    fn into_start_input(self) -> Result<StartInput<O>> {
        self.map_err(Into::into)
    }
}

impl StartOn {
    /// Describes that a webhook starts runs of the brain with this title.
    #[must_use]
    pub fn new<P, O, R>(
        hook: &Webhook<P>,
        brain: impl Into<String>,
        input: impl Fn(P) -> R + Send + Sync + 'static,
    ) -> Self
    where
        P: Payload + DeserializeOwned,
        O: Options,
        R: IntoStartInput<O>,
    {
        let input = move |payload: &serde_json::Value, max_bytes: usize| {
            let StartInput { options, user, tags } = input(decode("the payload", payload)?).into_start_input()?;
            let options = encode(&options, max_bytes)?;
            Ok(RunInput { options, user, tags })
        };
        Self { webhook: hook.name().to_owned(), schema: Schema::of::<P>(), brain: brain.into(), input: Arc::new(input) }
    }
}
