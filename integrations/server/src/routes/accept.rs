//! Media types: which of those of a route a client gets, and which of them are JSON.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// How much a client wants a media type: its weight in thousandths, and how exactly the header names it.
type Quality = (u16, u8);

/// Returns the offered media type that the client wants most, the first one of equal ones; `None` if it accepts none of
/// them. A request without the header accepts all.
pub(super) fn negotiated<'o>(headers: &HeaderMap, offered: &[&'o str]) -> Option<&'o str> {
    let texts: Vec<_> = headers.get_all(ACCEPT).iter().map(|value| value.to_str().unwrap_or_default()).collect();
    let header = texts.join(",");
    if header.trim().is_empty() {
        return offered.first().copied();
    }
    let mut best: Option<(&str, Quality)> = None;
    for media_type in offered.iter().copied() {
        let quality = quality(&header, essence(media_type));
        if quality.0 > 0 && best.is_none_or(|(_, known)| quality > known) {
            best = Some((media_type, quality));
        }
    }
    best.map(|(media_type, _)| media_type)
}

/// Returns whether a media type is JSON: `application/json`, or one that is written as JSON, such as `application/problem+json`.
pub(crate) fn is_json(media_type: &str) -> bool {
    let media_type = essence(media_type).to_ascii_lowercase();
    let subtype = media_type.strip_prefix("application/");
    subtype.is_some_and(|subtype| subtype == "json" || subtype.ends_with("+json"))
}

/// Returns the media type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// Returns the quality by the most exact range that matches. A route that offers `*/*` has any media type.
fn quality(header: &str, media_type: &str) -> Quality {
    let mut found = (0, 0);
    for range in header.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let wanted = parts.next().unwrap_or_default();
        let exactness = match wanted.split_once('/') {
            _ if wanted.eq_ignore_ascii_case(media_type) || media_type == "*/*" => 3,
            Some((kind, "*")) if media_type.split('/').next().is_some_and(|own| own.eq_ignore_ascii_case(kind)) => 2,
            Some(("*", "*")) => 1,
            _ => continue,
        };
        if exactness > found.1 {
            let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
            found = (weight.map_or(1000, thousandths), exactness);
        }
    }
    found
}

fn thousandths(weight: &str) -> u16 {
    let (whole, decimals) = weight.split_once('.').unwrap_or((weight, ""));
    let decimals: String = decimals.chars().chain("000".chars()).take(3).collect();
    let number = format!("{whole}{decimals}").parse::<u16>().unwrap_or_default();
    number.min(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_gets_what_it_wants_most() {
        let offered = ["application/json", "application/x-ndjson", "text/event-stream"];
        for (accept, wanted) in [
            ("", Some("application/json")),
            ("*/*", Some("application/json")),
            ("text/event-stream", Some("text/event-stream")),
            ("text/event-stream, */*", Some("text/event-stream")),
            ("text/event-stream;q=0.5, application/json", Some("application/json")),
            ("application/json;q=0, */*;q=0.1", Some("application/x-ndjson")),
            ("application/*", Some("application/json")),
            ("TEXT/*", Some("text/event-stream")),
            ("text/html", None),
            ("application/json;q=0", None),
            ("nonsense", None),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            assert_eq!(negotiated(&headers, &offered), wanted, "{accept}");
        }
        let headers = HeaderMap::from_iter([(ACCEPT, "application/openmetrics-text;version=1.0.0".parse().unwrap())]);
        let metrics = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        assert_eq!(negotiated(&headers, &[metrics]), Some(metrics));
    }

    #[test]
    fn media_types_that_are_written_as_json_are_json() {
        for json in
            ["application/json", "Application/JSON; charset=utf-8", "application/problem+json", "application/a2a+json"]
        {
            assert!(is_json(json), "{json}");
        }
        for other in ["", "text/plain", "text/json", "application/x-ndjson", "application/x-www-form-urlencoded"] {
            assert!(!is_json(other), "{other}");
        }
    }
}
