//! The AI SDK's UI message stream.
use std::sync::Arc;
use positronic_server::extension::Route;
use crate::bridges::Shared;
pub(crate) fn routes(_: &Arc<Shared>) -> Vec<Route> {
    Vec::new()
}
