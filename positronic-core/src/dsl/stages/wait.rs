//! The wait for webhooks or replies, or for a time: the first answer ends it.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::alternatives::Alternatives;
use super::event::SameEvent;
use super::tries::Untried;
use crate::definition::{StageBody, StateValue, WaitStage, decode, encode_state};
use crate::dsl::Webhook;
use crate::dsl::brain_builder::{BrainBuilder, Phase, TakesStages};
use crate::dsl::services::Requirement;
use crate::dsl::trait_bounds::{Options, Payload, State};
use crate::error::{Error, Result};
use crate::machine::REPLY;
use crate::record::{StageKind, Timestamp, WaitDeadline, WaitSpec, first_hidden};
use crate::tools::Schema;

/// Begins the wait of a stage, in a brain with the state `S`: with a webhook or a reply, which [`Waits::or`] puts together.
#[derive_where(Clone, Copy, Debug)]
pub struct WaitFor<S>(PhantomData<fn(S)>);

/// The answers for which a stage waits, in a brain with the state `S`. The first of them, or the end of the time, becomes an `E`: the
/// payload of the webhook, or what [`to`](Self::to) makes of it.
#[must_use = "the closure of `wait` returns it"]
#[derive_where(Debug)]
pub struct Waits<S, E> {
    answers: Alternatives<AwaitedAnswer<S>, DueFn<S>, E>,
}

#[derive_where(Debug)]
struct AwaitedAnswer<S> {
    webhook: String,
    schema: Arc<Schema>,
    fresh: bool,
    #[derive_where(skip)]
    spec: SpecFn<S>,
}

/// Completes a wait with what the state says of it.
type SpecFn<S> = Box<dyn Fn(&S, WaitSpec) -> WaitSpec + Send + Sync>;
/// Computes the end of a wait from the state and the time.
type DueFn<S> = Box<dyn Fn(&S, Timestamp) -> WaitDeadline + Send + Sync>;

const ONE_TIME: &str = "a wait has one time; remove `.within(…)`, `.after(…)` or `.at(…)` until one is left";

impl<S: State> WaitFor<S> {
    /// Waits for a webhook, with the identifier that the state gives this wait.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a webhook is made where it is used: `w.on(webhook(\"slack\"), …)`"
    )]
    pub fn on<P: Payload + DeserializeOwned>(
        self,
        webhook: Webhook<P>,
        identifier: impl Fn(&S) -> String + Send + Sync + 'static,
    ) -> Waits<S, P> {
        let spec = move |state: &S, spec| WaitSpec { identifier: identifier(state), ..spec };
        Waits::answer(webhook.name().to_owned(), spec)
    }

    /// Waits for a person's reply to a question.
    pub fn reply<P: Payload + DeserializeOwned>(
        self,
        question: impl Fn(&S) -> String + Send + Sync + 'static,
    ) -> Waits<S, P> {
        let spec = move |state: &S, spec| WaitSpec { person: true, prompt: Some(question(state)), ..spec };
        Waits::answer(REPLY.to_owned(), spec)
    }
}

impl<S: State, P: Payload + DeserializeOwned> Waits<S, P> {
    fn answer(webhook: String, spec: impl Fn(&S, WaitSpec) -> WaitSpec + Send + Sync + 'static) -> Self {
        let answer = AwaitedAnswer { webhook, schema: Schema::of::<P>(), fresh: false, spec: Box::new(spec) };
        Self { answers: Alternatives::one(answer, |payload| decode("the payload", payload)) }
    }
}

impl<S: State, E: 'static> Waits<S, E> {
    /// Makes another event of each answer and of the end of the time, such as a variant of an enum.
    pub fn to<E2: 'static>(self, event: impl Fn(E) -> E2 + Send + Sync + 'static) -> Waits<S, E2> {
        Waits { answers: self.answers.to(event) }
    }

    /// Waits for these answers, too; the first of all ends the wait.
    ///
    /// # Panics
    ///
    /// If both have a time.
    #[track_caller]
    pub fn or<E2: SameEvent<E>>(self, other: Waits<S, E2>) -> Self {
        Self { answers: self.answers.or(other.answers.to(E2::same), ONE_TIME) }
    }

    /// Ends the wait after this time without an answer, as `None`; an answer becomes `Some`.
    ///
    /// # Panics
    ///
    /// If the wait has a time.
    #[track_caller]
    pub fn within(self, time: Duration) -> Waits<S, Option<E>> {
        self.to(Some).after(time, || None)
    }

    /// Ends the wait after this time without an answer, with an event.
    ///
    /// # Panics
    ///
    /// If the wait has a time.
    #[track_caller]
    pub fn after(self, time: Duration, event: impl Fn() -> E + Send + Sync + 'static) -> Self {
        let due: DueFn<S> = Box::new(move |_, now| WaitDeadline::after(now, time));
        Self { answers: self.answers.end(due, event, ONE_TIME) }
    }

    /// Ends the wait at a time without an answer, with an event.
    ///
    /// # Panics
    ///
    /// If the wait has a time.
    #[track_caller]
    pub fn at(
        self,
        time: impl Fn(&S) -> Timestamp + Send + Sync + 'static,
        event: impl Fn() -> E + Send + Sync + 'static,
    ) -> Self {
        let due: DueFn<S> = Box::new(move |state, _| WaitDeadline::at(time(state)));
        Self { answers: self.answers.end(due, event, ONE_TIME) }
    }

    /// Ignores webhooks that were received before the wait began: they may answer an earlier question.
    pub fn fresh(mut self) -> Self {
        self.answers.members.iter_mut().for_each(|answer| answer.fresh = true);
        self
    }

    fn begin(&self, state: &S, now: Timestamp) -> Result<(Vec<WaitSpec>, Option<WaitDeadline>)> {
        let waits = self.answers.members.iter().map(|answer| answer.begin(state)).collect::<Result<_>>()?;
        Ok((waits, self.answers.time().map(|due| due(state, now))))
    }

    fn event(&self, answer: Option<(u32, &Value)>) -> Result<E> {
        self.answers.event(answer).ok_or_else(|| Error::new("the brain's code has no such answer"))?
    }
}

impl<S> AwaitedAnswer<S> {
    fn begin(&self, state: &S) -> Result<WaitSpec> {
        let spec = WaitSpec {
            webhook: self.webhook.clone(),
            identifier: String::new(),
            fresh: self.fresh,
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
    /// Adds a wait for a webhook or a person's reply, or for the first of several. `next` computes the next state from its payload.
    ///
    /// The identifier, the question and the time are computed once, when the wait begins; until that is in the log, a crash
    /// lets them be computed again. While the run waits, no worker is needed. Pausing the run does not move the time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use positronic_core::prelude::*;
    /// use schemars::JsonSchema;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Order { id: String, paid: u32 }
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Payment { amount: u32 }
    ///
    /// let shop = brain("Shop").state(Order { id: "o-7".to_owned(), paid: 0 }).wait(
    ///     "Payment",
    ///     |w| w.on(webhook::<Payment>("payments"), |order| order.id.clone()).within(Duration::from_hours(72)),
    ///     |order, payment| match payment {
    ///         Some(Payment { amount }) => Order { paid: amount, ..order },
    ///         None => order,
    ///     },
    /// );
    /// # let _ = shop;
    /// ```
    ///
    /// Of several, each becomes a variant of an enum:
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use positronic_core::prelude::*;
    /// # use schemars::JsonSchema;
    /// # use serde::Deserialize;
    /// # #[derive(Deserialize, JsonSchema)]
    /// # struct Payment { amount: u32 }
    /// # #[derive(Deserialize, JsonSchema)]
    /// # struct Refusal { reason: String }
    /// enum Bank { Paid(Payment), Refused(Refusal), Silent }
    ///
    /// let shop = brain("Shop").state("o-7".to_owned()).wait(
    ///     "Payment",
    ///     |w| {
    ///         w.on(webhook("paid"), String::clone)
    ///             .to(Bank::Paid)
    ///             .or(w.on(webhook("refused"), String::clone).to(Bank::Refused))
    ///             .after(Duration::from_hours(72), || Bank::Silent)
    ///     },
    ///     |order, bank| match bank {
    ///         Bank::Paid(Payment { amount }) => format!("{amount} paid for {order}"),
    ///         Bank::Refused(Refusal { reason }) => reason,
    ///         Bank::Silent => "no answer".to_owned(),
    ///     },
    /// );
    /// # let _ = shop;
    /// ```
    ///
    /// # Panics
    ///
    /// If the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    pub fn wait<E: 'static, S2: State>(
        self,
        name: &str,
        waits: impl FnOnce(WaitFor<S>) -> Waits<S, E>,
        next: impl Fn(S, E) -> S2 + Send + Sync + 'static,
    ) -> BrainBuilder<O, S2, V, P::Next<Untried>>
    where
        P: TakesStages,
    {
        let waits = waits(WaitFor(PhantomData));
        let webhooks = waits.answers.members.iter().map(|answer| answer.webhook.clone()).collect();
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
