//! Configuration of Azure OpenAI.

use std::fmt;

use async_openai::config::Config;
use positronic_model_http::reqwest::Url;
use positronic_model_http::reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

/// APIs that a dated version has under the deployment.
const OF_A_DEPLOYMENT: [&str; 5] = ["/audio/", "/chat/completions", "/completions", "/embeddings", "/images/"];

/// A deployment of Azure OpenAI, as a configuration of async-openai.
///
/// Without a version, all APIs are at `/openai/v1`, where the model of a request names the deployment. With a dated version, such as
/// `2024-10-21`, chat completions are at `/openai/deployments/DEPLOYMENT`, and the model of a request has no effect; the Responses
/// API stays at `/openai/v1`.
#[derive(Clone)]
pub struct Azure {
    endpoint: String,
    deployment: String,
    version: Option<String>,
    credential: SecretString,
    is_token: bool,
}

impl Azure {
    /// Takes the address of a resource, such as `https://desk.openai.azure.com`, and the name of a deployment. An address that ends
    /// with `/openai` or `/openai/v1` is accepted.
    #[must_use]
    pub fn new(endpoint: impl Into<String>, deployment: impl Into<String>) -> Self {
        let endpoint = endpoint.into();
        let bare = endpoint.trim().trim_end_matches('/');
        let bare = bare.strip_suffix("/v1").filter(|bare| bare.ends_with("/openai")).unwrap_or(bare);
        let endpoint = bare.strip_suffix("/openai").unwrap_or(bare).to_owned();
        Self {
            endpoint,
            deployment: deployment.into(),
            version: None,
            credential: String::new().into(),
            is_token: false,
        }
    }

    /// Sets the API version: a date for the APIs of a deployment, or `preview` for features of `/openai/v1` in preview.
    #[must_use]
    pub fn with_api_version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Sets a key of the resource, which is sent as `api-key`.
    #[must_use]
    pub fn with_api_key(mut self, key: impl Into<String>) -> Self {
        (self.credential, self.is_token) = (key.into().into(), false);
        self
    }

    /// Sets a token of Entra ID for `https://cognitiveservices.azure.com`, which is sent as `Authorization: Bearer`. It is valid for
    /// about an hour; [`Connection::with_tokens`](crate::Connection::with_tokens) renews it.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        (self.credential, self.is_token) = (token.into().into(), true);
        self
    }

    fn build_url(&self, path: &str) -> Option<Url> {
        let mut url = Url::parse(&self.endpoint).ok()?;
        let is_dated = |version: &&String| version.starts_with(|first: char| first.is_ascii_digit());
        let dated = self.version.as_ref().filter(is_dated);
        let is_of_deployment = dated.is_some() && OF_A_DEPLOYMENT.iter().any(|api| path.starts_with(api));
        let deployment = is_of_deployment.then_some(&*self.deployment);
        let api = if is_of_deployment { "deployments" } else { "v1" };
        let path = path.split('/').filter(|segment| !segment.is_empty());
        url.path_segments_mut().ok()?.pop_if_empty().extend(["openai", api]).extend(deployment).extend(path);
        // `/openai/v1` refuses a dated version.
        if let Some(version) = self.version.as_ref().filter(|_| is_of_deployment || dated.is_none()) {
            url.query_pairs_mut().append_pair("api-version", version);
        }
        Some(url)
    }
}

impl Config for Azure {
    fn headers(&self) -> HeaderMap {
        let credential = self.credential.expose_secret();
        let (name, value) = if self.is_token {
            (AUTHORIZATION.as_str(), format!("Bearer {credential}"))
        } else {
            ("api-key", credential.to_owned())
        };
        let mut headers = HeaderMap::new();
        if let Some(mut value) = HeaderValue::from_str(&value).ok().filter(|_| !credential.is_empty()) {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        headers
    }

    fn url(&self, path: &str) -> String {
        // An invalid address stays as it is, so that the error shows it.
        self.build_url(path).map_or_else(|| self.endpoint.clone(), String::from)
    }

    /// Is empty: the version is in the URL, since it depends on the path.
    fn query(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    fn api_base(&self) -> &str {
        &self.endpoint
    }

    fn api_key(&self) -> &SecretString {
        &self.credential
    }
}

/// Shows no credentials.
impl fmt::Debug for Azure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Azure")
            .field("endpoint", &self.endpoint)
            .field("deployment", &self.deployment)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
