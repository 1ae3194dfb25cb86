//! Names of Restate's services for a brain.

use positronic_core::record::SignalId;
use positronic_core::runner::detached::DetachedCall;

/// Returns the name of a brain's workflow: the letters and digits of its title, in upper camel case.
pub(crate) fn workflow(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words
        .flat_map(|word| {
            let (first, rest) = word.split_at(1);
            [first.to_ascii_uppercase(), rest.to_owned()]
        })
        .collect();
    match name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => name,
        false => format!("Brain{name}"),
    }
}

/// Returns the name of the service that performs the tool calls of a brain's runs.
pub(crate) fn tool(title: &str) -> String {
    format!("{}Tool", workflow(title))
}

/// Returns the name of the service that receives webhooks for a brain's runs.
pub(crate) fn webhook(title: &str) -> String {
    format!("{}Webhook", workflow(title))
}

/// Returns the names of all services of a brain.
pub(crate) fn all(title: &str) -> [String; 3] {
    [workflow(title), tool(title), webhook(title)]
}

/// Returns the idempotency key under which Restate performs a tool call once.
pub(crate) fn call_key(call: &DetachedCall) -> String {
    let DetachedCall { run, path, attempt, .. } = call;
    format!("{}:{}:{attempt}", escaped(run.as_str()), escaped(path.as_str()))
}

/// Returns the idempotency key under which Restate handles a signal once.
pub(crate) fn signal_key(signal: &SignalId) -> String {
    escaped(signal.as_str())
}

/// Returns a text in the characters that an HTTP header can contain, without a colon, so that different texts differ.
fn escaped(text: &str) -> String {
    let is_kept = |byte: u8| byte.is_ascii_graphic() && !b"%:".contains(&byte);
    let escaped = |byte: u8| if is_kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") };
    text.bytes().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use positronic_core::record::{Path, RunId, SignalId};
    use positronic_core::runner::detached::DetachedCall;

    use super::{call_key, signal_key, workflow};

    #[test]
    fn titles_become_names_that_restate_accepts() {
        let names = ["Support Agent", "a/b-c", "42", "Prüfung", "日本"].map(workflow);
        assert_eq!(names, ["SupportAgent", "ABC", "Brain42", "PrFung", "Brain"]);
    }

    #[test]
    fn idempotency_keys_are_valid_in_a_header_whatever_the_ids_are() {
        let call = DetachedCall {
            run: RunId::new("Prüfung: 7%"),
            brain: "Support".into(),
            path: Path::parse("Work/0.0").unwrap(),
            attempt: 2,
            tool: "pay".into(),
            may_repeat: false,
        };
        assert_eq!(call_key(&call), "Pr%c3%bcfung%3a%207%25:Work/0.0:2");
        assert_eq!(signal_key(&SignalId::new("ja\n")), "ja%0a");
    }
}
