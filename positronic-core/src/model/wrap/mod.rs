//! Model wrappers: fallback, routing, limits, and a development cache.
//!
//! Each wrapper is a [`Model`](super::Model), so they nest. The recommended order, from the outside in:
//!
//! ```text
//! DevCache ─▶ Router ─▶ Fallback ─▶ Concurrency ─▶ RateLimit ─▶ adapter
//! ```
//!
//! Then a cache hit waits for nothing, each model of a fallback has its own limits, and a request counts for the rate limit
//! when it is sent, not when it begins to wait for a slot. Other orders work, but lose these properties.
//!
//! **The log contains what a wrapper did**, in order, with the answer ([`ResponseMetadata::via`](crate::record::ResponseMetadata))
//! or the failure ([`ModelError::via`](crate::record::ModelError)): see [`RoutingStep`]. The answer's provider and model are
//! the ones that answered, so their price applies. `LOOP_MODEL_CALL` names the intended model: a fallback's first, a router's
//! default.
//!
//! **A wrapper's state is in memory**, shared by all runs that use it: the requests of the last minute, the resting models.
//! Another process has its own state, and a restart begins without any. Replay decides nothing again, since it reads the
//! answers from the log.
//!
//! The request does not depend on the wrappers: it is made from the log, with the projection of the intended model. Only data
//! that is private to a model (encrypted reasoning, signatures) is hidden from the others, so another model received the logged
//! request without that data, and [`Model::wire`](super::Model::wire) returns the body for the first. The action format must be
//! known before a model is chosen, so models with different formats are all instructed in words
//! ([`ActionFormat::Plain`]).
//!
//! Retries are the runner's: a wrapper asks each model once per try.

mod concurrency;
mod dev_cache;
mod fallback;
mod own;
mod rate_limit;
mod rate_limit_window;
mod router;
mod token_estimate;

pub use concurrency::{Concurrency, Slots};
pub use dev_cache::{DevCache, DevCacheError};
pub use fallback::Fallback;
pub use rate_limit::{Pace, RateLimit, RateLimits};
pub use router::Router;
pub use token_estimate::estimate_tokens;

use crate::record::{ActionFormat, ModelError, ModelResponse, RoutingStep};

/// Prepends routing steps to those of an outcome.
fn after(
    mut steps: Vec<RoutingStep>,
    mut outcome: Result<ModelResponse, ModelError>,
) -> Result<ModelResponse, ModelError> {
    let via = match &mut outcome {
        Ok(response) => &mut response.metadata.via,
        Err(error) => &mut error.via,
    };
    if !steps.is_empty() {
        steps.append(via);
        *via = steps;
    }
    outcome
}

/// Implements [`Model`](super::Model) for a wrapper of one `model` with a method `ask`, and `Debug` with one more field.
macro_rules! wraps {
    ($wrapper:ident, $name:ident: $($field:tt)+) => {
        impl<M: $crate::model::Model> $crate::model::Model for $wrapper<M> {
            fn name(&self) -> String {
                self.model.name()
            }

            fn call<'a>(
                &'a self,
                request: &'a $crate::record::ModelRequest,
                deltas: &'a dyn $crate::model::DeltaSink,
            ) -> futures::future::BoxFuture<'a, Result<$crate::record::ModelResponse, $crate::record::ModelError>> {
                Box::pin(self.ask(request, deltas))
            }

            fn inner(&self) -> Option<&dyn $crate::model::Model> {
                Some(&self.model)
            }

            fn wire(&self, request: &$crate::record::ModelRequest) -> String {
                self.model.wire(request)
            }
        }

        impl<M: $crate::model::Model> std::fmt::Debug for $wrapper<M> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let name = stringify!($wrapper);
                let mut shown = f.debug_struct(name);
                shown.field("model", &self.model.name()).field(stringify!($name), &self.$($field)+).finish()
            }
        }
    };
}
use wraps;

/// Returns the action format that all of several models support.
fn common_form(mut forms: impl Iterator<Item = ActionFormat>) -> ActionFormat {
    let first = forms.next().unwrap_or_default();
    if forms.all(|form| form == first) { first } else { ActionFormat::Plain }
}
