//! The service that receives webhooks and delivers each to the run that waits for it.

use positronic_core::runner::{Runner, SignalError};
use restate_sdk::context::{Context, ContextClient as _, ContextSideEffects as _, RequestTarget, RunFuture as _};
use restate_sdk::discovery::ServiceType;
use restate_sdk::endpoint::{ContextInternal, Error};
use restate_sdk::errors::HandlerResult;
use restate_sdk::serde::Json;
use restate_sdk::service::{Service, ServiceDefinition};

use super::service_options::{handler, service};
use super::{Handled, again, definition, finish};
use crate::names;
use crate::payloads::{DeliverRequest, DeliveryOutput, WakeRequest};

/// Delivers webhooks.
#[derive(Clone)]
pub(crate) struct WebhookService {
    pub(crate) runner: Runner,
    pub(crate) title: String,
}

impl Service for WebhookService {
    type Future = Handled;

    fn handle(&self, cx: ContextInternal) -> Handled {
        let service = self.clone();
        Box::pin(async move {
            match cx.handler_name() {
                "deliver" => {
                    let (Json(request), metadata) = cx.input::<Json<DeliverRequest>>().await;
                    finish(&cx, service.deliver((&cx, metadata).into(), request).await)
                }
                _ => Err(Error::unknown_handler(cx.service_name(), cx.handler_name())),
            }
        })
    }
}

impl WebhookService {
    pub(crate) fn definition(self) -> Result<ServiceDefinition, String> {
        let handlers = vec![handler("deliver", None)?];
        let about = format!("Webhooks for the brain `{}`.", self.title);
        let discovery = service(&names::webhook(&self.title), ServiceType::Service, handlers, about)?;
        Ok(definition(self, discovery))
    }

    async fn deliver(&self, cx: Context<'_>, request: DeliverRequest) -> HandlerResult<DeliveryOutput> {
        let client = self.runner.client();
        let delivered = cx.run(move || async move {
            let DeliverRequest { id, webhook, identifier, payload, actor } = request;
            match client.deliver(id, &webhook, &identifier, payload, actor).await {
                Ok(delivered) => {
                    let delivery = DeliveryOutput::from(delivered);
                    let DeliveryOutput::To { run, .. } = &delivery else { return Ok(Json((delivery, String::new()))) };
                    let brain = client.store().run(run).await.map_err(again)?.brain.to_string();
                    Ok(Json((delivery, brain)))
                }
                Err(SignalError::Store(error)) => Err(again(error)),
                Err(refused) => Ok(Json((DeliveryOutput::Refused { reason: refused.to_string() }, String::new()))),
            }
        });
        let Json((delivery, brain)) = delivered.name("append").await?;
        if let DeliveryOutput::To { run, seq } = &delivery {
            let target = RequestTarget::workflow(names::workflow(&brain), run.as_str(), "wake");
            let wake = Json(WakeRequest { next: seq.next() });
            cx.request::<Json<WakeRequest>, Json<()>>(target, wake).send();
        }
        Ok(delivery)
    }
}
