//! The table of routes, and what is made from it.

mod accept;
mod dispatch;
mod large_answer;
mod middleware;
mod request_context;
mod route;
mod router;
mod table;

pub(crate) use accept::is_json;
pub use request_context::RequestContext;
pub(crate) use request_context::{Channel, created, json};
pub use route::Route;
pub(crate) use route::{Body, Ownership, Params, RouteAccess};
pub use router::router;
pub use table::{openapi, openapi_with};
