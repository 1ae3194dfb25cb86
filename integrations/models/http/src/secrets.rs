//! Secret redaction for server errors.
//!
//! A server may repeat the key that it received, in full or in a header, and its error messages are logged and shown.

use positronic_core::record::ModelError;
use reqwest::header::HeaderMap;

/// The replacement of a secret, as in cassettes.
const HIDDEN: &str = "[hidden]";

/// The minimum length of a redacted secret: a shorter one, such as a dummy key `x`, occurs in every text.
const SHORTEST: usize = 6;

/// The secrets in the headers of requests.
pub(super) struct Secrets<'a>(Vec<&'a str>);

impl<'a> Secrets<'a> {
    pub(super) fn of(headers: [&'a HeaderMap; 2]) -> Self {
        let secret = headers
            .into_iter()
            .flatten()
            .filter(|(name, value)| value.is_sensitive() && is_secret_header(name.as_str()));
        // The secret of `Bearer KEY` is the key.
        let secrets = secret.filter_map(|(_, value)| value.to_str().ok()?.rsplit(' ').next());
        Self(secrets.filter(|secret| secret.len() >= SHORTEST).collect())
    }

    /// Replaces the secrets in a text.
    pub(super) fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN))
    }

    /// Replaces the secrets in an error.
    pub(super) fn hide_in(&self, error: ModelError) -> ModelError {
        ModelError {
            message: self.hide(&error.message),
            provider_code: error.provider_code.map(|code| self.hide(&code)),
            request_id: error.request_id.map(|id| self.hide(&id)),
            ..error
        }
    }
}

/// Returns whether a header's name indicates a secret, unlike an application's title, which may occur in any sentence.
///
/// ```
/// use positronic_model_http::is_secret_header;
///
/// assert!(is_secret_header("X-Api-Key"));
/// assert!(!is_secret_header("X-Title"));
/// ```
#[must_use]
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "cookie", "key", "password", "secret", "token"].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;
    use positronic_core::record::ModelErrorKind;

    #[test]
    fn keys_and_sensitive_headers_are_hidden_in_errors() {
        let mut headers = HeaderMap::new();
        let mut token = HeaderValue::from_static("Token s3cret-token");
        token.set_sensitive(true);
        headers.insert("x-auth", token);
        let mut title = HeaderValue::from_static("An app for another");
        title.set_sensitive(true);
        headers.insert("x-title", title);
        let mut key = HeaderValue::from_static("Bearer sk-123456");
        key.set_sensitive(true);
        headers.insert("authorization", key);
        let mut dummy = HeaderValue::from_static("x");
        dummy.set_sensitive(true);
        headers.insert("x-api-key", dummy);
        let text = "no such key: sk-123456 (s3cret-token), ask for another";

        let none = HeaderMap::new();
        let secrets = Secrets::of([&none, &headers]);
        let error = secrets.hide_in(ModelError::new(ModelErrorKind::Auth, text));

        assert_eq!(error.message, "no such key: [hidden] ([hidden]), ask for another");
        assert_eq!(secrets.hide("an x in it"), "an x in it");
    }
}
