//! Waits: what a call can wait for after it has done its part.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::mistake::mistake;
use crate::error::{Error, Result};
use crate::plan::{PlannedWait, encode};
use crate::record::WaitSpec;
use crate::tools::Schema;

/// A webhook as a value: a name, and the type of its payload. A payload that does not fit the type is refused.
///
/// ```
/// use positronic_core::prelude::*;
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct SlackMessage { text: String }
///
/// fn slack() -> Webhook<SlackMessage> {
///     webhook("slack")
/// }
/// let wait = slack().on("thread-7");
/// # let _ = wait;
/// ```
pub struct Webhook<P> {
    name: String,
    payload: PhantomData<fn() -> P>,
}

/// Makes a webhook with this name.
///
/// # Panics
///
/// When the name is `reply`, which stands for an answer that is addressed to a call itself.
#[track_caller]
#[must_use]
pub fn webhook<P: JsonSchema + 'static>(name: &str) -> Webhook<P> {
    if name == crate::machine::REPLY {
        mistake(
            "no webhook can be named `reply`: `cx.result(…).wait_for_reply(…)` waits for a reply to the call itself",
        );
    }
    Webhook::new(name)
}

impl<P: JsonSchema + 'static> Webhook<P> {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), payload: PhantomData }
    }

    /// Waits for this webhook with an identifier that tells this wait from others.
    pub fn on(&self, identifier: impl Into<String>) -> Wait {
        Wait {
            webhook: self.name.clone(),
            identifier: identifier.into(),
            schema: Schema::of::<P>(),
            person: false,
            prompt: None,
            timeout: None,
            otherwise: None,
        }
    }
}

impl<P> fmt::Debug for Webhook<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Webhook").field(&self.name).finish()
    }
}

/// One thing that a call waits for.
#[derive(Debug, Clone)]
#[must_use = "a wait has its effect when a tool returns it"]
pub struct Wait {
    webhook: String,
    identifier: String,
    schema: Arc<Schema>,
    person: bool,
    prompt: Option<String>,
    timeout: Option<Duration>,
    otherwise: Option<Result<Value, String>>,
}

impl Wait {
    /// Says that a person answers, rather than a machine.
    pub const fn person(mut self) -> Self {
        self.person = true;
        self
    }

    /// Says what the one who answers is asked.
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = Some(prompt.into());
        self
    }

    /// Ends the wait after this time; the call is then an error, unless [`Wait::otherwise`] gives it a result.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Gives the call this result when the time is up.
    pub fn otherwise(mut self, result: impl Serialize) -> Self {
        self.otherwise = Some(encode(&result).map_err(|error| error.to_string()));
        self
    }

    pub(super) fn into_plan(self) -> Result<PlannedWait> {
        let spec = WaitSpec {
            webhook: self.webhook,
            identifier: self.identifier,
            person: self.person,
            prompt: self.prompt,
            schema: Arc::clone(self.schema.json()),
            expires: None,
            otherwise: self.otherwise.transpose().map_err(Error::new)?,
        };
        Ok(PlannedWait { spec, valid_for: self.timeout })
    }
}
