//! Inbound webhooks of `serve`: a file lists them, and the environment has their secrets.

use std::collections::BTreeMap;
use std::path::Path;

use positronic_server::webhooks::{GitHub, HeaderName, Hook, Hooks, SecretError, Slack, StandardWebhooks};
use serde::Deserialize;

use super::Failure;
use super::files::read_table;

/// The format of the file, by example.
const FORMAT: &str = "a table per webhook:\n\
    [slack]\n\
    scheme = \"slack\"                     # standard, slack, github or unsigned\n\
    secrets = [\"SLACK_SIGNING_SECRET\"]   # environment variables; the first one is the newest\n\
    identifier = \"/event/thread_ts\"      # a JSON pointer, header:NAME, or path (the default)";

/// One webhook in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HookEntry {
    scheme: Scheme,
    /// The environment variables with the secrets.
    #[serde(default)]
    secrets: Vec<String>,
    #[serde(default = "path")]
    identifier: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Scheme {
    Standard,
    Slack,
    Github,
    Unsigned,
}

fn path() -> String {
    "path".to_owned()
}

/// Reads the file. `variable` reads the environment.
pub(crate) fn read_webhooks(path: &Path, variable: impl Fn(&str) -> Option<String>) -> Result<Hooks, Failure> {
    let entries: BTreeMap<String, HookEntry> = read_table(path, "webhook file", FORMAT)?;
    entries.into_iter().try_fold(Hooks::default(), |hooks, (name, entry)| {
        let hook = entry.hook(&variable).map_err(|reason| {
            Failure::environment(format!("cannot accept the webhook `{name}` of {}: {reason}", path.display()))
        })?;
        Ok(hooks.add(name, hook))
    })
}

impl HookEntry {
    fn hook(&self, variable: &impl Fn(&str) -> Option<String>) -> Result<Hook, String> {
        let read = |name: &String| {
            variable(name).ok_or_else(|| format!("the environment variable `{name}` with its secret is not set"))
        };
        let secrets: Vec<_> = self.secrets.iter().map(read).collect::<Result<_, _>>()?;
        let invalid = |error: SecretError| format!("one of its secrets is invalid: {error}");
        let hook = match (&self.scheme, secrets.split_first()) {
            (Scheme::Unsigned, None) => Hook::unsigned(),
            (Scheme::Unsigned, Some(_)) => return Err("an unsigned webhook has no secrets".to_owned()),
            (_, None) => return Err("`secrets` names no environment variable".to_owned()),
            (Scheme::Standard, Some((first, more))) => {
                let scheme = StandardWebhooks::new(first).map_err(invalid)?;
                Hook::new(more.iter().try_fold(scheme, |scheme, secret| scheme.also(secret)).map_err(invalid)?)
            }
            (Scheme::Slack, Some((first, more))) => {
                let scheme = Slack::new(first).map_err(invalid)?;
                Hook::new(more.iter().try_fold(scheme, |scheme, secret| scheme.also(secret)).map_err(invalid)?)
            }
            (Scheme::Github, Some((first, more))) => {
                let scheme = GitHub::new(first).map_err(invalid)?;
                Hook::new(more.iter().try_fold(scheme, |scheme, secret| scheme.also(secret)).map_err(invalid)?)
            }
        };
        match self.identifier.as_str() {
            "path" => Ok(hook),
            pointer if pointer.starts_with('/') => Ok(hook.identifier_pointer(pointer)),
            other => {
                let header = other.strip_prefix("header:").and_then(|name| name.trim().parse::<HeaderName>().ok());
                let header = header.ok_or_else(|| {
                    format!(
                        "invalid identifier `{other}`: write a JSON pointer such as /order/id, header:NAME, or path"
                    )
                })?;
                Ok(hook.identifier_header(header))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hooks.toml");
        fs::write(&path, text).unwrap();
        let variable = |name: &str| match name {
            "SLACK" => Some("8f742231b10e8888abcd99yyyzzz85a5".to_owned()),
            "ORDERS" | "ORDERS_OLD" => Some("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned()),
            "SHORT" => Some("short".to_owned()),
            _ => None,
        };
        let hooks = read_webhooks(&path, variable).map_err(|failure| failure.to_string())?;
        Ok(hooks.names().map(str::to_owned).collect())
    }

    #[test]
    fn file_lists_webhooks_and_the_environment_has_their_secrets() {
        let text = "[slack]\nscheme = \"slack\"\nsecrets = [\"SLACK\"]\nidentifier = \"/event/thread_ts\"\n\
            [orders]\nscheme = \"standard\"\nsecrets = [\"ORDERS\", \"ORDERS_OLD\"]\n\
            [code]\nscheme = \"github\"\nsecrets = [\"SLACK\"]\nidentifier = \"header:X-Order\"\n\
            [inner]\nscheme = \"unsigned\"\n";

        assert_eq!(read(text), Ok(["code", "inner", "orders", "slack"].map(str::to_owned).to_vec()));
    }

    #[test]
    fn unusable_entries_are_refused_with_their_reason() {
        for (entry, reason) in [
            (
                "scheme = \"slack\"\nsecrets = [\"MISSING\"]",
                "the environment variable `MISSING` with its secret is not set",
            ),
            ("scheme = \"slack\"", "`secrets` names no environment variable"),
            (
                "scheme = \"slack\"\nsecrets = [\"SHORT\"]",
                "one of its secrets is invalid: a signing secret has at least 16",
            ),
            ("scheme = \"standard\"\nsecrets = [\"SLACK\"]", "a webhook secret must begin with `whsec_`"),
            ("scheme = \"unsigned\"\nsecrets = [\"SLACK\"]", "an unsigned webhook has no secrets"),
            ("scheme = \"unsigned\"\nidentifier = \"order\"", "invalid identifier `order`"),
            ("scheme = \"stripe\"", "unknown variant `stripe`"),
            ("scheme = \"slack\"\nsecret = \"x\"", "unknown field `secret`"),
        ] {
            let refused = read(&format!("[slack]\n{entry}\n")).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
            assert!(!refused.contains("8f742231"), "{refused}");
        }
    }
}
