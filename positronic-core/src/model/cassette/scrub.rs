//! Takes secrets out of what is kept.

use serde_json::Value;

/// What stands in a secret's place.
const HIDDEN: &str = "[hidden]";

/// Field names whose texts are secrets, without case, `-` and `_`.
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

/// What keys begin with, and how long the rest has to be.
const PREFIXES: [(&str, usize); 7] =
    [("sk-", 12), ("sk_", 12), ("ghp_", 20), ("github_pat_", 20), ("xoxb-", 10), ("xoxp-", 10), ("AKIA", 16)];

/// Replaces secrets: the texts of fields with a telling name, texts that look like keys, and given ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Scrubber {
    literals: Vec<String>,
}

impl Scrubber {
    pub(super) fn hide(&mut self, secrets: impl Iterator<Item = String>) {
        self.literals.extend(secrets.filter(|secret| !secret.is_empty()));
        // A secret that is part of another must not be replaced first.
        self.literals.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    /// Replaces the secrets in a document. Doing it twice is doing it once.
    pub(super) fn scrub(&self, document: &mut Value) {
        match document {
            Value::String(text) => {
                if let Some(clean) = self.clean(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.scrub(item)),
            Value::Object(fields) => {
                for (name, value) in fields.iter_mut() {
                    match value {
                        Value::String(text) if is_secret_name(name) => HIDDEN.clone_into(text),
                        value => self.scrub(value),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns the text without secrets, if it has any.
    fn clean(&self, text: &str) -> Option<String> {
        // Arguments and results are JSON in a text.
        if text.starts_with(['{', '['])
            && let Ok(mut document) = serde_json::from_str::<Value>(text)
        {
            let before = document.clone();
            self.scrub(&mut document);
            return (document != before).then(|| document.to_string());
        }
        let mut clean = text.to_owned();
        for secret in &self.literals {
            clean = clean.replace(secret.as_str(), HIDDEN);
        }
        clean = hide_tokens(&clean);
        (clean != text).then_some(clean)
    }
}

fn is_secret_name(name: &str) -> bool {
    let plain: String = name.chars().filter(|letter| !matches!(letter, '-' | '_')).collect();
    SECRET_NAMES.contains(&plain.to_ascii_lowercase().as_str())
}

const fn is_token_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '=' | '+' | '/' | '~')
}

/// Replaces the words that look like keys, and what stands behind `Bearer`.
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
        // What stands before an `=`, as in `key=sk-…`, is no part of the key.
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

/// Tells a token from the word that may follow when somebody writes of a bearer.
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
    fn hides_fields_keys_tokens_and_given_texts() {
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

    #[test]
    fn leaves_alone_what_only_resembles_a_secret() {
        let document = json!({
            "properties": {"password": {"type": "string"}},
            "text": "risk-management, sk-8, the bearer certificates; a task-0123456789abcdef",
            "encrypted_content": "gAAAAABpPDIVYBsk-0123456789abcdefxoxb-0123456789",
            "arguments": "{ \"a\": 1 }",
        });

        assert_eq!(scrubbed(document.clone()), document);
    }
}
