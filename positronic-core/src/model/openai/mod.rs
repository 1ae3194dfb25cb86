//! Adapters for servers with OpenAI's chat completions API or its Responses API.
//!
//! `body` assembles a request's body from fragments that were encoded once, `chat_wire` and `responses_wire` know the
//! formats, and `context` places the changing context after the history. `transport` sends the request, splits the answer into
//! events with `sse` and feeds an assembler, a pure value that tolerates the deviations of compatible servers. `fault`
//! classifies reported failures, `unreachable` failed connections.
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
