//! What adapters of models share: one request over HTTP, one answer, one classified failure, and schemas as providers take them.
//!
//! This crate is for adapters of models, such as `positronic-openai`. [`RequestBody`] writes a request's body from
//! fragments that were encoded once. [`Transport`] sends it, splits the answer into events with [`SseDecoder`] and feeds an
//! [`Assemble`], a pure value of the adapter; a chunk that is not valid JSON is repaired and fed again. Failures that a server
//! reports and failed connections become [`ModelError`](positronic_core::record::ModelError)s whose kind decides about retries; [`lenient`]
//! reads JSON of servers that deviate from their own documentation. [`schema`] converts schemas to the dialects of providers.

mod assemble;
mod borrowed_json;
mod capabilities;
mod chunk_repair;
mod clients;
mod documents;
mod endpoint;
mod failure_kind;
mod fault;
mod files;
mod json;
mod json_repair;
pub mod lenient;
mod options;
mod request_body;
mod response_body;
mod retry_after_header;
mod route;
mod scan;
pub mod schema;
mod secrets;
mod sender;
mod sse;
mod stopwatch;
mod transport;
mod turns;
mod unpack;
mod unreachable;

pub use assemble::{Assemble, Progress};
pub use capabilities::Capabilities;
pub use endpoint::Endpoint;
pub use fault::{MAX_ITEMS, http_error, reported_error, shorten, too_many_items};
pub use files::{FileContent, data_url, from_base64, from_data_url};
pub use options::{HttpOptions, Timeouts};
pub use request_body::{RequestBody, extend_list, sendable_arguments, sendable_object};
pub use reqwest;
pub use route::Route;
pub use secrets::is_secret_header;
pub use sender::{HttpSender, SendError};
pub use sse::{SseDecoder, SseError, SseEvent};
pub use transport::Transport;
pub use turns::Turns;
