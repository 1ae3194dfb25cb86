//! Addresses of databases, and how messages show them.

/// The beginnings of the addresses of PostgreSQL.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Returns whether a store is named by an address, and not by a path.
pub(crate) fn is_address(named: &str) -> bool {
    SCHEMES.iter().any(|scheme| named.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
}

/// Returns the scheme of an address of any kind: `mysql` of `mysql://db/runs`.
pub(crate) fn scheme(named: &str) -> Option<&str> {
    let (scheme, _) = named.split_once("://")?;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    (scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(is_part)).then_some(scheme)
}

/// Renders a store's name without a password. An address without its password still works where the password comes from
/// elsewhere.
pub(crate) fn without_password(named: &str) -> String {
    if !is_address(named) {
        return named.to_owned();
    }
    let Some((scheme, rest)) = named.split_once("://") else { return named.to_owned() };
    // By the last `@`, since a password may have one that is not escaped.
    let (user, place) = match rest.rsplit_once('@') {
        Some((user, place)) => (user.split(':').next().map(|user| format!("{user}@")), place),
        None => (None, rest),
    };
    let (place, parameters) = place.split_once('?').unwrap_or((place, ""));
    let shown = parameters.split('&').filter(|one| !one.is_empty() && !one.to_lowercase().contains("pass"));
    let shown: Vec<_> = shown.collect();
    let parameters = if shown.is_empty() { String::new() } else { format!("?{}", shown.join("&")) };
    format!("{scheme}://{}{place}{parameters}", user.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_shown_without_its_password() {
        for (named, shown) in [
            ("runs.db", "runs.db"),
            ("postgres:runs.db", "postgres:runs.db"),
            ("postgres://db/runs", "postgres://db/runs"),
            ("postgres://ann@db:5432/runs", "postgres://ann@db:5432/runs"),
            ("postgresql://ann:s3cret@db/runs?sslmode=require", "postgresql://ann@db/runs?sslmode=require"),
            ("POSTGRES://ann:s3c@ret?@db/runs", "POSTGRES://ann@db/runs"),
            ("postgres://:s3cret@db", "postgres://@db"),
            ("postgres://db/runs?user=ann&password=s3cret&schema=a", "postgres://db/runs?user=ann&schema=a"),
        ] {
            assert_eq!(without_password(named), shown);
        }
    }
}
