//! Which model answers next in a run that is about to start.

use std::sync::Arc;

use positronic_core::record::Event;
use schemars::JsonSchema;
use serde::Serialize;

use super::cost_estimate::priced;
use crate::app::App;

/// The model that answers next in a run.
#[derive(Serialize, JsonSchema)]
pub(crate) struct NextModel {
    /// The models that the workers of this server would ask, as `provider/model`. Empty if that is not known.
    answers: Vec<String>,
    /// Other models of the provider that have a price.
    models: Vec<String>,
    /// Why the workers of this server have none: then the run waits until a worker has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) missing: Option<String>,
    /// Whether it is missing for now only, as when a file cannot be read.
    #[serde(skip)]
    pub(super) may_come: bool,
}

impl NextModel {
    /// Finds the model for a run of a brain that has these events. Nothing is known about a brain that this server does not have.
    pub(crate) async fn of(app: &App, brain: &str, log: &[Arc<Event>]) -> Self {
        if app.brain(brain).is_err() {
            return Self { answers: Vec::new(), models: Vec::new(), missing: None, may_come: false };
        }
        let (answers, none) = match app.settings.brains.next_models(brain, log).await {
            Ok(answers) => (answers, None),
            Err(none) => (Vec::new(), Some(none)),
        };
        let provider = answers.first().and_then(|model| model.split_once('/')).map(|(provider, _)| provider);
        let prices = app.settings.prices.as_deref();
        let models = prices.zip(provider).map(|(prices, provider)| priced(prices, provider)).unwrap_or_default();
        let may_come = none.as_ref().is_some_and(|none| none.refusal.is_none());
        Self { answers, models, missing: none.map(|none| none.message), may_come }
    }
}
