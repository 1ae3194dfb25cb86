//! Tool calls as invocations of Restate: the side of the worker.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::runner::detached::{DetachedCall, DetachedOutcome, ToolExecutor};

use crate::client::ClientError;
use crate::ingress::Ingress;
use crate::names;

/// The longest pause between two attempts to reach the ingress.
const PAUSE: Duration = Duration::from_secs(5);

/// Calls the service that performs tool calls.
#[derive(Debug, Clone)]
pub(crate) struct Invocations {
    pub(crate) ingress: Ingress,
    /// The tools that run with their run.
    pub(crate) local: HashSet<String>,
}

impl ToolExecutor for Invocations {
    fn takes(&self, call: &DetachedCall) -> bool {
        !self.local.contains(&call.tool)
    }

    fn execute(&self, call: DetachedCall) -> BoxFuture<'static, DetachedOutcome> {
        let ingress = self.ingress.clone();
        Box::pin(async move {
            let (service, key) = (names::tool(&call.brain), names::call_key(&call));
            let mut pause = Duration::from_millis(50);
            loop {
                let reason = match ingress.call(&[&service, "call"], &call, Some(&key)).await {
                    Ok(outcome) => return outcome,
                    // An operator has ended the invocation.
                    Err(ClientError::Failed { status, reason }) => {
                        let reason = format!("Restate ended the call ({status}): {reason}");
                        return DetachedOutcome::InDoubt { reason };
                    }
                    // A retry makes the same request. An earlier process may have made it under another configuration.
                    Err(error @ ClientError::Input { .. }) => {
                        return DetachedOutcome::InDoubt { reason: error.to_string() };
                    }
                    Err(error) => error.to_string(),
                };
                // The same key attaches to the same invocation, so a retry is safe.
                tracing::warn!(run = %call.run, path = %call.path, reason, "cannot reach Restate; retrying");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE);
            }
        })
    }
}
