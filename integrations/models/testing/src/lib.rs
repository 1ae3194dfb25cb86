//! What the tests of the model adapters share: recorded streams, answers in the form of each provider, a server that plays them, and the
//! providers' published rules for requests.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::result_large_err,
    reason = "only tests use it"
)]

pub mod azure;
mod recording;
pub mod rules;
mod seen;
mod server;
pub mod wire_forms;

pub use recording::{Answer, add_up, events, in_pieces, play, shown};
pub use seen::{seen, timeline};
pub use server::{Provider, Rules};
pub use wiremock::ResponseTemplate;
