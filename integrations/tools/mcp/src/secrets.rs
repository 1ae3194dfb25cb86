//! Removal of the secrets that a server was given from what it answers.
//!
//! A server may repeat a token that it was sent, such as a tool that lists the headers of its request. Its answer is recorded, and
//! a model's provider reads it, who is not to have the token.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// What stands in a secret's place, as in cassettes.
const HIDDEN: &str = "[hidden]";

/// The bytes from which a secret stands in no text by chance. A shorter one, such as `test`, stays.
const SHORTEST: usize = 16;

/// What the names of secret headers and variables hold, in lower case.
const NAMES: [&str; 6] = ["auth", "key", "token", "secret", "cookie", "password"];

/// The secrets of one server.
#[derive(Clone, Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// Picks the secrets from headers or variables, by their names.
    pub(super) fn named<'a>(all: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let is_secret = |name: &str| NAMES.iter().any(|part| name.to_ascii_lowercase().contains(part));
        let secrets = all.into_iter().filter(|(name, _)| is_secret(name));
        // What stands before a blank is a scheme, such as `Bearer`.
        let secrets = secrets.filter_map(|(_, value)| value.rsplit(' ').next());
        let mut secrets: Vec<_> = secrets.filter(|secret| secret.len() >= SHORTEST).map(str::to_owned).collect();
        // A secret that is part of another must not be replaced first.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }

    /// Removes the secrets from a text.
    pub(super) fn hide_in(&self, text: &mut String) {
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                *text = text.replace(secret.as_str(), HIDDEN);
            }
        }
    }

    /// Removes the secrets from the texts of a result.
    pub(super) fn hide_in_result(&self, result: &mut CallToolResult) {
        if self.0.is_empty() {
            return;
        }
        for block in &mut result.content {
            match block {
                ContentBlock::Text(text) => self.hide_in(&mut text.text),
                ContentBlock::Resource(embedded) => {
                    if let ResourceContents::TextResourceContents { text, .. } = &mut embedded.resource {
                        self.hide_in(text);
                    }
                }
                _ => {}
            }
        }
        if let Some(structured) = &mut result.structured_content {
            self.hide_in_json(structured);
        }
    }

    fn hide_in_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.hide_in(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in_json(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.hide_in_json(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
