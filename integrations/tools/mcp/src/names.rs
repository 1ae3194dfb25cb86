//! Names of a server's tools for models and people.

use positronic_core::record::{ToolId, hash_text, is_invisible};

use super::error::McpError;

/// Separates the names of server and tool. Server names cannot contain it, so the prefix is unambiguous.
const BETWEEN: &str = "__";

/// The maximum length of a name that providers accept.
const LONGEST: usize = 64;

/// The length of the hash that distinguishes sanitized names.
const HASH: usize = 8;

/// The maximum shown length of a tool's own name; the protocol allows 128.
pub(super) const NAME: usize = 128;

/// Validates a server's name.
pub(super) fn server_name(name: &str) -> Result<(), McpError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let fits = (1..=24).contains(&name.len()) && name.bytes().all(allowed);
    if fits && !name.contains(BETWEEN) && !name.starts_with('_') && !name.ends_with('_') {
        return Ok(());
    }
    Err(McpError::ServerName(name.to_owned()))
}

/// Builds a tool's name from the server's and its own. Characters that providers reject become `_`, and a changed name ends in
/// a part of the hash of the tool's own name.
pub(super) fn tool_name(server: &str, tool: &str) -> String {
    let allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    let room = LONGEST.saturating_sub(server.len() + BETWEEN.len());
    let is_whole = !tool.is_empty() && tool.len() <= room && tool.chars().all(allowed);
    if is_whole {
        return format!("{server}{BETWEEN}{tool}");
    }
    let sanitized = tool.chars().map(|char| if allowed(char) { char } else { '_' });
    let sanitized: String = sanitized.take(room.saturating_sub(HASH + 1)).collect();
    let hash: String = hash_text(tool).as_str().chars().take(HASH).collect();
    format!("{server}{BETWEEN}{sanitized}-{hash}")
}

/// Returns the part of a tool's name after the server's name.
pub(super) fn rest_of<'a>(server: &str, name: &'a str) -> Option<&'a str> {
    name.strip_prefix(server)?.strip_prefix(BETWEEN)
}

/// Returns the names of a server's tools, for a match by prefix.
pub(super) fn names_of(server: &str) -> String {
    format!("{server}{BETWEEN}*")
}

/// Returns a server's text for display: without control and invisible characters, and truncated.
pub(super) fn printable(text: &str, most: usize) -> String {
    let is_shown = |char: &char| !char.is_control() && !is_invisible(*char);
    let mut plain: String = text.chars().filter(is_shown).take(most).collect();
    if text.chars().nth(most).is_some() {
        plain.push('…');
    }
    plain
}

/// Validates a tool's new name.
pub(super) fn renamed(server: &str, tool: &str, name: &str) -> Result<String, McpError> {
    match ToolId::new(name) {
        Ok(_) => Ok(name.to_owned()),
        Err(error) => {
            Err(McpError::Renamed { server: server.to_owned(), tool: tool.to_owned(), what: error.to_string() })
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn valid_name_is_unchanged() {
        assert_eq!(tool_name("docs", "search-pages"), "docs__search-pages");
    }

    #[test]
    fn names_with_the_same_sanitized_form_stay_distinct() {
        let names = ["a.b", "a_b", "a/b", "a b", "a\u{301}b"].map(|tool| tool_name("docs", tool));

        let apart: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(apart.len(), names.len(), "{names:?}");
    }

    #[test]
    fn ambiguous_server_name_is_rejected() {
        for name in ["", "a__b", "_a", "a_", "a.b", "a/b", "ä", &"x".repeat(25)] {
            assert!(matches!(server_name(name), Err(McpError::ServerName(_))), "{name}");
        }
        for name in ["a", "a_b", "a-b", "A1", &"x".repeat(24)] {
            assert!(server_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn control_and_invisible_characters_of_a_server_are_removed() {
        assert_eq!(printable("\u{1b}[2Jde\u{202e}le\u{e0041}te\nall", 99), "[2Jdeleteall");
        assert_eq!(printable("ääääää", 3), "äää…");
    }

    proptest! {
        #[test]
        fn every_name_becomes_valid_for_all_providers(server in "[a-z]([a-z0-9-]{0,23})", tool in ".{0,200}") {
            let name = tool_name(&server, &tool);

            prop_assert!(name.len() <= 64);
            prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'), "{}", name);
        }

        #[test]
        fn two_tools_never_share_a_name(one in "[ab_./é-]{1,3}|x{60,64}", other in "[ab_./é-]{1,3}|x{60,64}") {
            prop_assume!(one != other);
            prop_assert_ne!(tool_name("docs", &one), tool_name("docs", &other));
        }

        #[test]
        fn two_servers_never_share_a_name(one in "[a-z](_?[a-z0-9-]){0,5}", other in "[a-z](_?[a-z0-9-]){0,5}", a in "[a-z_-]{0,12}", b in "[a-z_-]{0,12}") {
            prop_assume!(one != other && server_name(&one).is_ok() && server_name(&other).is_ok());
            prop_assert_ne!(tool_name(&one, &a), tool_name(&other, &b));
        }
    }
}
