//! Google's Gemini API (`generateContent`) as a [`Model`](positronic_core::model::Model) of Positronic.
//!
//! `wire` writes a request, `assembler` reads the stream of an answer, and `partial_args` the arguments of a call that stream
//! value by value. `files` and `provider_tools` write the files and the provider's tools of a request; `made_file`,
//! `provider_use` and `sources` read them in an answer. Thought signatures and parts that only the provider understands are
//! stored with the answer and sent back as they came. The HTTP part is [`positronic_model_http`].
//!
//! ```no_run
//! use positronic_gemini::{Gemini, GeminiConfig};
//!
//! let config = GeminiConfig::builder().api_key("AIza…").model("gemini-2.5-flash").build();
//! let model = Gemini::new(config)?;
//! # Ok::<(), positronic_core::record::ModelError>(())
//! ```

mod assembler;
mod config;
mod files;
mod made_file;
mod model;
mod partial_args;
mod provider_tools;
mod provider_use;
mod sources;
mod wire;

pub use assembler::GenerateContentAssembler;
pub use config::GeminiConfig;
pub use model::Gemini;
pub use positronic_model_http::Capabilities;
