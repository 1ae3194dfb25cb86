//! Routing of requests to models.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::own::{Target, mark, sent};
use super::{after, common_form};
use crate::model::{DeltaSink, Model};
use crate::record::{ActionFormat, ModelError, ModelRequest, ModelResponse, RoutingStep};

/// Sends each request to the model of the first matching rule, else to the default.
///
/// ```
/// # use positronic_core::model::scripted::{Reply, ScriptedModel};
/// # let model = || ScriptedModel::from_fn(|_| Reply::text("Yes."));
/// # let (default, long, cheap) = (model(), model(), model());
/// use positronic_core::model::wrap::{Router, estimate_tokens};
///
/// let model = Router::new(default)
///     .when("long", long, |request| estimate_tokens(request) > 100_000)
///     .when("no tools", cheap, |request| request.tools.tools().is_empty());
/// ```
///
/// A rule is a pure function of the request: of its size, tools, settings, tier or path. The runner's own choice by
/// [`Tier`](crate::record::Tier) comes first. The log contains the name of the matching rule; a request to the default adds
/// nothing.
///
/// The messages of a request are projected by the default. A model set for one request
/// ([`Settings::model`](crate::record::Settings)) applies to the default; the others use their own.
pub struct Router {
    default: Arc<dyn Model>,
    rules: Vec<Rule>,
}

struct Rule {
    name: String,
    model: Arc<dyn Model>,
    fits: Box<dyn Fn(&ModelRequest) -> bool + Send + Sync>,
}

impl Router {
    /// Creates a router with its default model.
    #[must_use]
    pub fn new(default: impl Model) -> Self {
        Self { default: Arc::new(default), rules: Vec::new() }
    }

    /// Adds a rule after the existing ones. Its name appears in the log.
    #[must_use]
    pub fn when(
        mut self,
        name: impl Into<String>,
        model: impl Model,
        fits: impl Fn(&ModelRequest) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.rules.push(Rule { name: name.into(), model: Arc::new(model), fits: Box::new(fits) });
        self
    }

    fn rule(&self, request: &ModelRequest) -> Option<&Rule> {
        self.rules.iter().find(|rule| (rule.fits)(request))
    }

    async fn ask(&self, request: &ModelRequest, deltas: &dyn DeltaSink) -> Result<ModelResponse, ModelError> {
        let rule = self.rule(request);
        let model = rule.map_or(&self.default, |rule| &rule.model);
        let name = model.name();
        let target = if rule.is_some() { Target::Other(&name) } else { Target::First(&name) };
        let mut outcome = model.call(&sent(request, target), deltas).await;
        if let Ok(response) = &mut outcome {
            mark(response, target);
        }
        let steps = rule.map(|rule| RoutingStep::Routed { rule: rule.name.clone(), model: name.clone() });
        after(steps.into_iter().collect(), outcome)
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.rules.iter().map(|rule| (&rule.name, rule.model.name()));
        f.debug_map().entry(&"default", &self.default.name()).entries(rules).finish()
    }
}

impl Model for Router {
    fn name(&self) -> String {
        self.default.name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        self.ask(request, deltas).boxed()
    }

    fn inner(&self) -> Option<&dyn Model> {
        Some(&*self.default)
    }

    fn action_format(&self) -> ActionFormat {
        common_form(
            [&self.default]
                .into_iter()
                .chain(self.rules.iter().map(|rule| &rule.model))
                .map(|model| model.action_format()),
        )
    }

    fn wire(&self, request: &ModelRequest) -> String {
        match self.rule(request) {
            None => self.default.wire(&sent(request, Target::First(&self.default.name()))),
            Some(rule) => rule.model.wire(&sent(request, Target::Other(&rule.model.name()))),
        }
    }
}
