//! Route by a configuration of async-openai.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use async_openai::config::Config;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use positronic_core::record::{ModelError, ModelErrorKind};
use positronic_model_http::reqwest::Url;
use positronic_model_http::reqwest::header::{HeaderMap, HeaderValue};
use positronic_model_http::{Endpoint, Route};
use secrecy::ExposeSecret as _;

use crate::token::Token;

/// Where the configuration of a request comes from.
#[derive(Clone)]
pub(crate) enum ConfigSource {
    Config(Arc<dyn Config>),
    Tokens(Token, Arc<dyn Fn(String) -> Arc<dyn Config> + Send + Sync>),
}

impl ConfigSource {
    /// Returns a configuration with the address of requests, perhaps without a credential.
    pub(crate) fn address(&self) -> Arc<dyn Config> {
        match self {
            Self::Config(config) => Arc::clone(config),
            Self::Tokens(_, config) => config(String::new()),
        }
    }

    async fn config(&self) -> Result<Arc<dyn Config>, ModelError> {
        match self {
            Self::Config(config) => Ok(Arc::clone(config)),
            Self::Tokens(token, config) => Ok(config(token.get().await?)),
        }
    }
}

/// Shows the address without its query.
impl fmt::Debug for ConfigSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Endpoint::of_url(self.address().api_base()) {
            Ok(endpoint) => fmt::Display::fmt(&endpoint, f),
            Err(_) => f.write_str("an invalid URL"),
        }
    }
}

/// A route by the configuration of a source.
#[derive(Debug)]
pub(crate) struct ConfigRoute {
    source: ConfigSource,
    /// Headers of the configuration that the model's options override, in lower case.
    overridden: Vec<String>,
}

impl ConfigRoute {
    pub(crate) fn new(source: ConfigSource, headers: &[(String, String)]) -> Self {
        Self { source, overridden: headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect() }
    }

    /// Returns scheme, host and port of an API. It finds out whether the configuration is valid.
    pub(crate) fn origin(&self, path: &[&str]) -> Result<String, ModelError> {
        let config = self.source.address();
        self.endpoint_of(&*config, path)?;
        Ok(url(&*config, path)?.origin().ascii_serialization())
    }

    fn endpoint_of(&self, config: &dyn Config, path: &[&str]) -> Result<Endpoint, ModelError> {
        let url = url(config, path)?;
        let mut headers = headers(config)?;
        for name in &self.overridden {
            headers.remove(name);
        }
        let endpoint = Endpoint::of_url(url.as_str())?.with_headers(headers);
        let is_azure = ["/openai/deployments/", "/openai/v1/"].iter().any(|part| url.path().contains(part));
        Ok(if is_azure { endpoint.advise(ADVICE_ON_AZURE) } else { endpoint })
    }
}

impl Route for ConfigRoute {
    fn endpoint<'a>(&'a self, path: &'a [&'a str]) -> BoxFuture<'a, Result<Endpoint, ModelError>> {
        async move { self.endpoint_of(&*self.source.config().await?, path) }.boxed()
    }
}

/// Azure answers a wrong deployment, API version and path alike.
const ADVICE_ON_AZURE: &str = "check the name of the deployment, the API version, and that the endpoint is the address of its resource, \
                               such as https://NAME.openai.azure.com";

fn url(config: &dyn Config, path: &[&str]) -> Result<Url, ModelError> {
    let written = config.url(&format!("/{}", path.join("/")));
    let Ok(mut url) = Url::parse(written.trim()) else {
        return Err(Endpoint::of_url(&written).err().unwrap_or_else(invalid_header));
    };
    // A base URL that ends with a slash gives `//chat/completions`.
    if url.path().contains("//") {
        let path = url.path().replace("//", "/");
        url.set_path(&path);
    }
    let query = config.query();
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    Ok(url)
}

fn headers(config: &dyn Config) -> Result<HeaderMap, ModelError> {
    HeaderValue::from_str(config.api_key().expose_secret()).map_err(|_| invalid_header())?;
    // The configurations of async-openai panic on an organization or a project that is not valid in a header.
    let mut headers = catch_unwind(AssertUnwindSafe(|| config.headers())).map_err(|_| invalid_header())?;
    // They send an empty credential if there is none.
    for (name, nothing) in [("authorization", "Bearer"), ("api-key", "")] {
        if headers.get(name).is_some_and(|value| value.as_bytes().trim_ascii() == nothing.as_bytes()) {
            headers.remove(name);
        }
    }
    Ok(headers)
}

fn invalid_header() -> ModelError {
    let sentence =
        "the API key or the organization contains a character that is invalid in a header, such as a newline";
    ModelError::new(ModelErrorKind::Auth, sentence)
}
