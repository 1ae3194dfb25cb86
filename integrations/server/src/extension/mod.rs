//! Further routes beside the API, for crates that serve runs in another protocol.
//!
//! A [`Route`] of [`OptionsBuilder::routes`](crate::OptionsBuilder::routes) is in the router's one table: its requests go through the same checks as those of
//! the API, and the OpenAPI document lists it. Its handler gets a [`RequestContext`] and answers from the log; what it may do for the
//! caller are the methods of the context, which check the caller's rights and the redaction as the routes of the API do.
//!
//! ```
//! use positronic_server::extension::{Frame, Route};
//! use positronic_server::{Options, Scope};
//! use serde_json::json;
//!
//! let hello = Route::get("/api/v1/hello", "Greet the caller", async |cx| {
//!     let name = cx.caller()?.subject().to_owned();
//!     cx.stream(futures::stream::iter([Frame::json(&json!({ "hello": name }))]))
//! });
//! let options = Options::builder().routes(vec![hello.scopes(&[Scope::Read]).streams()]).build();
//! ```

mod caller_calls;
mod context;
mod decision;
mod http;
mod local;
mod start;
mod stream;
mod subscribe;
mod viewer;

pub use crate::api::{Decision, MessageFile};
pub use caller_calls::CallResult;
pub use context::{SentTo, ThreadMessage};
pub use http::StreamPlace;
pub use local::LocalCaller;
pub use start::NewRun;
pub use stream::Frame;
pub use viewer::{OpenQuestion, Viewer};

pub use crate::routes::{RequestContext, Route};
pub use crate::webhooks::outgoing::RunSubscription;
