//! Valid names: ids of runs and signals, and identifiers of webhooks.

use positronic_core::record::MAX_NAME_CHARS;

/// The names of the run that was started last, and not by another run.
pub(crate) const LAST: [&str; 2] = ["@", "last"];

/// Checks the id of a new run.
pub(crate) fn check_run_id(id: &str) -> Result<(), String> {
    match LAST.contains(&id) {
        true => Err(format!("`{id}` names the run that was started last; give the run another id")),
        false => check_name("it", id),
    }
}

/// Checks a name that an argument gives.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), String> {
    positronic_core::record::check_name(name, MAX_NAME_CHARS).map_err(|reason| format!("{what} {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_last_run_are_no_ids() {
        assert!(check_run_id("last").is_err() && check_run_id("@").is_err());
        assert_eq!(check_run_id("last order"), Ok(()));
    }

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
