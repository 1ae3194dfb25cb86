//! Waits of a call after the tool has run.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::trait_bounds::{Payload, State};
use super::usage_panic::usage_panic;
use crate::definition::{OutputFn, StateValue, WaitDefinition, decode, encode, recordable};
use crate::error::{Error, Result};
use crate::record::{WaitSpec, first_hidden};
use crate::tools::Schema;

/// A webhook as a value: a name, and the type of its payload. Payloads that do not match are rejected.
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
/// let wait = slack().on::<()>("thread-7");
/// # let _ = wait;
/// ```
#[derive_where(Clone, Debug)]
pub struct Webhook<P> {
    name: String,
    payload: PhantomData<fn() -> P>,
}

/// Creates a webhook with this name.
///
/// # Panics
///
/// If the name is `reply`, which is reserved for replies to a call itself, or `run`, for the ends of child runs.
#[track_caller]
#[must_use]
pub fn webhook<P: Payload>(name: &str) -> Webhook<P> {
    if name == crate::machine::REPLY {
        usage_panic(
            "a webhook cannot be named `reply`: `cx.result(…).wait_for_reply(…)` waits for a reply to the call itself",
        );
    }
    if name == WaitSpec::CHILD {
        usage_panic("a webhook cannot be named `run`: `.join(…)` waits for the end of a child run");
    }
    Webhook::new(name)
}

impl<P: Payload> Webhook<P> {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), payload: PhantomData }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Waits for this webhook with an identifier that distinguishes this wait from others.
    ///
    /// # Panics
    ///
    /// If the identifier is empty: a webhook without one would answer every wait that forgot its own. Or if it has a
    /// character that is not displayed, which no webhook may have.
    #[track_caller]
    pub fn on<S>(&self, identifier: impl Into<String>) -> Wait<S, P> {
        let identifier = identifier.into();
        if identifier.is_empty() {
            usage_panic(&format!(
                "the webhook `{}` has a wait with an empty identifier; pass one that distinguishes this wait from others, such as the \
                 id of the thread",
                self.name
            ));
        }
        if let Some(char) = first_hidden(&identifier) {
            usage_panic(&format!(
                "the webhook `{}` has a wait with the identifier {identifier:?}, which has the character U+{:04X}; no webhook \
                 with it is accepted",
                self.name,
                u32::from(char)
            ));
        }
        Wait::new(self.name.clone(), identifier)
    }
}

/// A wait of a call for a payload `P`, in a loop whose brain has the state `S`.
///
/// [`Wait::resume`] applies the payload to the state and erases its type, so that waits for several webhooks fit in
/// one list:
///
/// ```
/// # use positronic_core::prelude::*;
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Default, Serialize, Deserialize)]
/// # struct Ticket { answers: Vec<String>, calls: u32 }
/// #[derive(Deserialize, JsonSchema)]
/// struct SlackMessage { text: String }
/// #[derive(Deserialize, JsonSchema)]
/// struct PhoneCall { minutes: u32 }
///
/// # let _ = brain("Support").state(Ticket::default()).r#loop("Chat", |cx| cx.system("Help.").tool("ask", |t| {
/// t.wait(|_: &NoArgs, _| [
///     webhook::<SlackMessage>("slack").on("thread-7").resume(|ticket, message| ticket.answers.push(message.text)),
///     webhook::<PhoneCall>("phone").on("thread-7").resume(|ticket, call| ticket.calls += call.minutes),
/// ])
/// # .execute(async |_, _| Ok("asked"))
/// # }));
/// ```
#[must_use = "a wait has its effect when a tool returns it"]
#[derive_where(Clone, Debug)]
pub struct Wait<S, P = Resumed> {
    terms: Terms,
    types: PhantomData<fn(S) -> P>,
}

/// Marks a wait with a handler for its payload ([`Wait::resume`]).
#[derive(Debug)]
pub struct Resumed(());

/// Marks a wait whose payload type is erased with [`Wait::untyped`].
#[derive(Debug)]
pub struct Untyped(());

/// A wait without [`Wait::resume`], whose payload only goes into the call's result.
#[diagnostic::on_unimplemented(
    message = "a wait with `.resume(…)` cannot stand here",
    label = "`.resume(…)` has no effect in `cx.result(…).wait_for(…)`",
    note = "the tool's function does not run again after a restart, so its closures would be lost; name such a wait with the \
            tool's `.wait(|args, cx| [hook.on(id).resume(…)])`"
)]
pub trait Unresumed {}

impl Unresumed for Untyped {}

#[diagnostic::do_not_recommend]
impl<P: JsonSchema> Unresumed for P {}

/// An untyped wait.
#[derive(Clone)]
#[derive_where(Debug)]
pub(super) struct Terms {
    webhook: String,
    identifier: String,
    schema: Arc<Schema>,
    person: bool,
    prompt: Option<String>,
    timeout: Option<Duration>,
    otherwise: Option<Result<Value, String>>,
    fresh: bool,
    #[derive_where(skip)]
    resume: Option<OutputFn>,
}

impl<S, P: Payload> Wait<S, P> {
    fn new(webhook: String, identifier: String) -> Self {
        let schema = Schema::of::<P>();
        let (person, prompt, timeout, otherwise, fresh, resume) = (false, None, None, None, false, None);
        let terms = Terms { webhook, identifier, schema, person, prompt, timeout, otherwise, fresh, resume };
        Self { terms, types: PhantomData }
    }

    /// Waits for a reply to the call itself, from a person who is asked `prompt`.
    pub fn reply(prompt: impl Into<String>) -> Self {
        Self::new(crate::machine::REPLY.to_owned(), String::new()).person().prompt(prompt)
    }
}

impl<S: State, P: DeserializeOwned + 'static> Wait<S, P> {
    /// Applies the payload to the state. Call it last, so that both types are known.
    ///
    /// The closure must not capture anything: after a restart it is found by calling the closure of
    /// [`ToolBuilder::wait`](super::ToolBuilder::wait) again, with the arguments of the call and the current state.
    /// If it panics, the call is an error, and the state stays.
    pub fn resume(self, resume: fn(&mut S, P)) -> Wait<S> {
        let mut terms = self.terms;
        terms.resume = Some(Arc::new(move |state: &StateValue, payload: &Value| {
            let payload = decode("the payload", payload)?;
            state.updated(|state| resume(state, payload))
        }));
        Wait { terms, types: PhantomData }
    }
}

impl<S, P> Wait<S, P> {
    /// Declares that a person answers, and not a program.
    pub const fn person(mut self) -> Self {
        self.terms.person = true;
        self
    }

    /// Sets the question to the answering person.
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.terms.prompt = Some(prompt.into());
        self
    }

    /// Ignores webhooks that were received before the wait began: they may answer an earlier question.
    pub const fn fresh(mut self) -> Self {
        self.terms.fresh = true;
        self
    }

    /// Sets how long to wait; afterwards the call is an error, unless [`Wait::otherwise`] sets a result.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.terms.timeout = Some(timeout);
        self
    }

    /// Sets the result of the call after the timeout.
    pub fn otherwise(mut self, result: impl Serialize) -> Self {
        self.terms.otherwise = Some(encode(&result, usize::MAX).map_err(|error| error.to_string()));
        self
    }

    pub(super) fn into_terms(self) -> Terms {
        self.terms
    }

    /// Erases the payload's type of a wait with or without a handler, for [`ToolBuilder::wait`](super::ToolBuilder::wait).
    pub fn erased(self) -> Wait<S> {
        Wait { terms: self.terms, types: PhantomData }
    }
}

impl<S, P: Unresumed> Wait<S, P> {
    /// Erases the payload's type, so that waits for several webhooks fit in one list. The payload is still validated.
    pub fn untyped(self) -> Wait<S, Untyped> {
        Wait { terms: self.terms, types: PhantomData }
    }
}

impl Terms {
    pub(super) fn into_definition(self, max_bytes: usize) -> Result<WaitDefinition> {
        let otherwise = self.otherwise.transpose().map_err(Error::new)?;
        otherwise.iter().try_for_each(|result| recordable("the result after the timeout", result, max_bytes))?;
        let spec = WaitSpec {
            webhook: self.webhook,
            identifier: self.identifier,
            fresh: self.fresh,
            person: self.person,
            prompt: self.prompt,
            schema: Arc::clone(self.schema.json()),
            expires: None,
            otherwise,
        };
        Ok(WaitDefinition { spec, valid_for: self.timeout, resume: self.resume })
    }
}
