//! The cost of answers, by the runner's prices.

use crate::record::{ModelError, ResponseMetadata, RoutingStep};
use crate::runner::worker::Worker;

/// Adds the cost of an answer and of those that broke before it, unless their provider has reported it.
pub(super) fn charged(worker: &Worker, mut metadata: ResponseMetadata) -> ResponseMetadata {
    charge(worker, &mut metadata);
    charge_steps(worker, &mut metadata.via);
    metadata
}

/// Adds the costs of answers that broke.
pub(super) fn charged_error(worker: &Worker, mut error: ModelError) -> ModelError {
    charge_steps(worker, &mut error.via);
    error
}

fn charge_steps(worker: &Worker, steps: &mut [RoutingStep]) {
    for step in steps {
        if let RoutingStep::Broken { metadata } = step {
            charge(worker, metadata);
        }
    }
}

fn charge(worker: &Worker, metadata: &mut ResponseMetadata) {
    if metadata.cost.is_none() {
        let models = &worker.shared.runner.models;
        let prices = models.prices.as_ref().or(models.estimates.as_ref());
        metadata.cost = prices.and_then(|prices| prices.charge(metadata)).map(Box::new);
    }
}
