//! The table of routes, and what is made from it.

mod accept;
mod context;
mod dispatch;
mod large_answer;
mod route;
mod router;

pub(crate) use context::{RequestContext, created, json};
pub(crate) use route::{Body, Ownership, Params, Route, RouteAccess};
pub use router::router;
pub(crate) use router::table;
