//! Adapters for servers with OpenAI's chat completions API or its Responses API.
//!
//! `chat_wire` and `responses_wire` write the requests, `chat_files` and `responses_files` the files in them, `formats` their
//! schemas, and `context` places the changing context after the history. `responses_tools` declares tools of the provider and reads
//! what they did, `text_marks` reads calls and thinking that a server left in the text. [`positronic_model_http`] sends a request and feeds the answer to an assembler, a pure value that tolerates
//! the deviations of compatible servers.
//!
//! ```no_run
//! use positronic_openai::{OpenAiChat, OpenAiConfig};
//!
//! let config = OpenAiConfig::builder().base_url("http://127.0.0.1:8080/v1").model("qwen3-8b").build();
//! let model = OpenAiChat::new(config)?;
//! # Ok::<(), positronic_core::record::ModelError>(())
//! ```

mod adapter;
mod chat;
mod chat_assembler;
mod chat_calls;
mod chat_chunk;
mod chat_files;
mod chat_wire;
mod config;
mod context;
mod formats;
mod function_mark;
mod responses;
mod responses_assembler;
mod responses_files;
mod responses_item;
mod responses_tools;
mod responses_wire;
#[cfg(test)]
mod tests;
mod text_marks;
mod wrapper;

pub use adapter::{Api, OpenAi};
pub use chat::{Chat, OpenAiChat};
pub use chat_assembler::ChatAssembler;
pub use config::{ContextAfterResults, EncryptedReasoning, OpenAiConfig, ReasoningBack};
pub use positronic_model_http::{Capabilities, Timeouts};
pub use responses::{OpenAiResponses, Responses};
pub use responses_assembler::ResponsesAssembler;
