//! The cost of answers, by the runner's prices. A limit of money needs them before a model is asked.

use crate::definition::LoopDefinition;
use crate::error::{Error, Result};
use crate::machine::limits_money;
use crate::record::{ModelError, Path, ResponseMetadata, RoutingStep};
use crate::runner::Runner;
use crate::runner::worker::Worker;

/// Refuses a limit of money that cannot be enforced, as far as known before the model answers.
pub(super) fn priced(worker: &Worker, path: &Path, definition: &LoopDefinition) -> Result<()> {
    let runner = &worker.shared.runner;
    let is_limited = limits_money(&worker.state, path) || definition.limits.budget.max_money.is_some();
    // An answer of code costs nothing.
    if !is_limited || definition.answer.is_some() {
        return Ok(());
    }
    let Some(prices) = &runner.models.prices else {
        return Err(Error::new(
            "there is a limit of money and no price table; set one with `.prices(…)`, or with `--prices` on the \
             command line",
        ));
    };
    if runner.model_of(definition.settings.tier).is_replay() {
        return Ok(());
    }
    let name = runner.model_name(&definition.settings);
    let (provider, model) = name.split_once('/').unwrap_or(("", &name));
    let (provider, model) = (provider.to_owned(), model.to_owned());
    let metadata = ResponseMetadata { provider, model, ..ResponseMetadata::default() };
    if prices.price(&metadata).is_some() {
        return Ok(());
    }
    Err(Error::new(format!(
        "there is a limit of money, and the runner's prices of {} have none for `{name}`",
        prices.as_of
    )))
}

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
