//! The services that Restate calls.
//!
//! The macros of Restate's SDK fix the names of services at compile time, but a brain's title is data. So these services
//! implement the traits behind the macros.

mod brain;
mod service_options;
mod tool;
mod webhook;

use std::fmt::Display;

use futures::future::BoxFuture;
use restate_sdk::discovery;
use restate_sdk::endpoint::{ContextInternal, Error};
use restate_sdk::errors::{HandlerError, HandlerResult};
use restate_sdk::serde::Json;
use restate_sdk::service::ServiceDefinition;
use restate_sdk::service::macro_support::service_definition;
use serde::Serialize;

pub(crate) use brain::BrainService;
pub(crate) use tool::ToolService;
pub(crate) use webhook::WebhookService;

/// The future of a service.
type Handled = BoxFuture<'static, Result<(), Error>>;

fn definition<S>(dispatcher: S, discovery: discovery::Service) -> ServiceDefinition
where
    S: restate_sdk::service::Service<Future = Handled> + Send + Sync + 'static,
{
    service_definition(dispatcher, discovery)
}

/// Writes the result of a handler.
fn finish<T: Serialize + 'static>(cx: &ContextInternal, result: HandlerResult<T>) -> Result<(), Error>
where
    Json<T>: restate_sdk::serde::Serialize,
{
    cx.handle_handler_result(result.map(Json));
    cx.end();
    Ok(())
}

/// An error after which Restate tries again.
fn again(error: impl Display) -> HandlerError {
    HandlerError::from(error.to_string())
}
