//! Adapters for servers that speak OpenAI's chat completions or its Responses API.
//!
//! A request's body is put together from fragments that were encoded once: `body` writes it, `chat_wire` and
//! `responses_wire` know the dialects, `context` places what changes between requests behind the history. `transport` sends it, splits the answer into events with `sse`
//! and hands each to an assembler, a pure value that tolerates what compatible servers send. `fault` names what went wrong,
//! `unreachable` why no answer came.
//!
//! ```no_run
//! use positronic_core::model::openai::{OpenAiChat, OpenAiConfig};
//!
//! let config = OpenAiConfig::builder().base_url("http://127.0.0.1:8080/v1").model("qwen3-8b").build();
//! let model = OpenAiChat::new(config)?;
//! # Ok::<(), positronic_core::record::ModelError>(())
//! ```

mod body;
mod chat;
mod chat_assembler;
mod chat_chunk;
mod chat_wire;
mod config;
mod context;
mod endpoint;
mod fault;
mod lenient;
mod responses;
mod responses_assembler;
mod responses_item;
mod responses_wire;
mod retry_after;
mod secrets;
mod sse;
mod stopwatch;
#[cfg(test)]
mod tests;
mod transport;
mod unreachable;
mod wrapper;

pub use chat::OpenAiChat;
pub use chat_assembler::ChatAssembler;
pub use config::{ContextAfterResults, EncryptedReasoning, OpenAiConfig, ReasoningBack, Timeouts};
pub use responses::OpenAiResponses;
pub use responses_assembler::ResponsesAssembler;
pub use sse::{SseDecoder, SseError};
