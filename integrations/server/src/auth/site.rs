//! The check that a browser's request comes from this server's own page.
//!
//! Browsers say so in `Sec-Fetch-Site`, older ones in `Origin`. A request with neither is not from a browser.

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::request::Parts;

use super::cors::allowed_origin;
use crate::problem::{Problem, ProblemType};
use crate::settings::RouterSettings;

/// Refuses a request that another site makes a browser send. A page of an allowed origin sends a token with it, since browsers
/// send cookies unasked.
pub(crate) fn same_site(settings: &RouterSettings, parts: &Parts) -> Result<(), Problem> {
    if parts.headers.contains_key(AUTHORIZATION) && allowed_origin(settings, &parts.headers).is_some() {
        return Ok(());
    }
    let text = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let is_same = match (text("sec-fetch-site"), text(ORIGIN.as_str())) {
        (Some(site), _) => matches!(site, "same-origin" | "none"),
        (None, Some(origin)) => {
            let own = settings.public_url.as_ref().map(|url| url.origin().ascii_serialization());
            let rest = origin.split_once("://").map(|(_, rest)| rest);
            own.as_deref() == Some(origin) || (rest.is_some() && rest == text(HOST.as_str()))
        }
        (None, None) => true,
    };
    if is_same { Ok(()) } else { Err(ProblemType::CrossSite.into()) }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;
    use crate::options_builder::Options;

    #[test]
    fn requests_of_other_sites_are_refused() {
        let allows = |headers: &[(&str, &str)]| {
            let mut request = Request::builder().header("host", "127.0.0.1:4747");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            same_site(&Options::builder().build().settings, &request.body(()).unwrap().into_parts().0).is_ok()
        };

        assert!(allows(&[]), "a program");
        assert!(allows(&[("sec-fetch-site", "same-origin"), ("origin", "http://127.0.0.1:4747")]));
        assert!(allows(&[("origin", "http://127.0.0.1:4747")]));
        for site in ["cross-site", "same-site", "SAME-ORIGIN", ""] {
            assert!(!allows(&[("sec-fetch-site", site)]), "{site}");
        }
        for origin in ["null", "http://127.0.0.1:8080", "https://evil.example", "127.0.0.1:4747", ""] {
            assert!(!allows(&[("origin", origin)]), "{origin}");
        }
    }
}
