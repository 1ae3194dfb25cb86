//! The allow-list of host names: without it, any site could reach a local server by DNS rebinding.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::header::HOST;

use crate::options::Options;
use crate::problem::{Problem, ProblemType};

/// Refuses a request for a host under which this server is not known.
pub(crate) fn allowed_host(options: &Options, request: &Request) -> Result<(), Problem> {
    let mut headers = request.headers().get_all(HOST).iter();
    let header = headers.next().map(|value| value.to_str().unwrap_or_default());
    if headers.next().is_some() {
        return Err(Problem::new(ProblemType::WrongHost).detail("the request has several headers `Host`"));
    }
    let authority = request.uri().authority().map(axum::http::uri::Authority::as_str);
    let host = header.or(authority).map(name_of).unwrap_or_default();
    let public = options.public_url.as_ref().and_then(|url| url.host_str()).map(name_of);
    let mut known = options.hosts.iter().map(String::as_str).chain(public);
    if is_loopback(host) || known.any(|known| known.eq_ignore_ascii_case(host)) {
        Ok(())
    } else {
        Err(Problem::new(ProblemType::WrongHost).detail(format!("`{host}` is not a host of this server")))
    }
}

/// Returns the host without its port.
fn name_of(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, port)) if port.is_empty() || port.starts_with(':') => host,
            _ => "",
        },
        None => host.split(':').next().unwrap_or_default(),
    }
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_url_may_have_an_ipv6_address() {
        let options = Options::builder().public_url("http://[2001:db8::1]:4747".parse().unwrap()).build();
        let request = Request::builder().header(HOST, "[2001:db8::1]:4747").body(axum::body::Body::empty()).unwrap();

        assert!(allowed_host(&options, &request).is_ok());
    }

    #[test]
    fn only_loopback_names_and_configured_hosts_are_allowed() {
        let options = Options::builder()
            .public_url("https://runs.example.org/api".parse().unwrap())
            .hosts(vec!["desk.internal".to_owned()])
            .build();
        let allows = |host: &str| {
            let request = Request::builder().uri("/").header(HOST, host).body(axum::body::Body::empty()).unwrap();
            allowed_host(&options, &request).is_ok()
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
            "[::1",
        ] {
            assert!(!allows(host), "{host}");
        }
    }
}
