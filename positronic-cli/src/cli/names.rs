//! Valid names: ids of runs and signals, and identifiers of webhooks.

use positronic_core::record::MAX_NAME_CHARS;

/// Checks a name that an argument gives.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), String> {
    positronic_core::record::check_name(name, MAX_NAME_CHARS).map_err(|reason| format!("{what} {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_a_short_line() {
        assert_eq!(check_name("the id", "order 17 / ü"), Ok(()));
        assert_eq!(check_name("the id", " ").unwrap_err(), "the id is empty");
        assert_eq!(
            check_name("the id", "a\nb").unwrap_err(),
            "the id contains a line break or another control character"
        );
        assert_eq!(check_name("the id", "a\u{200b}").unwrap_err(), "the id contains an invisible character: U+200B");
        assert_eq!(
            check_name("the id", &"x".repeat(5000)).unwrap_err(),
            "the id has 5000 characters; the maximum is 200"
        );
    }
}
