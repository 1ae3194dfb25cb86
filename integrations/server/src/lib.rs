//! Serves the runs of a store over HTTP: an API, the inspector page, webhooks.

mod time;
pub mod webhooks;
