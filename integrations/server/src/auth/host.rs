//! The allow-list of host names: without it, any site could reach a local server by DNS rebinding.

use std::net::{IpAddr, Ipv6Addr};

use axum::extract::Request;
use axum::http::header::HOST;

use crate::problem::{Problem, ProblemType};
use crate::settings::RouterSettings;

/// Refuses a request for a host under which this server is not known.
pub(crate) fn allowed_host(settings: &RouterSettings, request: &Request) -> Result<(), Problem> {
    let mut headers = request.headers().get_all(HOST).iter();
    let header = headers.next().map(|value| value.to_str().unwrap_or_default());
    if headers.next().is_some() {
        return Err(Problem::new(ProblemType::WrongHost).detail("the request has several headers `Host`"));
    }
    let authority = request.uri().authority().map(axum::http::uri::Authority::as_str);
    let given = header.or(authority).unwrap_or_default();
    let public = settings.public_url.as_ref().and_then(|url| url.host_str()).and_then(name_of);
    let mut known = settings.hosts.iter().map(String::as_str).chain(public);
    let is_known = |host: &str| is_loopback(host) || known.any(|known| known.eq_ignore_ascii_case(host));
    if name_of(given).is_some_and(is_known) {
        Ok(())
    } else {
        Err(Problem::new(ProblemType::WrongHost).detail(format!("`{given}` is not a host of this server")))
    }
}

/// Returns the host of `host`, `host:port`, `[address]` or `[address]:port`; `None` for any other text. A program that
/// reads it in another way may find another host in it.
fn name_of(authority: &str) -> Option<&str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').filter(|(host, _)| host.parse::<Ipv6Addr>().is_ok())?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    // A parser of numbers would accept a sign.
    let is_port = |port: &str| port.parse::<u16>().is_ok() && port.bytes().all(|byte| byte.is_ascii_digit());
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(host)
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options_builder::Options;

    #[test]
    fn public_url_may_have_an_ipv6_address() {
        let options = Options::builder().public_url("http://[2001:db8::1]:4747".parse().unwrap()).build();
        let request = Request::builder().header(HOST, "[2001:db8::1]:4747").body(axum::body::Body::empty()).unwrap();

        assert!(allowed_host(&options.settings, &request).is_ok());
    }

    #[test]
    fn only_loopback_names_and_configured_hosts_are_allowed() {
        let options = Options::builder()
            .public_url("https://runs.example.org/api".parse().unwrap())
            .hosts(vec!["desk.internal".to_owned()])
            .build();
        let allows = |host: &str| {
            let request = Request::builder().uri("/").header(HOST, host).body(axum::body::Body::empty()).unwrap();
            allowed_host(&options.settings, &request).is_ok()
        };

        for host in [
            "localhost",
            "LOCALHOST:4747",
            "127.0.0.1:4747",
            "127.8.8.8",
            "[::1]:80",
            "runs.example.org",
            "Desk.Internal",
        ] {
            assert!(allows(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "0.0.0.0",
            "10.0.0.1",
            "[::1]evil.example",
            "[::1].evil.example:80",
            "[::1",
            "[::1]:80x",
            "[::1]:",
            "[::1]:+80",
            "[::1]:80:80",
            "[localhost]",
            "[127.0.0.1]",
            "[::1%lo]",
            "::1",
            "127.0.0.1evil",
            "127.0.0.1:evil.example",
            "localhost:80@evil.example",
            "localhost:99999",
            "user@localhost",
            "localhost@evil.example",
            "evil.example@localhost",
            "localhost.",
            "localhost/evil.example",
            "runs.example.org.",
            "runs.example.org:80@evil.example",
        ] {
            assert!(!allows(host), "{host}");
        }
    }
}
