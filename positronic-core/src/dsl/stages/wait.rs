//! The wait for webhooks, for a reply, or for a time: the first answer ends it.

use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::tries::Untried;
use crate::definition::{StageBody, StateValue, WaitStage, decode, encode_state};
use crate::dsl::Webhook;
use crate::dsl::brain_builder::{BrainBuilder, Phase, TakesStages};
use crate::dsl::services::Requirement;
use crate::dsl::trait_bounds::{Options, Payload, State};
use crate::dsl::usage_panic::usage_panic;
use crate::error::{Error, Result};
use crate::machine::REPLY;
use crate::record::{StageKind, Timestamp, WaitDeadline, WaitSpec, first_hidden};
use crate::tools::Schema;

/// Lists the answers for which a stage waits, in a brain with the state `S`. Each becomes an event `E`.
#[must_use = "the closure of `wait` returns it"]
#[derive_where(Debug)]
pub struct Waits<S, E> {
    answers: Vec<AwaitedAnswer<S, E>>,
    #[derive_where(skip)]
    end: Option<TimeOver<S, E>>,
    fresh: bool,
}

#[derive_where(Debug)]
struct AwaitedAnswer<S, E> {
    webhook: String,
    schema: Arc<Schema>,
    #[derive_where(skip)]
    spec: SpecFn<S>,
    #[derive_where(skip)]
    event: EventFn<E>,
}

struct TimeOver<S, E> {
    due: DueFn<S>,
    event: Box<dyn Fn() -> E + Send + Sync>,
}

/// Completes a wait with what the state says of it.
type SpecFn<S> = Box<dyn Fn(&S, WaitSpec) -> WaitSpec + Send + Sync>;
/// Makes an event of a payload.
type EventFn<E> = Box<dyn Fn(&Value) -> Result<E> + Send + Sync>;
/// Computes the end of a wait from the state and the time.
type DueFn<S> = Box<dyn Fn(&S, Timestamp) -> WaitDeadline + Send + Sync>;

impl<S: State, E: 'static> Waits<S, E> {
    /// Waits for a webhook, with the identifier that the state gives this wait.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a webhook is made where it is used: `w.on(webhook(\"slack\"), …)`"
    )]
    pub fn on<P: Payload + DeserializeOwned>(
        self,
        webhook: Webhook<P>,
        identifier: impl Fn(&S) -> String + Send + Sync + 'static,
        event: impl Fn(P) -> E + Send + Sync + 'static,
    ) -> Self {
        let spec = move |state: &S, spec| WaitSpec { identifier: identifier(state), ..spec };
        self.answer(webhook.name().to_owned(), spec, event)
    }

    /// Waits for a person's reply to a question.
    pub fn reply<P: Payload + DeserializeOwned>(
        self,
        question: impl Fn(&S) -> String + Send + Sync + 'static,
        event: impl Fn(P) -> E + Send + Sync + 'static,
    ) -> Self {
        let spec = move |state: &S, spec| WaitSpec { person: true, prompt: Some(question(state)), ..spec };
        self.answer(REPLY.to_owned(), spec, event)
    }

    fn answer<P: Payload + DeserializeOwned>(
        mut self,
        webhook: String,
        spec: impl Fn(&S, WaitSpec) -> WaitSpec + Send + Sync + 'static,
        event: impl Fn(P) -> E + Send + Sync + 'static,
    ) -> Self {
        let event = Box::new(move |payload: &Value| Ok(event(decode("the payload", payload)?)));
        self.answers.push(AwaitedAnswer { webhook, schema: Schema::of::<P>(), spec: Box::new(spec), event });
        self
    }

    /// Ends the wait after this time without an answer.
    pub fn after(self, time: Duration, event: impl Fn() -> E + Send + Sync + 'static) -> Self {
        self.due(move |_, now| WaitDeadline::after(now, time), event)
    }

    /// Ends the wait at a time without an answer.
    pub fn at(
        self,
        time: impl Fn(&S) -> Timestamp + Send + Sync + 'static,
        event: impl Fn() -> E + Send + Sync + 'static,
    ) -> Self {
        self.due(move |state, _| WaitDeadline::at(time(state)), event)
    }

    fn due(
        mut self,
        due: impl Fn(&S, Timestamp) -> WaitDeadline + Send + Sync + 'static,
        event: impl Fn() -> E + Send + Sync + 'static,
    ) -> Self {
        self.end = Some(TimeOver { due: Box::new(due), event: Box::new(event) });
        self
    }

    /// Ignores webhooks that were received before the wait began: they may answer an earlier question.
    pub const fn fresh(mut self) -> Self {
        self.fresh = true;
        self
    }

    fn begin(&self, state: &S, now: Timestamp) -> Result<(Vec<WaitSpec>, Option<WaitDeadline>)> {
        let waits = self.answers.iter().map(|answer| answer.begin(state, self.fresh)).collect::<Result<_>>()?;
        Ok((waits, self.end.as_ref().map(|end| (end.due)(state, now))))
    }

    fn event(&self, answer: Option<(u32, &Value)>) -> Result<E> {
        let unknown = || Error::new("the brain's code has no such answer");
        match answer {
            Some((index, payload)) => {
                let answer = usize::try_from(index).ok().and_then(|index| self.answers.get(index));
                (answer.ok_or_else(unknown)?.event)(payload)
            }
            None => Ok((self.end.as_ref().ok_or_else(unknown)?.event)()),
        }
    }
}

impl<S, E> AwaitedAnswer<S, E> {
    fn begin(&self, state: &S, fresh: bool) -> Result<WaitSpec> {
        let spec = WaitSpec {
            webhook: self.webhook.clone(),
            identifier: String::new(),
            fresh,
            person: false,
            prompt: None,
            schema: Arc::clone(self.schema.json()),
            expires: None,
            otherwise: None,
        };
        let spec = (self.spec)(state, spec);
        let is_reply = spec.webhook == REPLY;
        if !is_reply && spec.identifier.is_empty() {
            return Err(Error::new(format!(
                "the identifier for the webhook `{}` is empty; return one that distinguishes this wait from others",
                spec.webhook
            )));
        }
        if let Some(char) = first_hidden(&spec.identifier) {
            return Err(Error::new(format!(
                "the identifier {:?} for the webhook `{}` has the character U+{:04X}; no webhook with it is accepted",
                spec.identifier,
                spec.webhook,
                u32::from(char)
            )));
        }
        Ok(spec)
    }
}

impl<O: Options, S: State, V: Requirement + ?Sized, P: Phase> BrainBuilder<O, S, V, P> {
    /// Adds a wait for webhooks, for a person's reply, or for a time. The first of them ends it, and `next` computes the next state
    /// from its event.
    ///
    /// The identifiers, the question and the time are computed once, when the wait begins; until that is in the log, a crash
    /// lets them be computed again. While the run waits, no worker is needed. Pausing the run does not move the time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use positronic_core::prelude::*;
    /// use schemars::JsonSchema;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Order { id: String, paid: bool }
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Payment { amount: u32 }
    ///
    /// enum Event { Paid(Payment), TimedOut }
    ///
    /// let shop = brain("Shop").state(Order { id: "o-7".to_owned(), paid: false }).wait(
    ///     "Payment",
    ///     |w| {
    ///         w.on(webhook::<Payment>("payments"), |order: &Order| order.id.clone(), Event::Paid)
    ///             .after(Duration::from_hours(72), || Event::TimedOut)
    ///     },
    ///     |order, event| match event {
    ///         Event::Paid(payment) => Order { paid: payment.amount > 0, ..order },
    ///         Event::TimedOut => order,
    ///     },
    /// );
    /// # let _ = shop;
    /// ```
    ///
    /// # Panics
    ///
    /// If nothing could end the wait; or if the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    pub fn wait<E: 'static, S2: State>(
        self,
        name: &str,
        waits: impl FnOnce(Waits<S, E>) -> Waits<S, E>,
        next: impl Fn(S, E) -> S2 + Send + Sync + 'static,
    ) -> BrainBuilder<O, S2, V, P::Next<Untried>>
    where
        P: TakesStages,
    {
        let waits = waits(Waits { answers: Vec::new(), end: None, fresh: false });
        if waits.answers.is_empty() && waits.end.is_none() {
            usage_panic(&format!("nothing could end the wait `{name}`; add `.on(…)`, `.reply(…)` or `.after(…)`"));
        }
        let webhooks = waits.answers.iter().map(|answer| answer.webhook.clone()).collect();
        let waits = Arc::new(waits);
        let begun = Arc::clone(&waits);
        self.stage(
            name,
            StageBody::Wait(WaitStage {
                kind: StageKind::Wait,
                webhooks,
                begin: Arc::new(move |state, now| begun.begin(&*state.shared::<S>()?, now)),
                finish: Arc::new(move |state: &StateValue, answer| {
                    encode_state(&next(state.owned()?, waits.event(answer)?), state.max_bytes())
                }),
            }),
        )
    }
}
