//! Webhooks that start runs: their registration, and the delivery.
//!
//! ```text
//! delivery ─▶ mailbox ─▶ a run that waits ──append──▶ its answer, the webhook leaves the mailbox
//!                  └───▶ none: the options ──append──▶ BRAIN_START { delivery }, the webhook leaves the mailbox
//! ```
//!
//! The append decides, as for answers: of several processes that deliver the same webhook, the store accepts one, and the others
//! find its run. After a crash before the append, the webhook is in the mailbox, and a repeated delivery continues there. The id of
//! the run follows from that of the delivery, so that a delivery starts no second run after the mailbox has forgotten it.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::client::deliver_webhook::stored_webhook;
use super::{Client, Delivered, Runner, SignalError, StartError, start};
use crate::definition::{RunInput, StartOn};
use crate::dsl::{IntoStartInput, Payload, ProjectWebhook, Runnable, Webhook, usage_panic};
use crate::error::caught_now;
use crate::record::{Actor, EventKind, Seq, SignalId, Start, WebhookDelivery};
use crate::store::{InboundWebhook, StoreError};

/// The reason why a webhook was neither delivered nor stored, and started no run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeliveryError {
    /// A run that waits for it refuses it, or the store failed.
    #[error(transparent)]
    Signal(#[from] SignalError),
    /// The payload does not fit the type of the webhook. It is not stored, and the sender may correct it.
    #[error("the payload of the webhook `{webhook}` is invalid: {reason}")]
    Payload {
        /// The webhook.
        webhook: String,
        /// What does not fit, with its place as a JSON pointer.
        reason: String,
    },
    /// The input of the run could not be computed from the payload. The webhook is in the mailbox with the reason
    /// ([`InboundWebhook::refusal`]); the next delivery under its id tries again.
    #[error("the webhook `{webhook}` starts no run of `{brain}`: {reason}")]
    Refused {
        /// The webhook.
        webhook: String,
        /// The title of the brain.
        brain: String,
        /// The reason.
        reason: String,
    },
    /// The runner cannot start the run now. The webhook is in the mailbox; the next delivery under its id tries again.
    #[error("the webhook `{webhook}` cannot start its run: {reason}")]
    Start {
        /// The webhook.
        webhook: String,
        /// The reason.
        reason: Box<StartError>,
    },
}

impl From<StoreError> for DeliveryError {
    fn from(error: StoreError) -> Self {
        SignalError::Store(error).into()
    }
}

impl Runner {
    /// Lets a webhook start runs of a brain: a delivery for which no run waits starts one, with the options that the closure
    /// makes of the payload. It returns the brain's options, a [`StartInput`](crate::dsl::StartInput) with the user of the run,
    /// or a `Result` of one of them. The same delivery starts one run: [`Runner::deliver`]. Registers the brain, unless the runner
    /// has it.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Order { id: String, total: u32 }
    ///
    /// # fn register(runner: Runner) -> Runner {
    /// let review = brain("Review").options::<String>().step("Review", async |cx| Ok(cx.options.len()));
    /// runner.start_on(webhook("orders"), review, |order: Order| match order.total {
    ///     0 => Err(Error::new("an order without a total is not reviewed")),
    ///     _ => Ok(order.id),
    /// })
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If the webhook starts runs already, or the runner has another brain with this title.
    #[must_use]
    #[track_caller]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a webhook is made where it is used: `.start_on(webhook(\"orders\"), …)`"
    )]
    pub fn start_on<P, B, R>(self, hook: Webhook<P>, brain: B, input: impl Fn(P) -> R + Send + Sync + 'static) -> Self
    where
        P: Payload + DeserializeOwned,
        B: Runnable,
        R: IntoStartInput<B::Options>,
    {
        let definition = brain.definition();
        let start = StartOn::new::<P, B::Options, R>(&hook, &definition.title, input);
        let known = self.code.brains.get(&definition.title);
        let is_known = known.is_some_and(|known| known.fingerprint() == definition.fingerprint());
        let runner = if is_known { self } else { self.definition(definition) };
        runner.start_on_definition(Arc::new(start))
    }

    /// Lets a webhook start runs of an untyped brain, which is registered apart from it; see [`Runner::start_on`].
    ///
    /// # Panics
    ///
    /// If the webhook starts other runs already.
    #[must_use]
    #[track_caller]
    pub fn start_on_definition(mut self, start: Arc<StartOn>) -> Self {
        match self.code.starts.get(&start.webhook) {
            Some(known) if Arc::ptr_eq(known, &start) => return self,
            Some(known) => usage_panic(&format!(
                "the webhook `{}` starts runs of `{}` and of `{}`; let it start one brain, which branches",
                start.webhook, known.brain, start.brain
            )),
            None => {}
        }
        Arc::make_mut(&mut self.code).starts.insert(start.webhook.clone(), start);
        self
    }

    /// Registers the webhooks of a project, which [`webhooks!`](crate::webhooks) lists. A payload that does not fit its webhook, and for which no
    /// run waits, is refused by [`Runner::deliver`] and not stored.
    ///
    /// # Panics
    ///
    /// If the runner has a webhook of one of these names.
    #[must_use]
    #[track_caller]
    pub fn webhooks(mut self, webhooks: impl IntoIterator<Item = ProjectWebhook>) -> Self {
        let code = Arc::make_mut(&mut self.code);
        for webhook in webhooks {
            if let Some(known) = code.webhooks.insert(webhook.name().to_owned(), webhook) {
                usage_panic(&format!(
                    "the runner has two webhooks named `{}`; give one of them another name",
                    known.name()
                ));
            }
        }
        self
    }

    /// Iterates over the webhooks of the project, in the order of registration.
    pub fn project_webhooks(&self) -> impl Iterator<Item = &ProjectWebhook> {
        self.code.webhooks.values()
    }

    /// Iterates over what webhooks start, in the order of registration.
    pub fn starts(&self) -> impl Iterator<Item = &Arc<StartOn>> {
        self.code.starts.values()
    }
}

/// A delivery from outside.
pub(super) struct Arrived<'a> {
    pub(super) id: SignalId,
    pub(super) webhook: &'a str,
    pub(super) identifier: &'a str,
    pub(super) payload: Value,
    pub(super) actor: Actor,
}

/// Delivers a webhook to the run that waits for it, or starts a run.
pub(super) async fn deliver(
    runner: &Runner,
    starts: Option<&StartOn>,
    arrived: Arrived<'_>,
) -> Result<Delivered, DeliveryError> {
    let client = runner.client();
    let Arrived { id, webhook, identifier, payload, actor } = arrived;
    let Some(starts) = starts else {
        return match runner.code.webhooks.get(webhook) {
            Some(known) => known.deliver(&client, id, identifier, payload, actor).await,
            None => Ok(client.deliver(id, webhook, identifier, payload, actor).await?),
        };
    };
    if let Some(started) = started(&client, &id).await? {
        return Ok(started);
    }
    // What was refused before is tried again, with the payload of now.
    if stored_webhook(&client, &id).await?.is_some_and(|mail| mail.refusal.is_some()) {
        runner.store.discard(&id).await?;
    }
    loop {
        let delivered = client.deliver(id.clone(), webhook, identifier, payload.clone(), actor.clone()).await?;
        if let Delivered::To { .. } = delivered {
            return Ok(delivered);
        }
        // Without it in the mailbox, another process has delivered or refused it meanwhile.
        if let Some(mail) = stored_webhook(&client, &id).await? {
            return start_run(runner, starts, &mail).await;
        }
    }
}

impl ProjectWebhook {
    /// Delivers it to the run that waits for it, as [`Client::deliver`] does. If none waits, a payload that does not fit is not stored.
    ///
    /// # Errors
    ///
    /// [`DeliveryError::Payload`] if the payload does not fit and no run waits for it; [`DeliveryError::Signal`] if the run that waits refuses it, or the
    /// store fails.
    pub async fn deliver(
        &self,
        client: &Client,
        id: SignalId,
        identifier: &str,
        payload: Value,
        actor: Actor,
    ) -> Result<Delivered, DeliveryError> {
        let delivered = client.deliver(id.clone(), self.name(), identifier, payload, actor).await?;
        // A run of older code may have waited for another type. What an earlier delivery under the id has stored stays.
        if let Delivered::Kept = delivered
            && let Some(mail) = stored_webhook(client, &id).await?
            && let Err(reason) = self.check(&mail.payload)
        {
            client.store().discard(&id).await?;
            return Err(DeliveryError::Payload { webhook: self.name().to_owned(), reason });
        }
        Ok(delivered)
    }
}

/// Returns the run that an earlier delivery has started.
async fn started(client: &Client, id: &SignalId) -> Result<Option<Delivered>, StoreError> {
    let run = WebhookDelivery::run(id);
    match client.store().read(&run, Seq(0), 1).await {
        Ok(begin) => {
            let start = begin.first().and_then(|event| match &event.kind {
                EventKind::BrainStart(begin) => begin.start.as_ref(),
                _ => None,
            });
            let delivery = start.and_then(|start| start.delivery.as_ref());
            let is_same = delivery.is_some_and(|delivery| delivery.id == *id);
            Ok(is_same.then_some(Delivered::To { run, seq: Seq(0) }))
        }
        Err(StoreError::NoSuchRun { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn start_run(runner: &Runner, starts: &StartOn, mail: &InboundWebhook) -> Result<Delivered, DeliveryError> {
    let webhook = || starts.webhook.clone();
    if let Err(reason) = starts.schema.check(&mail.payload) {
        runner.store.discard(&mail.id).await?;
        return Err(DeliveryError::Payload { webhook: webhook(), reason });
    }
    let input = caught_now(|| (starts.input)(&mail.payload, runner.settings.max_document_bytes));
    let RunInput { options, user, tags } = match input {
        Ok(input) => input,
        Err(error) => return refuse(runner, starts, mail, error.to_string()).await,
    };
    let Some(definition) = runner.definition_of(&starts.brain) else {
        return refuse(runner, starts, mail, "this runner does not know the brain".to_owned()).await;
    };
    let delivery =
        WebhookDelivery { id: mail.id.clone(), webhook: mail.webhook.clone(), identifier: mail.identifier.clone() };
    let run = WebhookDelivery::run(&mail.id);
    let id = Some(SignalId::new(run.as_str()));
    let start = Start { id, user, tags, actor: mail.actor.clone(), delivery: Some(delivery), ..Start::default() };
    match start::start(runner, definition, options, start, start::TakenOver::default()).await {
        Ok(_) => Ok(Delivered::To { run, seq: Seq(0) }),
        // A run that began to wait for it meanwhile has it, or the same delivery has started its run elsewhere.
        Err(StartError::Store(StoreError::Taken { run, seq, .. })) => Ok(Delivered::To { run, seq }),
        Err(StartError::Store(error)) => Err(error.into()),
        Err(reason @ (StartError::Leaves | StartError::Action(_))) => {
            Err(DeliveryError::Start { webhook: webhook(), reason: Box::new(reason) })
        }
        Err(refused) => refuse(runner, starts, mail, refused.to_string()).await,
    }
}

/// Stores the reason with the webhook, where people find it.
async fn refuse(
    runner: &Runner,
    starts: &StartOn,
    mail: &InboundWebhook,
    reason: String,
) -> Result<Delivered, DeliveryError> {
    tracing::warn!(webhook = %mail.webhook, id = %mail.id, brain = %starts.brain, %reason, "a webhook started no run");
    let refused = InboundWebhook { refusal: Some(reason.clone()), ..mail.clone() };
    runner.store.discard(&mail.id).await?;
    runner.store.post(&refused).await?;
    Err(DeliveryError::Refused { webhook: starts.webhook.clone(), brain: starts.brain.clone(), reason })
}
