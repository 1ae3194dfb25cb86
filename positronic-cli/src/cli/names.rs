//! Valid names: ids of runs and signals, and identifiers of webhooks.

use positronic_core::record::is_invisible;

/// Maximum number of characters in a name.
const LONGEST: usize = 200;

/// Checks a name: names are displayed and parsed as one short line.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err(format!("{what} is empty"));
    }
    if name.chars().any(char::is_control) {
        return Err(format!("{what} contains a line break or another control character"));
    }
    if let Some(letter) = name.chars().find(|letter| is_invisible(*letter)) {
        return Err(format!("{what} contains an invisible character: U+{:04X}", u32::from(letter)));
    }
    match name.chars().count() {
        count if count > LONGEST => Err(format!("{what} has {count} characters; the maximum is {LONGEST}")),
        _ => Ok(()),
    }
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
