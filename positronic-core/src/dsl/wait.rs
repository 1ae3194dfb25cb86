//! Waits: what a call can wait for after it has done its part.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::bounds::State;
use super::usage_panic::usage_panic;
use crate::definition::{OutputFn, StateValue, WaitDefinition, encode};
use crate::error::{Error, Result};
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
/// let wait = slack().on::<()>("thread-7");
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
        usage_panic(
            "no webhook can be named `reply`: `cx.result(…).wait_for_reply(…)` waits for a reply to the call itself",
        );
    }
    Webhook::new(name)
}

impl<P: JsonSchema + 'static> Webhook<P> {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), payload: PhantomData }
    }

    /// Waits for this webhook with an identifier that tells this wait from others.
    ///
    /// # Panics
    ///
    /// When the identifier is empty: a webhook without one would answer every wait that forgot its own.
    #[track_caller]
    pub fn on<S>(&self, identifier: impl Into<String>) -> Wait<S, P> {
        let identifier = identifier.into();
        if identifier.is_empty() {
            usage_panic(&format!(
                "the webhook `{}` is waited for with an empty identifier; pass what tells this wait from others, such as the \
                 id of the thread",
                self.name
            ));
        }
        Wait::new(self.name.clone(), identifier)
    }
}

impl<P> fmt::Debug for Webhook<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Webhook").field(&self.name).finish()
    }
}

/// One thing that a call waits for: a payload `P`, in a loop whose brain has the state `S`.
///
/// [`Wait::resume`] says what the payload does to the state, and forgets its type, so that waits for several webhooks stand in
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
pub struct Wait<S, P = Resumed> {
    terms: Terms,
    types: PhantomData<fn(S) -> P>,
}

/// The payload of a wait that says with [`Wait::resume`] what to do with it.
#[derive(Debug)]
pub struct Resumed(());

/// The payload of a wait whose type is forgotten with [`Wait::untyped`].
#[derive(Debug)]
pub struct Untyped(());

/// Says that a wait leaves its payload to the call's result. A wait with [`Wait::resume`] does not.
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

/// What is waited for, without the types.
#[derive(Clone)]
pub(super) struct Terms {
    webhook: String,
    identifier: String,
    schema: Arc<Schema>,
    person: bool,
    prompt: Option<String>,
    timeout: Option<Duration>,
    otherwise: Option<Result<Value, String>>,
    resume: Option<OutputFn>,
}

impl<S, P: JsonSchema + 'static> Wait<S, P> {
    fn new(webhook: String, identifier: String) -> Self {
        let schema = Schema::of::<P>();
        let (person, prompt, timeout, otherwise, resume) = (false, None, None, None, None);
        let terms = Terms { webhook, identifier, schema, person, prompt, timeout, otherwise, resume };
        Self { terms, types: PhantomData }
    }

    /// Waits for a reply that is addressed to the call itself, from a person who is asked `prompt`.
    pub fn reply(prompt: impl Into<String>) -> Self {
        Self::new(crate::machine::REPLY.to_owned(), String::new()).person().prompt(prompt)
    }
}

impl<S: State, P: DeserializeOwned + 'static> Wait<S, P> {
    /// Changes the state by the payload when it has come. Say it last, and the types of both are known.
    ///
    /// The closure captures nothing: after a restart it is found again by running the closure of
    /// [`ToolBuilder::wait`](super::ToolBuilder::wait) once more, with the arguments of the call and the state of that moment.
    /// Where it panics, the call is an error, and the state stays.
    pub fn resume(self, resume: fn(&mut S, P)) -> Wait<S> {
        let mut terms = self.terms;
        terms.resume = Some(Arc::new(move |state: &StateValue, payload: &Value| {
            let payload = P::deserialize(payload).map_err(|error| {
                Error::new(format!("cannot decode the payload as `{}`: {error}", std::any::type_name::<P>()))
            })?;
            state.updated(|state| resume(state, payload))
        }));
        Wait { terms, types: PhantomData }
    }
}

impl<S, P> Wait<S, P> {
    /// Says that a person answers, rather than a machine.
    pub const fn person(mut self) -> Self {
        self.terms.person = true;
        self
    }

    /// Says what the one who answers is asked.
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.terms.prompt = Some(prompt.into());
        self
    }

    /// Ends the wait after this time; the call is then an error, unless [`Wait::otherwise`] gives it a result.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.terms.timeout = Some(timeout);
        self
    }

    /// Gives the call this result when the time is up.
    pub fn otherwise(mut self, result: impl Serialize) -> Self {
        self.terms.otherwise = Some(encode(&result).map_err(|error| error.to_string()));
        self
    }

    pub(super) fn into_terms(self) -> Terms {
        self.terms
    }

    /// Forgets the payload's type.
    pub(crate) fn erased(self) -> Wait<S> {
        Wait { terms: self.terms, types: PhantomData }
    }
}

impl<S, P: Unresumed> Wait<S, P> {
    /// Forgets the payload's type, so that waits for several webhooks stand in one list. The payload is checked all the same.
    pub fn untyped(self) -> Wait<S, Untyped> {
        Wait { terms: self.terms, types: PhantomData }
    }
}

impl<S, P> Clone for Wait<S, P> {
    fn clone(&self) -> Self {
        Self { terms: self.terms.clone(), types: PhantomData }
    }
}

impl Terms {
    pub(super) fn into_definition(self) -> Result<WaitDefinition> {
        let spec = WaitSpec {
            webhook: self.webhook,
            identifier: self.identifier,
            person: self.person,
            prompt: self.prompt,
            schema: Arc::clone(self.schema.json()),
            expires: None,
            otherwise: self.otherwise.transpose().map_err(Error::new)?,
        };
        Ok(WaitDefinition { spec, valid_for: self.timeout, resume: self.resume })
    }
}

impl<S, P> fmt::Debug for Wait<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.terms.fmt(f)
    }
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait")
            .field("webhook", &self.webhook)
            .field("identifier", &self.identifier)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
