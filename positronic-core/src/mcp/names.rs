//! Names of a server's tools, as models and people see them.

use super::error::McpError;
use crate::record::{ToolId, hash_text, is_invisible};

/// What stands between a server's name and its tool's. No server's name holds it, so the two can be told apart.
const BETWEEN: &str = "__";

/// How long a name may be for a provider.
const LONGEST: usize = 64;

/// How much of a hash tells names apart that were mended.
const HASH: usize = 8;

/// How much of a server's own name for a tool is shown; the protocol allows 128.
pub(super) const NAME: usize = 128;

/// Checks the author's name for a server.
pub(super) fn server_name(name: &str) -> Result<(), McpError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let fits = (1..=24).contains(&name.len()) && name.bytes().all(allowed);
    if fits && !name.contains(BETWEEN) && !name.starts_with('_') && !name.ends_with('_') {
        return Ok(());
    }
    Err(McpError::ServerName(name.to_owned()))
}

/// Makes the name of a tool: the server's and its own. What a provider does not allow becomes `_`, and a name that was changed or
/// cut ends in a piece of the hash of the server's own name for the tool.
pub(super) fn tool_name(server: &str, tool: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let room = LONGEST.saturating_sub(server.len() + BETWEEN.len());
    let is_whole = !tool.is_empty() && tool.len() <= room && tool.chars().all(allowed);
    if is_whole {
        return format!("{server}{BETWEEN}{tool}");
    }
    let mended = tool.chars().map(|letter| if allowed(letter) { letter } else { '_' });
    let mended: String = mended.take(room.saturating_sub(HASH + 1)).collect();
    let hash: String = hash_text(tool).as_str().chars().take(HASH).collect();
    format!("{server}{BETWEEN}{mended}-{hash}")
}

/// Returns what follows the server's name in the name of one of its tools.
pub(super) fn rest_of<'a>(server: &str, name: &'a str) -> Option<&'a str> {
    name.strip_prefix(server)?.strip_prefix(BETWEEN)
}

/// Returns a text of a server's as it is shown to people: without control characters and characters that cannot be seen, and not too long.
pub(super) fn plain(text: &str, most: usize) -> String {
    let is_shown = |letter: &char| !letter.is_control() && !is_invisible(*letter);
    let mut plain: String = text.chars().filter(is_shown).take(most).collect();
    if text.chars().nth(most).is_some() {
        plain.push('…');
    }
    plain
}

/// Checks the author's other name for a tool.
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
    fn a_name_that_fits_stays_as_it_is() {
        assert_eq!(tool_name("docs", "search-pages"), "docs__search-pages");
    }

    #[test]
    fn names_that_would_be_mended_into_one_stay_apart() {
        let names = ["a.b", "a_b", "a/b", "a b", "a\u{301}b"].map(|tool| tool_name("docs", tool));

        let apart: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(apart.len(), names.len(), "{names:?}");
    }

    #[test]
    fn a_server_that_could_be_taken_for_another_is_refused() {
        for name in ["", "a__b", "_a", "a_", "a.b", "a/b", "ä", &"x".repeat(25)] {
            assert!(matches!(server_name(name), Err(McpError::ServerName(_))), "{name}");
        }
        for name in ["a", "a_b", "a-b", "A1", &"x".repeat(24)] {
            assert!(server_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_servers_text_moves_no_cursor_and_turns_nothing_around() {
        assert_eq!(plain("\u{1b}[2Jde\u{202e}le\u{e0041}te\nall", 99), "[2Jdeleteall");
        assert_eq!(plain("ääääää", 3), "äää…");
    }

    proptest! {
        #[test]
        fn any_name_becomes_one_that_every_provider_takes(server in "[a-z]([a-z0-9-]{0,23})", tool in ".{0,200}") {
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
