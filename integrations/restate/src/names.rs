//! Names of Restate's services for a brain.

use positronic_core::record::Path;
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

/// Returns the key under which Restate performs a tool call once.
pub(crate) fn key(call: &DetachedCall) -> String {
    let DetachedCall { run, path, attempt, .. } = call;
    format!("{run}:{}:{attempt}", escaped(path))
}

/// Returns a path in the characters that an HTTP header can contain.
fn escaped(path: &Path) -> String {
    path.as_str()
        .chars()
        .map(|c| if c.is_ascii_graphic() && c != '%' { c.to_string() } else { format!("%{:x}", u32::from(c)) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::workflow;

    #[test]
    fn titles_become_names_that_restate_accepts() {
        let names = ["Support Agent", "a/b-c", "42", "Prüfung", "日本"].map(workflow);
        assert_eq!(names, ["SupportAgent", "ABC", "Brain42", "PrFung", "Brain"]);
    }
}
