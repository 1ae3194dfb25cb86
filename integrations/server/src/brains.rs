//! The brains that a server can start runs of.

use std::sync::Arc;

use futures::future::BoxFuture;
use positronic_core::definition::{BrainDefinition, StartOn};
use positronic_core::dsl::ProjectWebhook;
use positronic_core::record::Event;
use positronic_core::runner::{NoRunner, Runner};
use serde_json::Value;

/// The brains of a server: what they are, and which runner starts their runs.
///
/// A [`Runner`] has its registered brains and starts their runs itself. It must be kept alive for as long as it works.
pub trait Brains: Send + Sync + 'static {
    /// Lists the brains, in the order of display.
    fn definitions(&self) -> Vec<Arc<BrainDefinition>>;

    /// Returns the runner that starts runs of the brain with this title.
    ///
    /// # Errors
    ///
    /// [`NoRunner`] if its runs cannot be started here.
    fn runner<'a>(&'a self, title: &'a str) -> BoxFuture<'a, Result<Runner, NoRunner>>;

    /// Returns the runner whose models answer requests of the brain with this title that are sent outside of runs: that of
    /// [`Brains::runner`] by default.
    ///
    /// # Errors
    ///
    /// [`NoRunner`] if no model of this server can be asked.
    fn models<'a>(&'a self, title: &'a str) -> BoxFuture<'a, Result<Runner, NoRunner>> {
        self.runner(title)
    }

    /// Names the models that would answer next in a run of the brain with this title, as `provider/model`; `log` are its events so far.
    /// None by default: it is not known, as where the workers of other processes answer. The answer about a run is cached until the run's next event, but for a [`NoRunner`] without a refusal.
    ///
    /// # Errors
    ///
    /// [`NoRunner`] if the workers of this server have no model for it.
    fn next_models<'a>(
        &'a self,
        title: &'a str,
        log: &'a [Arc<Event>],
    ) -> BoxFuture<'a, Result<Vec<String>, NoRunner>> {
        _ = (title, log);
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Lists which webhooks start runs of them: none by default. The server accepts those whose sender is among
    /// [`Hooks`](crate::webhooks::Hooks).
    fn starts(&self) -> Vec<Arc<StartOn>> {
        Vec::new()
    }

    /// Lists the webhooks of the project: none by default. A payload that does not fit its webhook, and for which no run waits, is refused.
    fn webhooks(&self) -> Vec<ProjectWebhook> {
        Vec::new()
    }

    /// Returns the options of a start that names none: an empty object by default, or `null` for a brain without options. The
    /// brain's own defaults then apply.
    fn default_options(&self, brain: &BrainDefinition) -> Value {
        let is_object = brain.options.json().get("type").and_then(Value::as_str) == Some("object");
        if is_object { Value::Object(serde_json::Map::new()) } else { Value::Null }
    }
}

impl Brains for Runner {
    fn definitions(&self) -> Vec<Arc<BrainDefinition>> {
        Self::definitions(self).map(Arc::clone).collect()
    }

    fn runner<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Runner, NoRunner>> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }

    fn starts(&self) -> Vec<Arc<StartOn>> {
        Self::starts(self).map(Arc::clone).collect()
    }

    fn webhooks(&self) -> Vec<ProjectWebhook> {
        self.project_webhooks().cloned().collect()
    }
}

/// A server without brains, which shows and signals the runs of a store.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBrains;

impl Brains for NoBrains {
    fn definitions(&self) -> Vec<Arc<BrainDefinition>> {
        Vec::new()
    }

    fn runner<'a>(&'a self, title: &'a str) -> BoxFuture<'a, Result<Runner, NoRunner>> {
        let message = format!("this server has no brain `{title}`");
        Box::pin(std::future::ready(Err(NoRunner { message, refusal: None })))
    }
}
