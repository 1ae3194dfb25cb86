//! Models by one string, such as `anthropic/claude-haiku-5-5`, with keys and base URLs from the usual variables.
//!
//! [`Providers`] reads the variables through a closure, since a library does not read the environment, and turns a string into a
//! [`Model`](positronic_core::model::Model). [`ModelOptions`] are the same for all providers: `reasoning` translates the effort
//! into what each of them expects. The rules for strings and the table of variables are at [`Providers`].
//!
//! ```
//! use positronic_core::model::wrap::Fallback;
//! use positronic_core::runner::Runner;
//! use positronic_providers::{ModelOptions, Providers};
//!
//! # fn variable(name: &str) -> Option<String> {
//! #     ["ANTHROPIC_API_KEY", "GEMINI_API_KEY"].contains(&name).then(|| "key".to_owned())
//! # }
//! // In an application: `Providers::from_variables(|name| std::env::var(name).ok())`.
//! let providers = Providers::from_variables(variable);
//! let options = ModelOptions::builder().reasoning("low".to_owned()).build();
//!
//! let claude = providers.model_with("anthropic/claude-haiku-5-5", &options)?;
//! let gemini = providers.model("gemini/gemini-3.8-flash")?;
//! let runner: Runner = Runner::new(Fallback::new(claude).then(gemini));
//!
//! let error = providers.model("openai/gpt-5-mini").unwrap_err();
//! assert_eq!(error.to_string(), "cannot use the model `openai/gpt-5-mini`: OPENAI_API_KEY is not set; set OPENAI_API_KEY");
//! # let _ = runner;
//! # Ok::<(), positronic_providers::ProviderError>(())
//! ```

mod adapter;
mod error;
mod failure_advice;
mod model_name;
mod ollama;
mod options;
mod provider;
mod provider_variables;
mod providers;
mod reasoning;

pub use error::{ProviderError, Setting};
pub use options::ModelOptions;
pub use positronic_async_openai::Token;
pub use positronic_model_http::Capabilities;
pub use provider::Provider;
pub use providers::{Configured, Providers};
