//! What the tests of the model adapters share: recorded streams, and a server that plays them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::missing_panics_doc, reason = "only tests use it")]

mod recording;
mod server;

pub use recording::{Answer, add_up, events, in_pieces, play, shown};
pub use server::Provider;
pub use wiremock::ResponseTemplate;
