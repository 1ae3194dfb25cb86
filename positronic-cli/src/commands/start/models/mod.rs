//! `positronic models`: the configured providers, and a check of their models.

mod check;
mod list;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use positronic_core::model::Model;

use crate::app::{Failure, Project, Ui, high_model, normal_model};
use crate::cli::{EndpointArgs, Exit, ModelArgs, ModelsArgs, ModelsCommand};

pub(crate) async fn models(project: Option<&Project>, args: &ModelsArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    match &args.what {
        None => list::list(project, args.json, ui),
        Some(ModelsCommand::Check(args)) => check::check(project, args, ui).await,
    }
}

/// The name of the normal tier.
const NORMAL: &str = "normal";

/// A tier and its model, if it has one, or why not.
type TierModel = (&'static str, Result<Option<Arc<dyn Model>>, Failure>);

/// Returns the models of both tiers, as `run` chooses them without flags for models.
fn tiers(project: Option<&Project>, endpoint: &EndpointArgs, ui: &Ui) -> [TierModel; 2] {
    let none = Project::new();
    let project = project.unwrap_or(&none);
    let flags = ModelArgs { endpoint: endpoint.clone(), ..ModelArgs::default() };
    [(NORMAL, normal_model(project, &flags, &ui.settings)), ("high", high_model(project, &flags, &ui.settings))]
}
