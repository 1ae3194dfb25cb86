//! The brains and webhooks of a project, each as one typed value, which its services hold.

mod brains_macro;
mod webhook;

pub use brains_macro::{BoundBrain, bound};
pub use webhook::{ProjectWebhook, check_webhook_names};
