//! Error messages for unreachable and wrong URLs.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use positronic_core::record::{ModelError, ModelErrorKind};
use serde_json::json;

use super::http::{HELLO, ask, config};
use super::server::{Answer, Server};
use crate::{OpenAiChat, OpenAiConfig, Timeouts};

fn fail(base_url: &str) -> ModelError {
    let timeouts = Timeouts::builder().connect(Duration::from_millis(300)).build();
    let config = OpenAiConfig::builder().base_url(base_url).api_key("sk-test").model("m").timeouts(timeouts).build();
    ask(&OpenAiChat::new(config).unwrap()).unwrap_err()
}

fn answered(answer: Answer) -> ModelError {
    let server = Server::start(vec![answer]);
    let error = ask(&OpenAiChat::new(config(&server)).unwrap()).unwrap_err();
    let host = server.address.trim_start_matches("http://").trim_end_matches("/v1");
    ModelError { message: error.message.replace(host, "host"), ..error }
}

#[test]
fn refused_connection_reports_the_url() {
    let error = fail("http://127.0.0.1:1/v1");

    assert_eq!(error.kind, ModelErrorKind::Connection);
    insta::assert_snapshot!(error.message, @"cannot reach http://127.0.0.1:1/v1/chat/completions: Connection refused (os error 111); check that the server is running, and the port in the base URL");
}

#[test]
fn unknown_host_is_reported() {
    let error = fail("http://no-such-host.invalid/v1");

    assert_eq!(error.kind, ModelErrorKind::Connection);
    assert!(error.message.starts_with("cannot reach http://no-such-host.invalid/v1/chat/completions: "), "{error}");
    assert!(
        error.message.ends_with("; check the host `no-such-host.invalid` in the base URL, and the network"),
        "{error}"
    );
}

#[test]
fn tls_to_a_plain_http_port_is_reported_and_not_retried() {
    let server = Server::start(vec![Answer::sse(HELLO)]);

    let error = fail(&server.address.replace("http:", "https:"));

    assert_eq!(error.kind, ModelErrorKind::NotFound);
    assert!(!error.is_retryable());
    assert!(error.message.contains("the server speaks plain HTTP, not TLS; write the base URL as http://…"), "{error}");
    assert!(server.requests().iter().all(|request| !request.head.contains("sk-test")), "the probe sends no key");
}

#[test]
fn plain_http_to_a_tls_port_is_reported_and_not_retried() {
    const ALERT: &[u8] = b"\x15\x03\x03\x00\x02\x02\x28";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            _ = stream.read(&mut [0; 4096]);
            _ = stream.write_all(ALERT);
        }
    });

    let error = fail(&format!("http://{address}/v1"));

    assert_eq!(error.kind, ModelErrorKind::NotFound);
    assert!(error.message.contains("the server speaks TLS; write the base URL as https://…"), "{error}");
    let explained = answered(Answer::new(400, "text/plain", "Client sent an HTTP request to an HTTPS server."));
    assert_eq!(explained.kind, ModelErrorKind::NotFound);
    assert!(explained.message.contains("write the base URL as https://…"), "{explained}");
}

#[test]
fn unknown_path_reports_the_base_url() {
    let page = "<!doctype html><html><head><title>Not Found</title></head></html>";
    insta::assert_snapshot!(answered(Answer::new(404, "text/html", page)), @"the server answered 404 with a web page: Not Found (http://host/v1/chat/completions; check the path of the base URL, which usually ends with the API version: http://host/v1)");
    insta::assert_snapshot!(answered(Answer::new(200, "text/html", page)), @"http://host/v1/chat/completions answered with a web page; check the path of the base URL, which usually ends with the API version: http://host/v1");
    let detail = json!({"detail": "Not Found"}).to_string();
    assert!(answered(Answer::new(404, "application/json", detail)).message.contains("check the path of the base URL"));
    let model = json!({"error": {"message": "The model `m` does not exist", "code": "model_not_found"}}).to_string();
    assert_eq!(answered(Answer::new(404, "application/json", model)).message, "The model `m` does not exist");
}

#[test]
fn redirect_is_reported_and_not_followed() {
    let redirect = Answer::new(301, "text/html", "moved").with("location", "https://host/v1/chat/completions");

    let error = answered(redirect);

    assert_eq!((error.kind, error.status), (ModelErrorKind::NotFound, Some(301)));
    assert!(error.message.contains("redirects to https://host/v1/chat/completions"), "{error}");
}

#[test]
fn timeout_reports_the_url() {
    let timeouts = Timeouts::builder().first_chunk(Duration::from_millis(50)).build();
    let server = Server::start(vec![Answer::sse("").ending(super::server::End::Silent)]);
    let error = ask(&OpenAiChat::new(OpenAiConfig { timeouts, ..config(&server) }).unwrap()).unwrap_err();

    assert_eq!(error.kind, ModelErrorKind::Timeout);
    let sentence = format!("{}/chat/completions: timed out after 50ms waiting for the first chunk", server.address);
    assert_eq!(error.message, sentence);
}

#[test]
fn failing_proxy_is_reported_as_the_cause() {
    let config = OpenAiConfig::builder()
        .base_url("http://host.invalid/v1")
        .model("m")
        .proxy("http://ann:pass@127.0.0.1:1")
        .build();

    let error = ask(&OpenAiChat::new(config).unwrap()).unwrap_err();

    assert!(
        error
            .message
            .starts_with("cannot reach http://host.invalid/v1/chat/completions through the proxy http://127.0.0.1:1: "),
        "{error}"
    );
    assert!(
        error.message.ends_with("check that the proxy is running, and that it may connect to this host"),
        "{error}"
    );
    let invalid = OpenAiConfig::builder().model("m").proxy("nonsense://ann:pass@x").build();
    let error = OpenAiChat::new(invalid).unwrap_err();
    assert!(error.message.contains("write it as http://host:port") && !error.message.contains("pass"), "{error}");
}

#[test]
fn server_failure_names_the_url() {
    insta::assert_snapshot!(answered(Answer::new(503, "text/plain", "busy")).message, @"the server answered 503: busy (http://host/v1/chat/completions)");
    let body = json!({"error": {"message": "overloaded"}}).to_string();
    insta::assert_snapshot!(answered(Answer::new(500, "application/json", body)).message, @"overloaded (http://host/v1/chat/completions)");
}

#[test]
fn framing_headers_are_rejected() {
    for name in ["Content-Length", "transfer-encoding", "Connection"] {
        let headers = vec![(name.to_owned(), "3".to_owned())];
        let error = OpenAiChat::new(OpenAiConfig::builder().model("m").headers(headers).build()).unwrap_err();
        assert!(error.message.ends_with("is set by the HTTP client; leave it out"), "{error}");
    }
}

#[test]
fn missing_key_is_reported() {
    let server = Server::start(vec![Answer::new(401, "application/json", "{\"error\":{\"message\":\"who are you\"}}")]);
    let without = OpenAiConfig { api_key: String::new(), ..config(&server) };

    let error = ask(&OpenAiChat::new(without).unwrap()).unwrap_err();

    assert_eq!(error.kind, ModelErrorKind::Auth);
    assert!(error.message.contains("no API key was sent"), "{error}");
}

#[test]
fn wait_until_a_date_is_measured_from_the_clock_without_a_date_header() {
    let answer = Answer::new(429, "text/plain", "slow down").with("retry-after", "Fri, 01 Jan 2100 00:00:00 GMT");

    assert!(answered(answer).retry_after.is_some_and(|wait| wait > Duration::from_hours(24)));
}
