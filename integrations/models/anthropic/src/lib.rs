//! Anthropic's Messages API as a [`Model`](positronic_core::model::Model) of Positronic.
//!
//! `wire` writes a request, `cache` decides which of its blocks end a cached prefix, and `assembler` reads the stream of an
//! answer. Thinking with its signatures, citations, and what the provider's own tools did are stored with the answer and sent
//! back to the model that made them, as they came. `names` gives fields names that the API accepts. `files` and `provider_tools` write the files and the provider's tools of a request, and `provider_use` reads
//! what those tools did. The HTTP part is [`positronic_model_http`].
//!
//! ```no_run
//! use positronic_anthropic::{Anthropic, AnthropicConfig};
//!
//! let config = AnthropicConfig::builder().api_key("sk-ant-…").model("claude-sonnet-4-5").build();
//! let model = Anthropic::new(config)?;
//! # Ok::<(), positronic_core::record::ModelError>(())
//! ```

mod assembler;
mod block;
mod cache;
mod config;
mod files;
mod model;
mod names;
mod provider_tools;
mod provider_use;
mod thinking;
mod wire;

pub use assembler::MessagesAssembler;
pub use config::{AnthropicConfig, CacheLife, Thinking};
pub use model::Anthropic;
pub use positronic_model_http::Capabilities;
