//! Suggestions for misspelt names.

/// Maximum number of suggestions.
const AT_MOST: usize = 3;

/// Finds the names nearest to `written`, the best first. Case is ignored; a name
/// that begins with `written` or contains it counts as near.
fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let written = normal(written);
    let mut near: Vec<(usize, &str)> =
        names.into_iter().filter_map(|name| distance(&written, &normal(name)).map(|far| (far, name))).collect();
    near.sort_by_key(|(far, _)| *far);
    near.into_iter().take(AT_MOST).map(|(_, name)| name).collect()
}

/// Suggests the names nearest to `written`, each after `prefix`: `` did you mean `a` or `b`? ``; `None` without similar names.
pub(crate) fn did_you_mean<'a>(
    written: &str,
    names: impl IntoIterator<Item = &'a str>,
    prefix: &str,
) -> Option<String> {
    let mut quoted: Vec<String> = nearest(written, names).iter().map(|name| format!("`{prefix}{name}`")).collect();
    let last = quoted.pop()?;
    let before = if quoted.is_empty() { String::new() } else { format!("{} or ", quoted.join(", ")) };
    Some(format!("did you mean {before}{last}?"))
}

fn normal(name: &str) -> String {
    name.to_lowercase().replace(['-', ' '], "_")
}

fn distance(written: &str, name: &str) -> Option<usize> {
    if written == name {
        return Some(0);
    }
    let length = written.chars().count();
    if length >= 2 && (name.starts_with(written) || written.starts_with(name) && !name.is_empty()) {
        return Some(1);
    }
    if length >= 3 && name.contains(written) {
        return Some(2);
    }
    let far = strsim::damerau_levenshtein(written, name);
    let allowed = (length.max(name.chars().count()) / 3).max(1);
    (far <= allowed).then_some(far + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["Support Agent", "Survey", "Billing", "customer_id"];

    #[test]
    fn nearest_name_comes_first_and_unrelated_names_are_left_out() {
        assert_eq!(nearest("suport-agent", NAMES), ["Support Agent"]);
        assert_eq!(nearest("surv", NAMES), ["Survey"]);
        assert_eq!(nearest("customerid", NAMES), ["customer_id"]);
        assert_eq!(nearest("agent", NAMES), ["Support Agent"]);
        assert!(nearest("weather", NAMES).is_empty());
    }

    #[test]
    fn suggestions_form_a_question() {
        assert_eq!(did_you_mean("weather", NAMES, ""), None);
        assert_eq!(did_you_mean("surv", NAMES, "/").unwrap(), "did you mean `/Survey`?");
        assert_eq!(did_you_mean("ab", ["ab1", "ab2", "ab3"], "").unwrap(), "did you mean `ab1`, `ab2` or `ab3`?");
    }
}
