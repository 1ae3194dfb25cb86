//! Models around models: one that steps in for another, one that is chosen, limits, and a cache for development.
//!
//! Each wrapper is a [`Model`](super::Model), so they nest. From the outside in, in the order that makes sense:
//!
//! ```text
//! DevCache ─▶ Router ─▶ Fallback ─▶ Concurrency ─▶ RateLimit ─▶ adapter
//! ```
//!
//! A hit of the cache then waits for nothing; each model of a fallback has limits of its own; and a request counts for its
//! minute when it is sent, not when it begins to wait for a place. Another order works, and costs what this one saves.
//!
//! **What a wrapper did is in the log**, with the answer ([`ResponseMetadata::via`](crate::record::ResponseMetadata)) or the failure
//! ([`ModelError::via`](crate::record::ModelError)), in the order in which it happened: see [`RoutingStep`]. The
//! answer's provider and model are those that really answered, so it is priced by theirs. `LOOP_MODEL_CALL` names the model
//! that was meant: a fallback's first, a router's default.
//!
//! **What a wrapper knows is in memory**, shared by all runs that ask it: how many requests were sent in the last minute, which
//! model rests. Another process has counts of its own, and a restart begins with none. Nothing of it is decided again on replay,
//! which reads the answers from the log.
//!
//! The request is the same, whatever is around the model: it is made from the log, with the projection of the model that is meant.
//! Only what one model gave for itself alone (sealed thoughts, signatures) is kept from the others, so what a model was sent that
//! stepped in is the logged request without these, and [`Model::wire`](super::Model::wire) tells that of the first. In which form decisions are
//! asked for has to be known before a model is chosen, so models that differ in it are all asked in words
//! ([`ActionFormat::Plain`]).
//!
//! Retries stay the runner's: a wrapper asks each model once for each try.

mod concurrency;
mod dev_cache;
mod estimate;
mod fallback;
mod own;
mod rate_limit;
mod router;
mod window;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use concurrency::{Concurrency, Slots};
pub use dev_cache::{DevCache, DevCacheError};
pub use estimate::estimate_tokens;
pub use fallback::Fallback;
pub use rate_limit::{Pace, RateLimit, RateLimits};
pub use router::Router;

use crate::record::{ActionFormat, ModelError, ModelResponse, RoutingStep};

/// Puts what happened before a model was asked in front of what happened then.
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

/// Returns the form of decisions that all of several models are asked in.
fn common_form(mut forms: impl Iterator<Item = ActionFormat>) -> ActionFormat {
    let first = forms.next().unwrap_or_default();
    if forms.all(|form| form == first) { first } else { ActionFormat::Plain }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
