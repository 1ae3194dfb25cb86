//! Secret redaction for cassettes.

use serde_json::{Map, Value};

/// The replacement of a secret.
const HIDDEN: &str = "[hidden]";

/// Names of fields whose values are secrets, in lower case without `-` and `_`.
const SECRET_NAMES: [&str; 14] = [
    "accesstoken",
    "apikey",
    "apitoken",
    "authorization",
    "authtoken",
    "bearertoken",
    "clientsecret",
    "password",
    "privatekey",
    "proxyauthorization",
    "refreshtoken",
    "secretkey",
    "setcookie",
    "xapikey",
];

/// Prefixes of API keys, with the minimum length of the rest.
const PREFIXES: [(&str, usize); 7] =
    [("sk-", 12), ("sk_", 12), ("ghp_", 20), ("github_pat_", 20), ("xoxb-", 10), ("xoxp-", 10), ("AKIA", 16)];

/// The minimum length of an explicitly hidden secret, in bytes: a shorter text occurs too often by chance.
pub const MIN_SECRET: usize = 4;

/// From this length on, in bytes, a secret is also replaced inside of words, where it is unlikely to occur by chance.
const LONG_SECRET: usize = 16;

/// Structural fields of a line, or fields that a replay matches on.
const FORM: [&str; 14] = [
    "action",
    "action_format",
    "after",
    "at",
    "call",
    "finish",
    "id",
    "identifier",
    "kind",
    "model",
    "name",
    "provider",
    "role",
    "type",
];

/// Fields with content, which contains no structural fields.
const CONTENT: [&str; 6] = ["arguments", "data", "extra", "goal", "options", "payload"];

/// In JSON inside of a string, the only field that a replay matches on: the chosen action.
const FORM_OF_CONTENT: [&str; 1] = ["action"];

/// Redacts secrets: the values of fields with a telling name, texts that look like keys, and given texts.
#[derive(Clone, Default)]
pub(super) struct Scrubber {
    literals: Vec<String>,
}

impl std::fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scrubber").field("literals", &self.literals.len()).finish()
    }
}

impl Scrubber {
    pub(super) fn hide(&mut self, secrets: impl Iterator<Item = String>) {
        let is_secret = |secret: &String| {
            let is_secret = secret.trim().len() >= MIN_SECRET;
            if !is_secret && !secret.is_empty() {
                tracing::warn!("a secret shorter than {MIN_SECRET} bytes is not hidden in the cassette");
            }
            is_secret
        };
        self.literals.extend(secrets.filter(is_secret));
        // Longer secrets first, since one may contain another.
        self.literals.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    /// Redacts a document. It is idempotent.
    pub(super) fn scrub(&self, document: &mut Value) {
        self.scrub_field("", &FORM, document);
    }

    /// Redacts the value of a field; `form` lists the structural fields.
    fn scrub_field(&self, name: &str, form: &[&str], document: &mut Value) {
        let form = if CONTENT.contains(&name) { &FORM_OF_CONTENT } else { form };
        match document {
            Value::String(text) => {
                if let Some(clean) = self.clean(text, form.contains(&name)) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.scrub_field(name, form, item)),
            Value::Object(fields) => {
                for (name, value) in fields.iter_mut() {
                    match value {
                        Value::String(text) if is_secret_name(name) => HIDDEN.clone_into(text),
                        // Headers and the like have several values.
                        Value::Array(items) if is_secret_name(name) && items.iter().all(Value::is_string) => {
                            items.fill(HIDDEN.into());
                        }
                        value => self.scrub_field(name, form, value),
                    }
                }
                self.scrub_names(fields);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Redacts long secrets and likely keys in field names.
    fn scrub_names(&self, fields: &mut Map<String, Value>) {
        let clean = |name: &str| self.clean(name, true).filter(|clean| clean != name);
        if fields.keys().any(|name| clean(name).is_some()) {
            let all = std::mem::take(fields);
            fields.extend(all.into_iter().map(|(name, value)| (clean(&name).unwrap_or(name), value)));
        }
    }

    /// Returns the redacted text, if it changes. Short secrets stay in structural fields.
    fn clean(&self, text: &str, is_form: bool) -> Option<String> {
        // Arguments and results are JSON in a string.
        // A model may begin with white space.
        if text.trim_start().starts_with(['{', '['])
            && let Ok(mut document) = serde_json::from_str::<Value>(text)
        {
            let before = document.clone();
            self.scrub_field("", &FORM_OF_CONTENT, &mut document);
            return (document != before).then(|| document.to_string());
        }
        let mut clean = text.to_owned();
        for secret in &self.literals {
            if secret.len() >= LONG_SECRET {
                clean = clean.replace(secret.as_str(), HIDDEN);
            } else if !is_form {
                clean = replace_words(&clean, secret);
            }
        }
        clean = hide_tokens(&clean);
        (clean != text).then_some(clean)
    }
}

/// Replaces a secret that is a separate word.
fn replace_words(text: &str, secret: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut kept = 0;
    for (at, found) in text.match_indices(secret) {
        let end = at + found.len();
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(end..).and_then(|after| after.chars().next());
        if [before, after].into_iter().flatten().any(char::is_alphanumeric) {
            continue;
        }
        out.push_str(text.get(kept..at).unwrap_or_default());
        out.push_str(HIDDEN);
        kept = end;
    }
    out.push_str(text.get(kept..).unwrap_or_default());
    out
}

fn is_secret_name(name: &str) -> bool {
    let plain: String = name.chars().filter(|letter| !matches!(letter, '-' | '_')).collect();
    SECRET_NAMES.contains(&plain.to_ascii_lowercase().as_str())
}

const fn is_token_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '=' | '+' | '/' | '~')
}

/// Replaces words that look like keys, and tokens after `Bearer`.
fn hide_tokens(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut behind_bearer = false;
    while !rest.is_empty() {
        let end = rest.find(|letter| !is_token_letter(letter)).unwrap_or(rest.len());
        let (word, further) = rest.split_at(end);
        let end = further.find(is_token_letter).unwrap_or(further.len());
        let (gap, further) = further.split_at(end);
        let secret = (behind_bearer && looks_like_token(word)) || looks_like_key(word);
        // The name before an `=`, as in `key=sk-…`, is not part of the key.
        let kept = if behind_bearer { "" } else { word.rsplit_once('=').map_or("", |(name, _)| name) };
        match secret {
            true if kept.is_empty() => out.push_str(HIDDEN),
            true => {
                out.push_str(kept);
                out.push('=');
                out.push_str(HIDDEN);
            }
            false => out.push_str(word),
        }
        out.push_str(gap);
        behind_bearer = word.eq_ignore_ascii_case("bearer") && gap == " ";
        rest = further;
    }
    out
}

/// Distinguishes a token from an ordinary word after `Bearer`.
fn looks_like_token(word: &str) -> bool {
    word.len() >= 20 || (word.len() >= 8 && word.bytes().any(|byte| byte.is_ascii_digit()))
}

fn looks_like_key(word: &str) -> bool {
    let word = word.rsplit_once('=').map_or(word, |(_, value)| value);
    PREFIXES.iter().any(|(prefix, least)| word.strip_prefix(prefix).is_some_and(|rest| rest.len() >= *least))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scrubbed(mut document: Value) -> Value {
        let mut scrubber = Scrubber::default();
        scrubber.hide(["hunter2", ""].map(str::to_owned).into_iter());
        scrubber.scrub(&mut document);
        let once = document.clone();
        scrubber.scrub(&mut document);
        assert_eq!(document, once, "twice is once");
        document
    }

    #[test]
    fn redacts_fields_keys_tokens_and_given_texts() {
        let document = json!({
            "Authorization": "Basic abc",
            "headers": [{"x-api-key": "k"}, {"API_KEY": "k"}],
            "text": "use sk-proj-0123456789abcdef, or key=sk-0123456789abcdef, with Bearer abcdefgh.1jkl and hunter2!",
            "arguments": "{\"password\":\"p\",\"user\":\"u\"}",
        });

        assert_eq!(
            scrubbed(document),
            json!({
                "Authorization": "[hidden]",
                "headers": [{"x-api-key": "[hidden]"}, {"API_KEY": "[hidden]"}],
                "text": "use [hidden], or key=[hidden], with Bearer [hidden] and [hidden]!",
                "arguments": "{\"password\":\"[hidden]\",\"user\":\"u\"}",
            })
        );
    }

    fn hidden(secret: &str, mut document: Value) -> Value {
        let mut scrubber = Scrubber::default();
        scrubber.hide(std::iter::once(secret.to_owned()));
        scrubber.scrub(&mut document);
        document
    }

    #[test]
    fn short_secret_is_redacted_as_a_word_outside_of_structural_fields() {
        let line = json!({
            "type": "text",
            "text": "text in context, text: (text) 'text'",
            "calls": [{"name": "text", "arguments": "{\"q\":\"text\",\"type\":\"text\"}"}],
        });

        assert_eq!(
            hidden("text", line),
            json!({
                "type": "text",
                "text": "[hidden] in context, [hidden]: ([hidden]) '[hidden]'",
                "calls": [{"name": "text", "arguments": "{\"q\":\"[hidden]\",\"type\":\"[hidden]\"}"}],
            })
        );
    }

    #[test]
    fn text_below_the_minimum_length_is_not_redacted() {
        let line = json!({"type": "text", "text": "x marks the axis"});

        assert_eq!(hidden("x", line.clone()), line);
        assert_eq!(hidden("ax", line.clone()), line);
        assert_eq!(hidden("   ", line.clone()), line);
    }

    #[test]
    fn long_secret_is_redacted_everywhere() {
        let secret = "0123456789abcdef";

        assert_eq!(
            hidden(secret, json!({"name": secret, "text": format!("a{secret}b")})),
            json!({"name": "[hidden]", "text": "a[hidden]b"})
        );
    }

    #[test]
    fn secrets_are_redacted_after_white_space_in_lists_and_in_field_names() {
        let secret = "0123456789abcdef";

        assert_eq!(
            hidden(
                secret,
                json!({"arguments": "\n {\"password\": \"p\"}", "set-cookie": ["a=b", "c=d"], secret: 1, "sk-zyxwvutsrqponm": 2})
            ),
            json!({"arguments": "{\"password\":\"[hidden]\"}", "set-cookie": ["[hidden]", "[hidden]"], "[hidden]": 2})
        );
    }

    #[test]
    fn text_that_resembles_a_secret_is_not_redacted() {
        let document = json!({
            "properties": {"password": {"type": "string"}},
            "text": "risk-management, sk-8, the bearer certificates; a task-0123456789abcdef",
            "encrypted_content": "gAAAAABpPDIVYBsk-0123456789abcdefxoxb-0123456789",
            "arguments": "{ \"a\": 1 }",
        });

        assert_eq!(scrubbed(document.clone()), document);
    }
}
