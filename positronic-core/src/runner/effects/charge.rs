//! The cost of answers, by the runner's prices.

use crate::record::{ModelError, ResponseMetadata, RoutingStep};
use crate::runner::Runner;

/// Adds the cost of an answer and of those that broke before it, unless their provider has reported it.
pub(super) fn charged(runner: &Runner, mut metadata: ResponseMetadata) -> ResponseMetadata {
    charge(runner, &mut metadata);
    charge_steps(runner, &mut metadata.via);
    metadata
}

/// Adds the costs of answers that broke.
pub(super) fn charged_error(runner: &Runner, mut error: ModelError) -> ModelError {
    charge_steps(runner, &mut error.via);
    error
}

fn charge_steps(runner: &Runner, steps: &mut [RoutingStep]) {
    for step in steps {
        if let RoutingStep::Broken { metadata } = step {
            charge(runner, metadata);
        }
    }
}

fn charge(runner: &Runner, metadata: &mut ResponseMetadata) {
    if metadata.cost.is_none() {
        let models = &runner.models;
        let prices = models.prices.as_ref().or(models.estimates.as_ref());
        metadata.cost = prices.and_then(|prices| prices.charge(metadata)).map(Box::new);
    }
}
