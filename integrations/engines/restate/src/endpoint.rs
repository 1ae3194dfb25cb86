//! Endpoint: the process that Restate calls.

use std::collections::HashSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use positronic_core::definition::BrainDefinition;
use positronic_core::dsl::Runnable;
use positronic_core::runner::{Ids as _, Runner, UuidIds};
use tokio::net::TcpListener;

use crate::calls::OpenCalls;
use crate::executor::Invocations;
use crate::http2_server::accept;
use crate::ingress::Ingress;
use crate::names;
use crate::services::{BrainService, ToolService, WebhookService};
use crate::waker::Waker;

/// Serves brains to Restate.
///
/// Register its address with Restate once, and again when a brain is added or removed:
/// `curl restate:9070/deployments --json '{"uri": "http://support.internal:9080"}'`. The workflow of a brain has the name of
/// its title in camel case: `SupportAgent` for `Support Agent`.
#[derive(Debug, Clone)]
#[must_use = "an endpoint serves when `serve` is called"]
pub struct Endpoint {
    runner: Runner,
    ingress: Ingress,
    brains: Vec<Arc<BrainDefinition>>,
    local: HashSet<String>,
    identity_keys: Vec<String>,
    grace: Duration,
}

/// How long invocations in flight may take after a stop, as [`Runner::release`] waits by default.
const GRACE: Duration = Duration::from_secs(8);

/// The reason why an endpoint cannot serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// Two brains have a service of the same name in Restate.
    #[error("the brains `{first}` and `{second}` both have the service `{name}` of Restate; rename one of them")]
    SameName {
        /// A brain.
        first: String,
        /// Another one.
        second: String,
        /// The name of the service.
        name: String,
    },
    /// Restate does not accept the name of a brain.
    #[error("the brain `{brain}` cannot be a service of Restate: {reason}")]
    Name {
        /// The brain.
        brain: String,
        /// What is wrong with its name.
        reason: String,
    },
    /// An identity key is invalid.
    #[error("invalid identity key: {reason}")]
    IdentityKey {
        /// What is wrong with it.
        reason: String,
    },
}

impl Endpoint {
    /// Creates an endpoint over a runner whose store all processes share, and the URL of Restate's ingress, such as
    /// `http://restate:8080`. Tool calls and wake-ups go through the ingress.
    pub fn new(runner: Runner, ingress: &str) -> Self {
        let (brains, local) = (Vec::new(), HashSet::new());
        Self { runner, ingress: Ingress::new(ingress), brains, local, identity_keys: Vec::new(), grace: GRACE }
    }

    /// Adds a brain.
    ///
    /// # Panics
    ///
    /// If there is another brain with this title.
    #[track_caller]
    pub fn brain(mut self, brain: impl Runnable) -> Self {
        let definition = brain.definition();
        self.runner = self.runner.definition(Arc::clone(&definition));
        self.brains.push(definition);
        self
    }

    /// Sets the bearer token for the ingress.
    pub fn token(self, token: impl Into<String>) -> Self {
        Self { ingress: self.ingress.token(token.into()), ..self }
    }

    /// Lets the calls of a tool run in the process that drives the run, instead of as invocations of their own. Good for
    /// tools that take less time than an invocation, a few milliseconds, and for parallel calls that change the same
    /// place of the state.
    pub fn local(mut self, tool: impl Into<String>) -> Self {
        self.local.insert(tool.into());
        self
    }

    /// Accepts only requests that Restate has signed with a key, such as `publickeyv1_…`. Without a key, the endpoint
    /// accepts every request, so only Restate may reach it.
    pub fn identity_key(mut self, key: impl Into<String>) -> Self {
        self.identity_keys.push(key.into());
        self
    }

    /// Sets how long [`Endpoint::serve_until`] waits for tool calls in flight: eight seconds by default, because a
    /// container has ten after the signal to stop.
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Serves until the future is dropped.
    ///
    /// # Errors
    ///
    /// [`EndpointError`] before the first connection is accepted.
    pub async fn serve(self, listener: TcpListener) -> Result<(), EndpointError> {
        self.serve_until(listener, pending()).await
    }

    /// Serves until `stop` is ready. Then the process gets no new invocations, tool calls in flight may end, and the runs of
    /// this process are released as [`Runner::release`] describes, so that other processes continue them.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::serve`].
    pub async fn serve_until(self, listener: TcpListener, stop: impl Future<Output = ()>) -> Result<(), EndpointError> {
        let titles: Vec<_> = self.brains.iter().map(|brain| brain.title.clone()).collect();
        let invocations = Invocations { ingress: self.ingress.clone(), local: self.local.clone() };
        let runner = self.runner.clone().tool_executor(invocations);
        let endpoint = self.services(&runner)?;
        let waker = Waker { runner: runner.clone(), ingress: self.ingress.clone(), titles };
        let connections = tokio::select! {
            connections = accept(listener, endpoint, stop) => connections,
            // It works until it is dropped.
            () = waker.work() => return Ok(()),
        };
        _ = tokio::join!(runner.release(), tokio::time::timeout(self.grace, connections.shutdown()));
        Ok(())
    }

    fn services(&self, runner: &Runner) -> Result<restate_sdk::endpoint::Endpoint, EndpointError> {
        let (nonce, calls) = (Arc::from(UuidIds.run().as_str()), Arc::new(OpenCalls::default()));
        let mut builder = restate_sdk::endpoint::Endpoint::builder();
        for (index, brain) in self.brains.iter().enumerate() {
            let title = brain.title.clone();
            for other in self.brains.iter().take(index) {
                let names = names::all(&other.title);
                if let Some(name) = names::all(&title).into_iter().find(|name| names.contains(name)) {
                    return Err(EndpointError::SameName { first: other.title.clone(), second: title, name });
                }
            }
            let (nonce, calls) = (Arc::clone(&nonce), Arc::clone(&calls));
            let services = [
                BrainService { runner: runner.clone(), brain: Arc::clone(brain) }.definition(),
                ToolService { runner: runner.clone(), title: title.clone(), nonce, calls }.definition(),
                WebhookService { runner: runner.clone(), title: title.clone() }.definition(),
            ];
            for service in services {
                let named = |reason| EndpointError::Name { brain: title.clone(), reason };
                builder = builder.bind(service.map_err(named)?);
            }
        }
        for key in &self.identity_keys {
            let keyed = builder.identity_key(key);
            builder = keyed.map_err(|error| EndpointError::IdentityKey { reason: error.to_string() })?;
        }
        Ok(builder.build())
    }
}

#[cfg(test)]
mod tests {
    use positronic_core::dsl::brain;
    use positronic_core::model::scripted::{Reply, ScriptedModel};
    use positronic_core::runner::Runner;
    use tokio::net::TcpListener;

    use super::{Endpoint, EndpointError};

    #[tokio::test]
    async fn brains_with_a_service_of_the_same_name_are_refused() {
        let of = |title| brain(title).r#loop("Greet", |cx| cx.system("Greet.").input("Hello!"));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let runner = Runner::new(ScriptedModel::from_fn(|_| Reply::text("Hi.")));
        let endpoint = Endpoint::new(runner, "http://127.0.0.1:8080").brain(of("Support")).brain(of("Support Tool"));

        let refused = endpoint.serve_until(listener, async {}).await.unwrap_err();

        assert!(matches!(&refused, EndpointError::SameName { name, .. } if name == "SupportTool"), "{refused}");
    }
}
