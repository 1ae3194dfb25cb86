//! The services and handlers as Restate discovers them, with their options: how often and how soon an invocation is tried again, and when it
//! is aborted.

use restate_sdk::discovery::{self, HandlerName, HandlerType, InputPayload, OutputPayload, ServiceName, ServiceType};
use restate_sdk::serde::Json;

/// How long the server waits until it ends an invocation that reports nothing: longer than any tool or model takes.
/// Restate's own ten minutes would cut off a long call.
const ABORT_MILLIS: u64 = 7 * 24 * 3_600_000;

/// How long Restate pauses at most before it tries an invocation again, so that a service that comes back soon has work.
const MAX_RETRY_MILLIS: u64 = 5_000;

/// How often Restate tries an invocation: without end. By default it pauses an invocation after 70 attempts, until an
/// operator resumes it, which a service that is down for some minutes uses up.
const MAX_ATTEMPTS: u64 = u32::MAX as u64;

/// Describes a handler whose input and output are JSON.
pub(super) fn handler(name: &str, ty: Option<HandlerType>) -> Result<discovery::Handler, String> {
    Ok(discovery::Handler {
        name: HandlerName::try_from(name).map_err(|error| error.to_string())?,
        input: Some(InputPayload::from_metadata::<Json<serde_json::Value>>()),
        output: Some(OutputPayload::from_metadata::<Json<serde_json::Value>>()),
        ty,
        documentation: None,
        metadata: Default::default(),
        abort_timeout: None,
        inactivity_timeout: None,
        journal_retention: None,
        idempotency_retention: None,
        workflow_completion_retention: None,
        enable_lazy_state: None,
        ingress_private: None,
        retry_policy_initial_interval: None,
        retry_policy_max_interval: None,
        retry_policy_max_attempts: None,
        retry_policy_exponentiation_factor: None,
        retry_policy_on_max_attempts: None,
    })
}

/// Describes a service, with the options by which Restate repeats and aborts its invocations.
pub(super) fn service(
    name: &str,
    ty: ServiceType,
    handlers: Vec<discovery::Handler>,
    documentation: String,
) -> Result<discovery::Service, String> {
    Ok(discovery::Service {
        ty,
        name: ServiceName::try_from(name.to_owned()).map_err(|error| error.to_string())?,
        handlers,
        documentation: Some(documentation),
        metadata: Default::default(),
        abort_timeout: Some(ABORT_MILLIS),
        inactivity_timeout: None,
        journal_retention: None,
        idempotency_retention: None,
        enable_lazy_state: None,
        ingress_private: None,
        retry_policy_initial_interval: None,
        retry_policy_max_interval: Some(MAX_RETRY_MILLIS),
        retry_policy_max_attempts: Some(MAX_ATTEMPTS),
        retry_policy_exponentiation_factor: None,
        retry_policy_on_max_attempts: None,
    })
}
