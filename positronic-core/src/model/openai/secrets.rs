//! Secret redaction for server errors.
//!
//! A server may repeat the key that it received, in full or in a header, and its error messages are logged and shown.

use reqwest::header::HeaderMap;

use crate::record::ModelError;

/// The replacement of a secret, as in cassettes.
const HIDDEN: &str = "[hidden]";

/// The minimum length of a redacted secret: a shorter one, such as a dummy key `x`, occurs in every text.
const SHORTEST: usize = 6;

/// Redacts the key and the values of sensitive headers in an error.
pub(super) fn without_secrets(error: ModelError, headers: &HeaderMap, key: &str) -> ModelError {
    let secret = headers.iter().filter(|(name, value)| value.is_sensitive() && is_secret(name.as_str()));
    // The secret of `Bearer KEY` is the key.
    let secret = secret.filter_map(|(_, value)| value.to_str().ok()?.rsplit(' ').next());
    let secrets: Vec<&str> = secret.chain([key]).collect();
    let hide = |text: String| secrets.iter().fold(text, |text, secret| redacted(&text, secret));
    ModelError {
        message: hide(error.message),
        provider_code: error.provider_code.map(hide),
        request_id: error.request_id.map(hide),
        ..error
    }
}

/// Returns whether a header's name indicates a secret, unlike an application's title, which may occur in any sentence.
fn is_secret(name: &str) -> bool {
    ["auth", "key", "token", "secret", "cookie", "password"].iter().any(|part| name.contains(part))
}

/// Replaces a secret in a text.
pub(super) fn redacted(text: &str, secret: &str) -> String {
    if secret.len() < SHORTEST { text.to_owned() } else { text.replace(secret, HIDDEN) }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;
    use crate::record::ModelErrorKind;

    #[test]
    fn keys_and_sensitive_headers_are_hidden_in_errors() {
        let mut headers = HeaderMap::new();
        let mut token = HeaderValue::from_static("Token s3cret-token");
        token.set_sensitive(true);
        headers.insert("x-auth", token);
        let mut title = HeaderValue::from_static("An app for another");
        title.set_sensitive(true);
        headers.insert("x-title", title);
        let text = "no such key: sk-123456 (s3cret-token), ask for another";

        let error = without_secrets(ModelError::new(ModelErrorKind::Auth, text), &headers, "sk-123456");

        assert_eq!(error.message, "no such key: [hidden] ([hidden]), ask for another");
        assert_eq!(redacted("an x in it", "x"), "an x in it");
    }
}
