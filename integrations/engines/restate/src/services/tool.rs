//! The service that performs tool calls, one invocation per call.
//!
//! A nonce of the process is recorded right before the tool's function is called. If an invocation is repeated and the
//! recorded nonce is that of another process, that process ended during the call, so the call is in doubt. The worker
//! decides what follows: it records another try of a tool that may run again, under a new invocation, and after the tool's
//! retries, or for any other tool, that the call was interrupted. So a tool that ends its process is not repeated without end.

use std::sync::Arc;

use parking_lot::Mutex;
use positronic_core::runner::Runner;
use positronic_core::runner::detached::{DetachedCall, DetachedOutcome, PreparedCall};
use restate_sdk::context::{Context, ContextSideEffects as _, RunFuture as _};
use restate_sdk::discovery::ServiceType;
use restate_sdk::endpoint::{ContextInternal, Error};
use restate_sdk::errors::HandlerResult;
use restate_sdk::serde::Json;
use restate_sdk::service::{Service, ServiceDefinition};

use super::service_options::{handler, service};
use super::{Handled, again, definition, finish};
use crate::calls::OpenCalls;
use crate::names;

/// How long Restate remembers the outcome of a call. A worker that attaches later would run the tool again.
const RETENTION_MILLIS: u64 = 90 * 24 * 3_600_000;

/// Performs tool calls of a brain's runs.
#[derive(Clone)]
pub(crate) struct ToolService {
    pub(crate) runner: Runner,
    pub(crate) title: String,
    /// Identifies this process.
    pub(crate) nonce: Arc<str>,
    pub(crate) calls: Arc<OpenCalls>,
}

impl Service for ToolService {
    type Future = Handled;

    fn handle(&self, cx: ContextInternal) -> Handled {
        let service = self.clone();
        Box::pin(async move {
            match cx.handler_name() {
                "call" => {
                    let (Json(call), metadata) = cx.input::<Json<DetachedCall>>().await;
                    finish(&cx, service.call((&cx, metadata).into(), call).await)
                }
                _ => Err(Error::unknown_handler(cx.service_name(), cx.handler_name())),
            }
        })
    }
}

impl ToolService {
    pub(crate) fn definition(self) -> Result<ServiceDefinition, String> {
        let mut call = handler("call", None)?;
        call.idempotency_retention = Some(RETENTION_MILLIS);
        let about = format!("Tool calls of the brain `{}`.", self.title);
        let discovery = service(&names::tool(&self.title), ServiceType::Service, vec![call], about)?;
        Ok(definition(self, discovery))
    }

    async fn call(&self, cx: Context<'_>, call: DetachedCall) -> HandlerResult<DetachedOutcome> {
        // A replay of recorded steps prepares nothing: the run or the tool may be gone by then.
        let prepared = Arc::new(Mutex::new(None));
        let (slot, of) = (Arc::clone(&prepared), call.clone());
        let recorded = cx.run(move || async move {
            // Before the nonce, so that a call whose tool is not available yet is not in doubt.
            *slot.lock() = self.prepared(&of).await?;
            Ok(self.nonce.to_string())
        });
        let recorded = recorded.name("begin").await?;
        let is_in_doubt = *recorded != *self.nonce;
        let of = call.clone();
        // The journal may have this step already, so a call in doubt has the same steps.
        let outcome = cx.run(move || async move {
            if is_in_doubt {
                let reason = "the process of the call ended while the tool ran; whether it had its effect is unknown";
                return Ok(Json(DetachedOutcome::InDoubt { reason: reason.to_owned() }));
            }
            let ready = prepared.lock().take();
            let ready = match ready {
                Some(ready) => Some(ready),
                None => self.prepared(&of).await?,
            };
            let outcome = self.calls.outcome(&of, ready).await;
            Ok(Json(DetachedOutcome::clone(&outcome)))
        });
        let Json(outcome) = outcome.name("perform").await?;
        self.calls.forget(&call);
        Ok(outcome)
    }

    /// Prepares a call unless it runs in this process.
    async fn prepared(&self, call: &DetachedCall) -> HandlerResult<Option<PreparedCall>> {
        match self.calls.has(call) {
            true => Ok(None),
            false => self.runner.prepare_call(call.clone()).await.map(Some).map_err(again),
        }
    }
}
