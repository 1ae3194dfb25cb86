//! Models whose requests go where a configuration of async-openai says.
//!
//! A [`Connection`] takes any [`Config`](async_openai::config::Config) of async-openai and asks it before each request for the URL,
//! the query and the headers, so its credentials can rotate. A stack of tower can send the requests. Requests and answers are those
//! of [`positronic_openai`].
//!
//! ```
//! use async_openai::config::OpenAIConfig;
//! use positronic_async_openai::{Azure, Connection, Token};
//! use positronic_openai::OpenAiConfig;
//!
//! # fn make() -> Result<(), positronic_core::record::ModelError> {
//! let config = OpenAIConfig::new().with_api_base("https://gateway.example/v1").with_api_key("key");
//! let model = Connection::new(config).chat(OpenAiConfig::builder().model("gpt-5-mini").build())?;
//!
//! // Azure, with a token of Entra ID from the command line of Azure.
//! let azure = Azure::new("https://desk.openai.azure.com", "gpt-5-mini");
//! let token = Token::command(
//!     "az account get-access-token --resource https://cognitiveservices.azure.com --query accessToken --output tsv",
//! );
//! let connection = Connection::with_tokens(token, move |token| azure.clone().with_token(token));
//! let model = connection.responses(OpenAiConfig::builder().model("gpt-5-mini").provider("azure").build())?;
//! # let _ = model;
//! # Ok(())
//! # }
//! # make().unwrap();
//! ```
//!
//! # What to know of async-openai
//!
//! - `OpenAIConfig::new()` and `AzureConfig::new()` read `OPENAI_API_KEY` from the environment and send it to any URL: always call
//!   `with_api_key`. With an empty key, no credential is sent.
//! - A layer that retries, such as `OpenAIRetryLayer`, multiplies the retries of the engine, and the log does not have them.
//! - `AzureConfig` has no path for the Responses API; [`Azure`] has.

mod azure;
mod connection;
mod route;
mod stack;
mod token;
#[cfg(feature = "types")]
mod types;

pub use async_openai;
pub use azure::Azure;
pub use connection::Connection;
pub use token::Token;
#[cfg(feature = "types")]
pub use types::{chat_settings, response_settings, response_tool};
