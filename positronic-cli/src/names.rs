//! What may be a name: the id of a run or a signal, and what tells webhooks apart.

use positronic_core::record::is_invisible;

/// How many characters a name may have.
const LONGEST: usize = 200;

/// Says what is wrong with a name, if anything: everything is written and read as one short line somewhere.
pub(crate) fn sound(what: &str, name: &str) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err(format!("{what} is empty"));
    }
    if name.chars().any(char::is_control) {
        return Err(format!("{what} has a line break or another control character in it"));
    }
    if let Some(letter) = name.chars().find(|letter| is_invisible(*letter)) {
        return Err(format!("{what} has a character in it that cannot be seen: U+{:04X}", u32::from(letter)));
    }
    match name.chars().count() {
        count if count > LONGEST => Err(format!("{what} has {count} characters, and may have {LONGEST}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_a_short_line() {
        assert_eq!(sound("the id", "order 17 / ü"), Ok(()));
        assert_eq!(sound("the id", " ").unwrap_err(), "the id is empty");
        assert_eq!(sound("the id", "a\nb").unwrap_err(), "the id has a line break or another control character in it");
        assert_eq!(
            sound("the id", "a\u{200b}").unwrap_err(),
            "the id has a character in it that cannot be seen: U+200B"
        );
        assert_eq!(sound("the id", &"x".repeat(5000)).unwrap_err(), "the id has 5000 characters, and may have 200");
    }
}
